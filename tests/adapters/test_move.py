"""A run that moves to another plan at a step, as the plan that is resumed there has it."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.adapters.small import PLAN, check_steps, loader_of, of_plan

MIXED = ip.Mixture(
    {"a": ip.Shuffle(60, seed=1), "b": ip.Shuffle(43, seed=2)}, weights={"a": 7, "b": 3}
)
STEPS = PLAN.account(0, 0).num_steps


def lighter(plan: ip.Plan, cursor: ip.Cursor) -> ip.Plan:
    """The same with other weights from a cursor on."""
    return plan.replace(order=plan.order.with_phase(cursor, {"a": 1, "b": 9}))  # type: ignore[attr-defined]


CHANGES: dict[str, Any] = {
    "a batch size": lambda plan, _: plan.replace(batch_size=3),
    "a remainder": lambda plan, _: plan.replace(remainder="pad"),
    "a sample left out": lambda plan, cursor: plan.replace(
        order=ip.Without(plan.order, [7, 50], since=cursor)
    ),
    "weights": lighter,
    "a later start": lambda plan, cursor: plan.resume(cursor),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("ahead", [0, pytest.param(4, marks=pytest.mark.slow)])
@settings(max_examples=8, deadline=None)
@given(
    before=st.integers(0, STEPS),
    more=st.integers(1, 2 * STEPS),
    passes=st.integers(0, 2),
    named=st.booleans(),
)
def test_the_rest_is_that_of_the_other_plan_resumed(
    name: str, ahead: int, before: int, more: int, passes: int, named: bool
) -> None:
    """However far a worker is ahead, and in the middle of a loop or between two.

    What lies before a later start is skipped; before an earlier one, nothing. A jump out of a pass
    ends it, so that a loop that names each pass reads none twice.
    """
    plan = ip.Plan(MIXED, world_size=2, batch_size=5, sub_epochs=3)
    every = [(number, step) for number in range(6) for step in plan.steps(*divmod(number, 3))]
    further = before + more * (name == "a later start")
    to = every[min(every.index((passes, 0)) + further, len(every) - 1)]
    cursor = plan.cursor(*divmod(to[0], 3), step=to[1])
    rest = CHANGES[name](plan, cursor).resume(cursor)
    worker: Any = {"num_workers": 1, "prefetch_factor": ahead} if ahead else {}
    loader = loader_of(plan, **worker)
    for _ in range(passes):
        list(loader)
    batches = iter(loader)
    got = [next(batches) for _ in range(before)]
    wanted = of_plan(plan, passes)[:before]
    loader.move(plan.resume(plan.cursor(*divmod(passes, 3), step=0)))
    loader.move(CHANGES[name](plan, cursor))
    assert cursor.position == loader.cursor.position
    if 0 < before < STEPS:
        left = list(batches)
        assert bool(left) == (to[0] == passes)
        got += left
    for number in range(passes + bool(before), 6):
        if named:
            loader.set_epoch(number)
        if loader.cursor.epoch < 2:
            got += list(loader)
    for number in range(to[0], 6):
        wanted += of_plan(rest, number, start=rest.steps(*divmod(number, 3)).start)
    assert wanted == got


def test_what_a_move_refuses_changes_nothing() -> None:
    """A plan of another order or world; the loop reads on as if nobody had asked."""
    loader = loader_of(PLAN)
    batches, got = iter(loader), []
    others = [
        PLAN.replace(order=ip.Shuffle(103, seed=4)),
        PLAN.replace(world_size=3),
        PLAN.replace(sub_epochs=2),
        ip.Plan(ip.Shuffle(104, seed=3), world_size=2, batch_size=5, sub_epochs=3),
    ]
    for batch in batches:
        got.append(batch)
        for other in others:
            with pytest.raises(ip.IndexPlanError):
                loader.move(other)
    assert of_plan(PLAN, 0) == got


def test_a_ledger_has_each_plan_of_the_run(tmp_path: Path) -> None:
    """Every sample of two epochs is read once in each, and each step has its own batch size.

    Moves to the plan that is read change nothing, not even at the last step of a pass.
    """
    path, plan = tmp_path / "run.ledger", ip.Plan(ip.Shuffle(103, seed=3), batch_size=5)
    ours: dict[str, Any] = {"rank": 0, "world_size": 1}
    loader = loader_of(plan, ledger=path, **ours)
    steps = []
    for number, batch in enumerate((b for _ in range(2) for b in loader), 1):
        steps.append(batch)
        size = 2 + number % 5
        loader.move(plan.replace(batch_size=size) if number in (4, 9, 30) else loader.plan)
        if number == 12:
            state = loader.state_dict()
    check_steps(path, steps)
    assert {2} == {*Counter(index for batch in steps for index in batch).values()}
    resumed = loader_of(plan.replace(batch_size=6), ledger=path, **ours)
    resumed.load_state_dict(state)
    assert sorted(i for b in steps[12:] for i in b) == sorted(
        i for _ in range(2) for b in resumed for i in b
    )


def test_a_step_between_its_repeats_needs_as_many_units() -> None:
    """Its repeats go on under another plan with the same global batch, and no other."""
    plan = ip.Plan(ip.Sequential(24), world_size=2, global_batch_size=6)
    loader = loader_of(plan, again=3)
    batches = iter(loader)
    got = [next(batches)]
    with pytest.raises(ip.IndexPlanError, match="the global batch must be 6 units"):
        loader.move(plan.replace(global_batch_size=4))
    loader.move(plan.replace(remainder="drop"))
    got += [next(batches) for _ in range(3)]
    assert [[3, 4, 5]] * 3 + [[9, 10, 11]] == got


@given(jump=st.integers(1, 40), at=st.integers(1, 20), again=st.booleans(), late=st.booleans())
@settings(max_examples=10, deadline=None)
def test_a_ledger_shows_where_a_run_has_jumped(
    jump: int, at: int, again: bool, late: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Steps are those of the loop, what was skipped is counted; states are taken at any step."""
    path = tmp_path_factory.mktemp("jumps") / "run.ledger"
    plan = ip.Plan(ip.Shuffle(103, seed=3), world_size=1, batch_size=5)
    loader = loader_of(plan, ledger=path, rank=0, world_size=1)
    steps, batches = [], iter(loader)
    for _ in range(at):
        steps.append(next(batches))
    saved = loader.state_dict()
    if late:  # the steps up to the end of the epoch become void
        list(batches)
        loader.load_state_dict(saved)
    place = saved["cursor"]["position"]
    to = plan.cursor_at(place + 5 * jump)
    loader.move(plan.resume(to))
    if again:  # in another process, before a step was read
        state = loader.state_dict()
        del batches
        loader = loader_of(plan, ledger=path, rank=0, world_size=1)
        loader.load_state_dict(state)
    while loader.cursor.epoch < 3:
        steps += list(loader)
    last = loader.state_dict()["ledger"]
    ledger = check_steps(path, steps)
    assert ledger.verify(last).ok
    account = ledger.account()
    assert (5 * jump, 309 - 5 * jump) == (account.num_skipped, account.num_read)


