"""Passes in one process: what a loader reads next, how far it is, and who may read it.

The model of tests/histories/passes.py holds what loops and trainers read: test_histories.py.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import re
import signal
import weakref
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator, skip_first_batches
from hypothesis import example, given
from hypothesis import strategies as st
from torch.utils.data import ConcatDataset, DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.accelerate import PreparedLoader, prepare
from tests.adapters.small import ME, PLAN, Identity, loader_of, of_plan, read_and_saved, refused


class Deadly(Identity):
    """A dataset that kills the worker that asks for one index."""

    def __getitem__(self, index: int) -> int:
        if index == PLAN.batch(0, 0, step=3, rank=1)[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


def test_a_loader_that_nobody_holds_is_gone_at_once() -> None:
    """Left in mid-pass, it waits for no garbage collection, in which torch's workers end late."""
    loader = loader_of(PLAN, num_workers=2)
    batches = iter(loader)
    next(batches)
    gone = weakref.ref(loader)
    gc.disable()
    try:
        del loader, batches
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("named", [False, True])
def test_a_trainers_first_number_names_what_was_drawn_or_is_refused(named: bool) -> None:
    """Also where somebody had named the pass of those batches: they would be read as another's."""
    sampler = PlanBatchSampler(PLAN, **ME)
    if named:
        sampler.set_epoch(2)
    batches = iter(sampler)
    next(batches)
    drawn = 2 if named else 0
    rule = rf"got set_epoch\(1\) after batches of pass {drawn}; "
    with pytest.raises(ip.IndexPlanError, match=rule):
        sampler.sampler.set_epoch(1)
    sampler.sampler.set_epoch(drawn)
    assert len(PLAN.steps(0, drawn)) == 1 + len(list(batches))


ONE_LOOP = "must be read by one loop at a time; got a loop that reads on after another has begun"


def in_a_dataloader(plan: ip.Plan, **options: Any) -> Any:
    """A DataLoader of one's own around a batch sampler."""
    batches = PlanBatchSampler(plan, rank=0, world_size=1)
    return DataLoader(Identity(), batch_sampler=batches, collate_fn=list, **options)


def prepared(plan: ip.Plan, **options: Any) -> Any:
    """A loader under Accelerate, which fetches a batch ahead."""
    accelerator = Accelerator(cpu=True)
    made = prepare(accelerator, loader_of(plan, rank=0, world_size=1, **options))
    accelerator.free_memory()  # else it holds the loader, whose workers end late: see `refused`
    return made


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")  # Accelerate's
@pytest.mark.parametrize(
    ("make", "options"),
    [
        (make, options)
        for make in (loader_of, prepared, in_a_dataloader)
        for options in ({}, {"num_workers": 1, "persistent_workers": True})
        if make is not in_a_dataloader or not options  # torch's own has one iterator then
    ],
)
def test_a_loader_in_two_loops_at_once_is_refused(make: Any, options: dict[str, Any]) -> None:
    """`zip(loader, loader)` would read each batch twice; a loader for each reads as it says."""
    plan = ip.Plan(PLAN.order, batch_size=5)
    if make is loader_of:
        options = {**options, "rank": 0, "world_size": 1}
    loader = make(plan, **options)
    assert ONE_LOOP in str(refused(zip(loader, loader, strict=True)))
    every = of_plan(plan.replace(world_size=1), 0, rank=0)
    pairs = zip(make(plan, **options), make(plan, **options), strict=True)
    assert [(batch, batch) for batch in every] == list(pairs)


