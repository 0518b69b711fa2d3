"""A PlanIterator that keeps a run's ledger; its ranks are read by turns in this process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch.megatron import PlanIterator
from tests.adapters.small import drawn_actions
from tests.support import ledger_histories
from tests.support.ledger_histories import Listed

ORDER = ip.Shuffle(50, seed=1)


def iterators(
    path: Any, world_size: int = 2, *, order: ip.Order = ORDER, **changes: Any
) -> list[PlanIterator]:
    """Return the iterators of all ranks, of which the first keeps a ledger there."""
    options = {"micro_batch_size": 3, "consumed_samples": 0, "world_size": world_size, **changes}
    return [
        PlanIterator(range(order.num_samples), order, rank=rank, ledger=kept, **options)
        for rank, kept in enumerate([path, *[False] * (world_size - 1)])
    ]


def step_of(ranks: list[PlanIterator], num: int = 1) -> list[list[list[int]]]:
    """Read some steps; return the samples of each rank in each."""
    return [[next(each).tolist() for each in ranks] for _ in range(num)]


def saved_by(ranks: list[PlanIterator]) -> dict[str, Any]:
    """Save a state on all ranks, and keep the first, which names the ledger's line."""
    state, *others = [each.save_state() for each in ranks]
    assert all(each == {name: state[name] for name in each} for each in others)
    kept: dict[str, Any] = json.loads(json.dumps(state))
    return kept


def check(path: Path, steps: list[list[list[int]]]) -> ip.Ledger:
    """Check that these are the steps that the ledger counts, each once; return it."""
    listed, ledger = Listed(steps=steps), ip.Ledger(path)
    listed.check(ledger, 50)
    return ledger


@dataclass(frozen=True)
class Leg(ledger_histories.Leg):
    """A job: with how many samples in a micro-batch, and whether it starts by the count alone."""

    size: int
    by_count: bool
    fails: bool


@st.composite
def histories(draw: st.DrawFn) -> tuple[ip.Order, list[Leg]]:
    """An order, and jobs that go on, return, and change their ranks and micro-batches."""
    order: ip.Order = ip.Shuffle(draw(st.integers(1, 60)), seed=draw(st.integers(0, 5)))
    if draw(st.booleans()):
        sources = {"a": order, "b": ip.Shuffle(draw(st.integers(1, 9)), seed=6)}
        order = ip.Mixture(sources, {"a": 2, "b": 1})
    names: list[str] = []
    legs = []
    for number in range(draw(st.integers(1, 4))):
        load = draw(st.sampled_from([*names, None])) if names else None
        actions = drawn_actions(draw, number)
        names += [each for each in actions if isinstance(each, str)]
        sizes = draw(st.integers(1, 4)), load, actions, draw(st.integers(1, 5))
        legs.append(Leg(*sizes, draw(st.booleans()), draw(st.booleans())))
    return order, legs


def read(path: Path, order: ip.Order, leg: Leg, listed: Listed, states: dict[str, Any]) -> Any:
    """Read a leg by all of its ranks; return what each tells, and keep the states they save."""
    before = listed.saved[leg.load] if leg.load else listed.steps
    # the count doesn't tell a branch of the run that was left from the one that counts
    by_count = leg.load is None or (leg.by_count and listed.steps[: len(before)] == before)
    consumed = sum(len(batch) for step in before for batch in step) if by_count else 0
    sizes = {"micro_batch_size": leg.size, "consumed_samples": consumed}
    ranks = iterators(path, leg.ranks, order=order, **sizes)
    for each in [] if by_count else ranks:
        each.load_state(states[leg.load or ""])
    told: list[list[Any]] = [[] for _ in ranks]
    for action in leg.actions:
        if isinstance(action, str):
            states[action] = saved_by(ranks)
            batches: Any = [[None] * leg.ranks]
        else:
            batches = step_of(ranks, action)
        for step in batches:
            for tells, batch in zip(told, step, strict=True):
                tells.append(batch)
        if leg.fails:
            ranks[0].close()  # as after an error on one rank: another loader reads on
    return told


