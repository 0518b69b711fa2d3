"""Passes that a loop or a trainer leaves: no sample goes unread, or is read twice, in silence."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from tests.adapters.small import (
    ME,
    PLAN,
    Identity,
    as_they_are,
    loader_of,
    of_plan,
    read_and_saved,
)

FULL = PLAN.replace(remainder="drop")  # 3 steps a pass, as a PlanSampler takes them
EPOCHS = "use ip.Epochs(order, {read}), whose epochs have so many and lose none, "
CURE = (
    EPOCHS + "under Lightning use RefreshStepCounts(), under Composer KeepState(), or pass "
    "partial=True if passes are left on purpose"
)
CUT = (
    "a pass must be read whole before a later one begins; got {steps} of {all} steps of epoch 0, "
    "sub-epoch 1, and then epoch 0, sub-epoch 2; " + CURE
)
MEANT = EPOCHS + "or pass partial=True if this is intended"
NEXT = "name the pass that comes next with set_epoch, " + MEANT.format(read=18)
WHOLE = "read each pass to its end, " + MEANT.format(read=9)


def sampler_of(plan: ip.Plan, **options: Any) -> PlanBatchSampler:
    """Return rank 1's batch sampler."""
    return PlanBatchSampler(plan, **ME, **options)


def batches_of_singles(plan: ip.Plan, **options: Any) -> Any:
    """Return rank 1's sampler of single indices."""
    return PlanSampler(plan, **ME, **options)


def read(samples: Any, steps: int | None = None) -> list[Any]:
    """Read a pass, or its first steps."""
    return list(islice(samples, steps))


@pytest.mark.parametrize("make", [loader_of, sampler_of])
@pytest.mark.parametrize("tell", ["loader", "sampler"])
def test_a_cut_pass_is_an_error_at_the_next(make: Callable[..., Any], tell: str) -> None:
    """A pass that was left after two of four steps cannot be followed by a later one."""
    samples = make(PLAN)
    samples.set_epoch(1)
    assert of_plan(PLAN, 1)[:2] == read(samples, 2)
    (samples if tell == "loader" else samples.sampler).set_epoch(2)
    message = re.escape(CUT.format(steps=2, all=4, read=18))
    for _ in range(2):  # however often it is asked
        with pytest.raises(ip.IndexPlanError, match=f"^{message}$"):
            read(samples)


def test_a_cut_pass_is_an_error_with_workers() -> None:
    """What counts is what the loop received, not what workers have drawn ahead."""
    loader = loader_of(PLAN, num_workers=2)
    loader.set_epoch(1)
    read(loader, 2)
    loader.set_epoch(2)
    with pytest.raises(
        ip.IndexPlanError, match=f"^{re.escape(CUT.format(steps=2, all=4, read=18))}$"
    ):
        read(loader)


def test_single_indices_are_held_against_the_plan() -> None:
    """A PlanSampler notices a cut too."""
    sampler = batches_of_singles(FULL)
    sampler.set_epoch(1)
    read(sampler, 11)
    sampler.set_epoch(2)
    with pytest.raises(
        ip.IndexPlanError, match=f"^{re.escape(CUT.format(steps=2, all=3, read=20))}$"
    ):
        read(sampler)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_a_state_after_a_cut_is_an_error(make: Callable[..., Any]) -> None:
    """No checkpoint is made, by state or by cursor, that would go on with the pass after it."""
    samples = make(PLAN)
    samples.set_epoch(1)
    _, state = read_and_saved(samples, 2)  # in the pass itself, the state has the rest of it
    samples.set_epoch(2)
    with pytest.raises(
        ip.IndexPlanError, match=f"^{re.escape(CUT.format(steps=2, all=4, read=18))}$"
    ):
        _ = samples.cursor
    samples.load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of_plan(PLAN, 1, start=2) == read(samples)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