@pytest.mark.parametrize("num_workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("make", [PlanBatchSampler, PlanSampler])
def test_a_sampler_answers_for_no_pass_that_it_hands_out(make: Any, num_workers: int) -> None:
    """In a pass and after it, until the next is named: what was drawn would lose what is ahead."""
    plan = PLAN.replace(remainder="drop")
    sampler = make(plan, **ME)
    ours = {"sampler": sampler, "batch_size": 5} if make is PlanSampler else {}
    loader: Any = DataLoader(
        Identity(), **(ours or {"batch_sampler": sampler}), num_workers=num_workers
    )
    assert plan.cursor(0, 0, step=0) == sampler.cursor
    message = "^a sampler must not be asked for a cursor or step_size inside a pass, as it knows"
    for _ in loader:
        with pytest.raises(ip.IndexPlanError, match=message):
            _ = sampler.cursor
    with pytest.raises(ip.IndexPlanError, match=message):
        _ = sampler.cursor
    sampler.set_epoch(1)
    assert plan.cursor(0, 1, step=0) == sampler.cursor
    assert not hasattr(sampler, "state_dict")  # or torchdata would ask for it with every batch
    with pytest.raises(ip.IndexPlanError, match=r"^a sampler must not be asked for a state, "):
        sampler.state_dict()


ASKED: list[Callable[[Any], Any]] = [
    len,
    repr,
    lambda loader: (loader.worker_init_fn(0), torch.initial_seed()),
    lambda loader: loader.batch_size,
    lambda loader: len(loader.sampler),
    lambda loader: list(loader.sampler),
    lambda loader: loader.batch_sampler.epoch,
    lambda loader: loader.cursor,
    lambda loader: PreparedLoader(Accelerator(cpu=True), loader).iteration,
]


SCRIPT = st.one_of(
    st.tuples(st.just("name"), st.integers(0, 4)),
    st.tuples(st.just("read"), st.integers(1, 4)),
    st.tuples(st.just("resume"), st.integers(0, 1)),
    st.tuples(st.just("ask"), st.integers(0, len(ASKED) - 1)),
)


@pytest.mark.filterwarnings("ignore:epoch ")
@given(st.sampled_from([1, 2]), st.lists(SCRIPT, max_size=8))
@example(1, [("resume", 0), ("name", 1), ("ask", 2)])
def test_a_script_names_passes_on_a_loader_or_its_sampler(
    sub_epochs: int, script: list[tuple[str, int]]
) -> None:
    """The same is read, told or refused; on the sampler, another pass was once seeded."""
    plan = PLAN.replace(sub_epochs=sub_epochs, batch_size=20)  # of 3 or 2 steps
    seen: list[Any] = []
    for on_sampler in (False, True):
        loader, here = loader_of(plan), list[Any]()
        seen.append(here)
        for what, number in script:
            try:
                if what == "name":
                    (loader.sampler if on_sampler else loader).set_epoch(number)
                elif what == "read":
                    here.append(list(islice(loader, number)))
                elif what == "ask":
                    here.append(ASKED[number](loader))
                else:
                    state = loader.state_dict()
                    here.append(state)
                    loader = loader_of(plan, partial=bool(number))
                    loader.load_state_dict(state)
            except ip.IndexPlanError as error:
                here.append(str(error))
    assert seen[0] == seen[1]


def test_a_killed_worker_ends_in_torchs_error_and_the_run_goes_on() -> None:
    """The last state before a worker was killed is enough to read the rest, each batch once."""
    loader = loader_of(PLAN, Deadly(), num_workers=1)
    read, state = [], loader.state_dict()
    batches = iter(loader)
    with pytest.raises(RuntimeError, match="DataLoader worker"):  # noqa: PT012 (as a loop does)
        while True:
            read.append(next(batches))
            state = loader.state_dict()
    assert len(read) < 4
    loader = loader_of(PLAN)
    loader.load_state_dict(state)
    assert of_plan(PLAN, 0) == read + list(loader)


@pytest.mark.parametrize("sub_epochs", [1, 3])
@pytest.mark.parametrize("make", [loader_of, PlanBatchSampler, PlanSampler])
def test_a_loop_that_begins_again_after_a_resume_is_told_where(make: Any, sub_epochs: int) -> None:
    """`for epoch in range(...)` of the first run raises, and its cure reads each sample once."""
    plan = PLAN.replace(sub_epochs=sub_epochs, remainder="pad")
    few = 10 if make is PlanSampler else 2  # of two steps
    stop = 4 * sub_epochs

    def read(loader: Any, numbers: range) -> list[Any]:
        got = []
        for number in numbers:
            loader.set_epoch(number)
            got += list(loader)
        return got

    whole = read(make(plan, **ME), range(stop))
    saved = make(plan, **ME)
    got = read(saved, range(sub_epochs + 1))
    saved.set_epoch(sub_epochs + 1)
    rest, state = read_and_saved(saved, few)
    got += rest
    loader = make(plan, **ME)
    loader.load_state_dict(state)
    first = loader.cursor.epoch
    with pytest.raises(ip.IndexPlanError) as caught:
        read(loader, range(stop))
    rule = f"epoch must be {first} or later, where the run was resumed, as earlier ones are"
    assert str(caught.value).startswith(f"{rule} finished; got 0; begin your loop with range(")
    with pytest.raises(ip.IndexPlanError, match=rule):
        len(loader)
    loader.load_state_dict(state)
    begin, here = re.findall(r"range\((.*?), \.\.\.\)", caught.value.cure)
    assert eval(begin, {"loader": loader}) == int(here)  # noqa: S307 (our own sentence)
    assert whole == got + read(loader, range(int(here), stop))


def test_a_phase_that_is_over_may_not_fit_todays_ranks(tmp_path: Path) -> None:
    """A restart on more ranks, under drop: epochs that are over need no step of that size."""
    sizes = [ip.Phase((0, 0), 20), ip.Phase((2, 0), 4)]
    plan = ip.Plan(ip.Shuffle(100), batch_size=sizes, remainder="drop")
    ledger = tmp_path / "run.ledger"
    loader = PlanLoader(np.arange(100), plan, rank=0, world_size=4, ledger=ledger)
    for _ in range(2):
        list(loader)
    again = PlanLoader(np.arange(100), plan, rank=0, world_size=10)
    with pytest.raises(ip.IndexPlanError, match=r"^epoch 0 must have a full step"):
        next(iter(again))
    again = PlanLoader(np.arange(100), plan, rank=0, world_size=10, ledger=ledger)
    again.load_state_dict(loader.state_dict())
    rest = plan.replace(world_size=10).resume(plan.replace(world_size=4).cursor(2, step=0))
    expected = [rest.batch(2, step=step, rank=0).tolist() for step in range(2)]
    assert expected == [batch.tolist() for batch in again]
    again.state_dict()
    known = ip.Ledger(ledger)
    assert known.verify().ok
    assert expected == [known.batch(step, 0).tolist() for step in range(2, known.step)]
    alone, at = known.replay(3), known.at(3)
    assert expected[1] == alone.batch(at.epoch, step=at.step, rank=0)[:4].tolist()


MAKE = pytest.mark.parametrize(
    "make", [loader_of, lambda plan, **o: PlanBatchSampler(plan, **ME, **o)]
)


@MAKE
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
        "got a resume after 2 of 4 steps of epoch 0, sub-epoch 1, and then epoch 0, sub-epoch 2; "
    )
    for over in ([], [0]):  # nor does a pass that is over, and gives nothing, come in its place
        for number in over:
            samples.set_epoch(number)
            assert [] == list(samples)
        samples.set_epoch(2)
        for go_on in (lambda: samples.cursor, lambda: list(samples)):
            with pytest.raises(ip.IndexPlanError, match=message):
                go_on()
    for number, start in ((0, 4), (1, 2), (2, 0)):  # the first is read already
        samples.set_epoch(number)
        assert of_plan(PLAN, number)[start:] == list(samples)


