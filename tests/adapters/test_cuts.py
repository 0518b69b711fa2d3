"""Passes that a loop or a trainer leaves: no sample goes unread, or is read twice, in silence."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from tests.adapters.small import (
    ME,
    PLAN,
    Identity,
    as_they_are,
    loader_of,
    of_plan,
    read_and_saved,
)

EPOCHS = "use ip.Epochs(order, {read}), whose epochs have so many and lose none, "
CURE = (
    EPOCHS + "under Lightning use RefreshStepCounts(), under Composer KeepState(), or pass "
    "partial=True if passes are left on purpose"
)


def sampler_of(plan: ip.Plan, **options: Any) -> PlanBatchSampler:
    """Return rank 1's batch sampler."""
    return PlanBatchSampler(plan, **ME, **options)


def read(samples: Any, steps: int | None = None) -> list[Any]:
    """Read a pass, or its first steps."""
    return list(islice(samples, steps))


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
def test_passes_that_are_left_on_purpose_say_so(make: Callable[..., Any]) -> None:
    """With partial=True passes may be left, begun again and followed by others, without a word."""
    samples = make(PLAN, partial=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in (0, 1, 2, 2):
            samples.set_epoch(number)
            for _ in range(2):
                assert of_plan(PLAN, number)[:2] == read(samples, 2)


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