@pytest.mark.parametrize("resume", ["state", "plan"])
def test_a_pass_that_a_resume_skips_is_an_error(make: Callable[..., Any], resume: str) -> None:
    """What is left of the pass that a run was saved in is read before a later one begins."""
    saved = make(PLAN)
    saved.set_epoch(1)
    _, state = read_and_saved(saved, 2)
    if resume == "plan":
        samples = make(PLAN.resume(ip.Cursor.from_dict(state["cursor"])))
    else:
        samples = make(PLAN)
        samples.load_state_dict(state)
    message = (
        "a pass must be read whole before a later one begins; got a resume after 2 of 4 steps of "
        "epoch 0, sub-epoch 1, and then epoch 0, sub-epoch 2; read that pass first, by "
        "set_epoch(1), or pass partial=True if passes are left on purpose"
    )
    for over in ([], [0]):  # nor does a pass that is over, and gives nothing, come in its place
        for number in over:
            samples.set_epoch(number)
            assert [] == read(samples)
        samples.set_epoch(2)
        for go_on in (lambda: samples.cursor, lambda: read(samples)):
            with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
                go_on()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number, start in ((0, 4), (1, 2), (2, 0)):  # the first is read already
            samples.set_epoch(number)
            assert of_plan(PLAN, number)[start:] == read(samples)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_a_pass_that_is_left_after_a_resume_is_an_error(make: Callable[..., Any]) -> None:
    """The steps before a resume and those after it are of one pass, which is left all the same."""
    saved = make(PLAN)
    saved.set_epoch(1)
    _, state = read_and_saved(saved, 1)
    samples = make(PLAN)
    samples.load_state_dict(state)
    read(samples, 1)
    samples.set_epoch(2)
    with pytest.raises(
        ip.IndexPlanError, match=f"^{re.escape(CUT.format(steps=2, all=4, read=18))}$"
    ):
        read(samples)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_passes_that_are_left_on_purpose_say_so(make: Callable[..., Any]) -> None:
    """With partial=True passes may be left, begun again and followed by others, without a word."""
    samples = make(PLAN, partial=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in (0, 1, 2, 2):
            samples.set_epoch(number)
            for _ in range(2):
                assert of_plan(PLAN, number)[:2] == read(samples, 2)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_a_pass_that_starts_again_warns_once(make: Callable[..., Any]) -> None:
    """A loop that breaks and iterates again gets the same batches, and hears so, once."""
    samples = make(PLAN)
    assert of_plan(PLAN, 0)[:2] == read(samples, 2)
    message = (
        f"epoch 0, sub-epoch 0: left after 2 of 4 steps, and starts again from the first; {NEXT}"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        again = [read(samples, 2) for _ in range(2)]
    assert [of_plan(PLAN, 0)[:2]] * 2 == again
    assert 1 == len(caught)
    assert of_plan(PLAN, 0) == read(samples)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_a_pass_that_is_named_may_start_again(make: Callable[..., Any]) -> None:
    """`set_epoch` is a word for it: the same pass again, or an earlier one, in silence."""
    samples = make(PLAN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in (2, 2, 1, 0):
            samples.set_epoch(number)
            assert of_plan(PLAN, number)[:3] == read(samples, 3)
        samples.set_epoch(0)
        assert of_plan(PLAN, 0) == read(samples)


@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_a_look_at_the_first_batch_costs_nothing(make: Callable[..., Any]) -> None:
    """One batch may be looked at before the pass is read, in silence; a later one warns."""
    samples = make(PLAN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert of_plan(PLAN, 0)[:1] == read(samples, 1)
    samples.set_epoch(1)
    message = (
        "epoch 0, sub-epoch 0: left after 1 of 4 steps, and 26 of its 35 samples are never "
        "read; " + WHOLE
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        assert of_plan(PLAN, 1) == read(samples)


@pytest.mark.parametrize(("times", "got"), [(1, "2"), (8, "more")])
def test_batches_that_are_dealt_out_again_are_an_error(times: int, got: str) -> None:
    """Fewer or more batches than the plan deals to the rank never pass for a whole pass."""

    class Dealt:
        batch_sampler = sampler_of(PLAN)

        def __iter__(self) -> Any:
            for batch in list(self.batch_sampler)[::2]:
                yield from times * [batch]

    shard = Dealt()
    loader = loader_of(PLAN, batch_sampler=shard, dataset=Identity(), collate_fn=as_they_are)
    message = (
        f"a pass must give the loop the 4 batches that the plan deals to this rank; got {got}; "
        "remove what changes batches between the plan and the loop, such as a wrapper that "
        "deals the batch sampler out to ranks again"
    )
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        read(loader)


@pytest.mark.parametrize("limit", [3, 0.7])
@pytest.mark.parametrize("make", [loader_of, sampler_of])
def test_a_limit_of_a_trainer_is_told_once(make: Callable[..., Any], limit: float) -> None:
    """Where a pass is left at the limit; one that is left before it would lose samples unsaid."""
    samples = make(PLAN.replace(sub_epochs=1))  # 11 steps
    samples.run.limit = limit
    steps = 3 if limit == 3 else 7
    message = (
        f"epoch 0, sub-epoch 0: the trainer's limit ends each pass after {steps} of 11 steps, so "
        rf"(\d+) of its 103 samples are never read; use (ip.Epochs\(order, (\d+)\)), whose epochs "
        "have so many and lose none, without a limit, or pass partial=True if this is intended"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(4):
            samples.set_epoch(number)
            read(samples, steps)
    assert 1 == len(caught)
    lost, cure, k = re.fullmatch(message, str(caught[0].message)).groups()  # type: ignore[union-attr]
    assert 103 == int(lost) + int(k)
    order = eval(cure, {"ip": ip, "order": PLAN.order})  # noqa: S307 (our own sentence)
    plan = PLAN.replace(order=order, sub_epochs=1)
    assert steps == plan.account(0).num_steps
    counts = [0] * 103
    for epoch in range(103):
        for index in plan.order.take(epoch, 0, int(k)).tolist():
            counts[index] += 1
    assert {int(k)} == {*counts}  # the rest of one epoch is read in the next
    samples.set_epoch(4)
    read(samples, 2)
    samples.set_epoch(5)
    with pytest.raises(ip.IndexPlanError, match="must be read whole before a later one begins"):
        read(samples, 1)


def test_the_cure_of_a_loop_that_leaves_passes_loses_nothing() -> None:
    """The error and the warning name it, and with it the loop reads each sample once."""
    plan = ip.Plan(ip.Shuffle(40), world_size=1, batch_size=2)

    def loop(plan: ip.Plan, *, named: bool) -> list[int]:
        loader, got = PlanLoader(range(40), plan), []
        for epoch in range(4):
            if named:
                loader.set_epoch(epoch)
            for batch in islice(loader, 5):
                got += batch.tolist()
        return got

    with pytest.raises(ip.IndexPlanError, match=r"use (ip\.Epochs\(order, 10\)), whose epochs"):
        loop(plan, named=True)
    with pytest.warns(UserWarning, match=r"use (ip\.Epochs\(order, 10\)), whose epochs"):
        loop(plan, named=False)
    cured = plan.replace(order=ip.Epochs(plan.order, 10))
    for named in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert [*range(40)] == sorted(loop(cured, named=named))