@MAKE
def test_passes_that_are_left_on_purpose_say_so(make: Callable[..., Any]) -> None:
    """With partial=True passes may be left, begun again and followed by others, without a word."""
    samples = make(PLAN, partial=True)
    for number in (0, 1, 2, 2):
        samples.set_epoch(number)
        for _ in range(2):
            assert of_plan(PLAN, number)[:2] == list(islice(samples, 2))


@pytest.mark.parametrize(("times", "got"), [(1, "2"), (8, "more")])
def test_batches_that_are_dealt_out_again_are_an_error(times: int, got: str) -> None:
    """Fewer or more batches than the plan deals to the rank never pass for a whole pass."""

    class Dealt:
        batch_sampler = PlanBatchSampler(PLAN, **ME)

        def __iter__(self) -> Any:
            for batch in list(self.batch_sampler)[::2]:
                yield from times * [batch]

    with pytest.raises(ip.IndexPlanError, match=f"the 4 batches that .* rank; got {got}; remove"):
        list(loader_of(PLAN, batch_sampler=Dealt()))


SKIPPED = ip.Plan(ip.Shuffle(40, seed=0), world_size=1, batch_size=4)
RESUMED = SKIPPED.resume(SKIPPED.cursor(0, step=3))


def loaded() -> PlanLoader:
    """A loader with the state of another, which has read three steps."""
    saved, loader = (PlanLoader(range(40), SKIPPED) for _ in range(2))
    list(islice(saved, 3))
    loader.load_state_dict(saved.state_dict())
    return loader