@settings(max_examples=60)
@given(drawn=histories())
def test_the_ledger_is_what_was_read(
    drawn: tuple[ip.Order, list[Leg]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Each step is there once, through saves, returns, other ranks and other micro-batches."""
    path = tmp_path_factory.mktemp("run") / "run.ledger"
    order, legs = drawn
    listed, states = Listed(), dict[str, Any]()
    for leg in legs:
        listed.add(leg, read(path, order, leg, listed, states))
        listed.check(ip.Ledger(path), order.num_samples)


@pytest.mark.parametrize("by_count", [True, False])
def test_a_job_that_is_killed(by_count: bool, tmp_path: Path) -> None:
    """What it has saved is in the ledger, and what it read after that isn't, or is void."""
    path, saved = tmp_path / "run.ledger", tmp_path / "state"
    first = step_of(iterators(None), 4)
    child = os.fork()
    if not child:
        try:
            ranks = iterators(path)
            step_of(ranks, 4)
            saved.write_text(json.dumps(saved_by(ranks)))
            step_of(ranks, 3)
        finally:
            os._exit(0)  # nothing is written then
    os.waitpid(child, 0)
    check(path, first)
    state = json.loads(saved.read_text())
    ranks = iterators(path, 3, consumed_samples=24 if by_count else 0, micro_batch_size=2)
    for each in [] if by_count else ranks:
        each.load_state(state)
    more = step_of(ranks, 20)
    assert saved_by(ranks)["consumed_samples"] == 144
    assert check(path, first + more).step == 24


def test_a_job_without_states_that_is_killed(tmp_path: Path) -> None:
    """The ledger ends before the count then, which is no guess: it has to be told what was read."""
    path = tmp_path / "run.ledger"
    first = step_of(iterators(path), 4)
    before = path.read_bytes()
    message = (
        f"plan must be started where the run in {path} stood after one of its steps; got 'a start "
        "at (0, 0, 15, 30)'; load the checkpoint's state; or record what was read up to there; or, "
        "to skip it, use loader.move(plan) where the run stands, or ledger.begin(plan, skip=True)"
    )
    (killed,) = iterators(path, 1, micro_batch_size=2, consumed_samples=30)
    for _ in range(2):
        with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
            next(killed)
    assert before == path.read_bytes()
    ledger = ip.Ledger(path)
    ledger.record(ledger.plan, ledger.plan.cursor_at(30))  # on as many ranks as before
    more = step_of([killed], 3)
    del killed
    check(path, [*first, *step_of(iterators(None, consumed_samples=24)), *more])


def test_an_error_of_one_rank_is_in_no_line(tmp_path: Path) -> None:
    """It reads on with another loader, and its states stay those of the other ranks."""
    path = tmp_path / "run.ledger"

    class Failing:
        left = 3

        def __len__(self) -> int:
            return 50

        def __getitem__(self, index: int) -> int:
            if index % 5 == 0 and self.left:
                self.left -= 1
                raise OSError(index)
            return index

    given: dict[str, Any] = {"micro_batch_size": 3, "consumed_samples": 0, "world_size": 2}
    ranks = [
        PlanIterator(Failing(), ORDER, rank=0, ledger=path, **given),
        PlanIterator(range(50), ORDER, rank=1, ledger=False, **given),
    ]
    steps = []
    for number in range(30):
        batches = list[list[int]]()
        while not batches:
            with suppress(OSError):
                batches.append(next(ranks[0]).tolist())
        steps.append([*batches, next(ranks[1]).tolist()])
        if number % 7 == 6:
            saved_by(ranks)
            check(path, steps)
    # a plan, four states, and the ends of three epochs
    assert 8 == len(path.read_text().splitlines())


def test_workers_write_nothing(tmp_path: Path) -> None:
    """Batches that workers draw ahead are not read yet."""
    path = tmp_path / "run.ledger"
    ranks = iterators(path, 1, num_workers=2, prefetch_factor=3)
    steps = step_of(ranks, 20)
    saved_by(ranks)
    check(path, steps)
    ranks[0].close()
    check(path, steps)


def test_states_with_and_without_a_ledger(tmp_path: Path) -> None:
    """A run leaves its ledger only on purpose, and doesn't come back to it."""
    path, new = tmp_path / "run.ledger", tmp_path / "new.ledger"
    ranks = iterators(path)
    step_of(ranks, 4)
    state = saved_by(ranks)
    del ranks
    (without,) = iterators(None, 1)
    step_of([without])
    with pytest.raises(ip.IndexPlanError, match=r"^ledger must be passed to the loader, as the"):
        without.load_state(state)
    assert without.consumed_samples == 3
    (left,) = iterators(False, 1)
    left.load_state(state)
    step_of([left])
    later = saved_by([left])
    assert {"version", "consumed_samples", "order"} == {*later}
    before = path.read_bytes()
    (back,) = iterators(path, 1)
    back.load_state(later)
    with pytest.raises(ip.IndexPlanError, match="must be empty, or begin where the state stands"):
        next(back)
    assert before == path.read_bytes()
    (other,) = iterators(new, 1)
    other.load_state(later)
    steps = step_of([other], 9)
    saved_by([other])
    check(new, steps)
    with pytest.raises(ip.IndexPlanError, match="the hash of a line"):
        other.load_state({**later, "ledger": 7})
    check(new, [*steps, *step_of([other], 2)][:9])


def test_a_second_iterator_and_one_that_continues(tmp_path: Path) -> None:
    """One for validation is refused; one that loads a state goes on, and the first ends."""
    path = tmp_path / "run.ledger"
    (first,) = iterators(path, 1)
    steps = step_of([first], 5)
    (second,) = iterators(path, 1, consumed_samples=9)
    with pytest.raises(ip.IndexPlanError, match="leave ledger= out of the loader for validation"):
        next(second)
    second.load_state(saved_by([first]))
    steps += step_of([second], 2)
    for _ in range(2):
        with pytest.raises(ip.IndexPlanError, match="whose run another loader has continued"):
            next(first)
    first.close()
    with pytest.raises(ip.IndexPlanError, match="whose run another loader has continued"):
        next(first)
    first.load_state(saved_by([second]))
    check(path, steps)
    assert saved_by([first])["ledger"] == ip.Ledger(path).hash


def test_a_fork_of_the_process_writes_nothing(tmp_path: Path) -> None:
    """A child has the iterator's place, but is not the run."""
    path = tmp_path / "run.ledger"
    (iterator,) = iterators(path, 1)
    steps = step_of([iterator])
    child = os.fork()
    if not child:
        try:
            next(iterator)
            iterator.save_state()
        except ip.IndexPlanError:
            os._exit(3)
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    check(path, [])
    steps += step_of([iterator])
    saved_by([iterator])
    check(path, steps)


LEFT = """
import gc, os, sys
import indexplan as ip
from indexplan_torch.megatron import PlanIterator
def made():
    sizes = {"micro_batch_size": 2, "consumed_samples": 0}
    return PlanIterator(range(50), ip.Shuffle(50), **sizes, rank=0, world_size=1, ledger=path)
how, path = sys.argv[1:]
first = made()
next(first)
state = first.save_state()
next(first)
second = made()
second.load_state(state)
next(second)
if how == "collected":
    del first
    gc.collect()
if how == "forked" and not os.fork():
    del first
    gc.collect()
    sys.exit()  # which runs what is to run at the end
if how == "forked":
    os.wait()
next(second)
"""


@pytest.mark.parametrize("how", ["collected", "at exit", "forked"])
def test_an_iterator_that_another_continues_ends_in_silence(how: str, tmp_path: Path) -> None:
    """What it had read by then is recorded first, and void; nothing is said when it ends."""
    path = tmp_path / "run.ledger"
    command = [sys.executable, "-c", LEFT, how, str(path)]
    assert "" == subprocess.run(command, capture_output=True, text=True, check=True).stderr
    account = ip.Ledger(path).account()
    assert (3, 1) == (account.num_steps, account.num_void_steps)