def test_a_jump_to_where_no_step_of_its_pass_is_left(tmp_path: Path) -> None:
    """The next pass follows, as under the resumed plan, and the ledger has it."""
    path, ours = tmp_path / "run.ledger", {"rank": 0, "world_size": 1}
    plan = ip.Plan(ip.Shuffle(103, seed=3), world_size=1, batch_size=20, remainder="drop")
    loader = loader_of(plan, ledger=path, **ours)
    steps = [next(iter(loader))]
    later = plan.replace(batch_size=40).resume(plan.cursor(0, step=4))
    loader.move(later)
    steps += [batch for _ in range(2) for batch in loader]
    wanted = of_plan(plan, 0, rank=0)[:1] + of_plan(later, 1, rank=0)
    loader.state_dict()
    check_steps(path, steps)
    assert wanted == steps[: len(wanted)]


def test_a_run_that_jumped_at_once_starts_over(tmp_path: Path) -> None:
    """A state of before the jump, or a loader without one, makes void what was read past it."""
    path, plan = tmp_path / "run.ledger", PLAN.replace(world_size=1)
    later = plan.resume(plan.cursor(0, 0, step=3))
    state: dict[str, Any] = {}
    for number in range(3):
        loader = loader_of(plan, ledger=path, rank=0, world_size=1)
        if number == 0:
            state = loader.state_dict()
            loader.move(later)
        if number == 1:
            loader.load_state_dict(state)
        batches = iter(loader)
        told = number == 2  # where no state says that this is meant
        said: Any = pytest.warns(UserWarning, match="none of the steps in it count")
        with said if told else nullcontext():
            got = [next(batches) for _ in range(2)]
        loader.state_dict()
        del batches, loader
        assert 2 * number == check_steps(path, got).account().num_void_steps