@pytest.mark.parametrize("skip", [0, 3])
@pytest.mark.parametrize(
    "make",
    [
        loaded,
        lambda: PlanLoader(range(40), RESUMED),
        lambda: prepare(Accelerator(cpu=True), PlanLoader(range(40), SKIPPED)),
        lambda: PlanLoader(range(40), SKIPPED, ledger="run.ledger"),
    ],
    ids=["a state", "plan.resume", "prepare", "a ledger"],
)
def test_batches_are_not_skipped_twice(
    make: Any, skip: int, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A loader that resumes by itself hands its batches to no other, in any pass."""
    monkeypatch.chdir(tmp_path)
    loader = make()
    for number in (0, 1):
        loader.set_epoch(number)
        with pytest.raises(ip.IndexPlanError, match=r"^a PlanLoader must hand its batches to the "):
            next(iter(skip_first_batches(loader, skip)))
        list(loader)


@pytest.mark.parametrize("kind", [PlanLoader, PlanBatchSampler])
def test_a_state_of_fewer_sources(kind: Any) -> None:
    """Other ranks go on with a source that joins at the state's place, of a longer dataset."""
    two = ip.Mixture({"a": ip.Shuffle(80), "b": ip.Shuffle(40, seed=1)}, {"a": 1, "b": 1})
    plan = ip.Plan(two, world_size=4, batch_size=3, remainder="carry")
    parts: list[Any] = [range(80), range(80, 120), range(120, 150)]
    before = kind(
        *((ConcatDataset(parts[:2]),) if kind is PlanLoader else ()), plan, rank=0, world_size=4
    )
    state = json.loads(json.dumps(read_and_saved(before, 4)[1]))
    cursor = ip.Cursor.from_dict(state["cursor"])
    assert plan.cursor(0, step=4) == cursor
    weights = {"a": 1, "b": 1, "c": 2}
    order = two.with_phase(cursor, weights, sources={"c": ip.Shuffle(30, seed=2)})
    dataset = (ConcatDataset(parts),) if kind is PlanLoader else ()
    new = plan.replace(order=order, world_size=3)
    ranks = [kind(*dataset, new, rank=rank, world_size=3) for rank in range(3)]
    for each in ranks:
        each.load_state_dict(copy.deepcopy(state))
    read = [int(sample) for some in zip(*ranks, strict=True) for batch in some for sample in batch]
    assert [*order.take(0, 48, 120), *order.take(1, 0, 120)][: len(read)] == read
    assert len(read) >= 72
    assert max(read) >= 120
    if kind is PlanLoader:
        assert ("a", "b", "c") == tuple(ranks[0].shares)
    early = plan.replace(order=two.with_phase(47, weights, sources={"c": ip.Shuffle(30, seed=2)}))
    with pytest.raises(ip.IndexPlanError, match="at or before unit 47 of the run, since which"):
        kind(*dataset, early, rank=0, world_size=4).load_state_dict(state)
