"""Loaders that keep a run's ledger, whose ranks are read one after another in this process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, reject
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from tests.adapters.small import check_steps, drawn_actions
from tests.histories.listing import Leg, Listed, act
from tests.support.examples import examples

PLAN = ip.Plan(ip.Shuffle(53, seed=3), batch_size=3)


def run(folder: Path, plan: ip.Plan, leg: Leg, states: dict[str, Any], **options: Any) -> Any:
    """Read a leg by all of its ranks, of which the first keeps the ledger; keep its states."""
    told: list[list[Any]] = []
    saved: list[dict[str, Any]] = []
    for rank in range(leg.ranks):
        ours = {"rank": rank, "world_size": leg.ranks}
        ours["ledger"] = False if rank else folder / "run.ledger"
        loader = PlanLoader(range(plan.order.num_samples), plan, **ours, **options)
        if leg.load:
            loader.load_state_dict(states[leg.load])
        told.append([])
        saved.append({})
        for name, got in act(loader, leg.actions):
            told[-1].append(None if name else got.tolist())
            if name:
                saved[-1][name] = got
    states.update(saved[0])
    assert all(unkept(each) == unkept(saved[0]) for each in saved)
    return told


def unkept(saved: dict[str, Any]) -> dict[str, Any]:
    """Return states without the line that they name."""
    return {
        name: {field: value for field, value in state.items() if field != "ledger"}
        for name, state in saved.items()
    }


@st.composite
def histories(draw: st.DrawFn) -> tuple[ip.Plan, list[Leg]]:
    """A plan, and legs that go on, return, and change the number of ranks."""
    plan = ip.Plan(
        ip.Shuffle(draw(st.integers(24, 60)), seed=draw(st.integers(0, 5))),
        batch_size=draw(st.integers(1, 3)),
        remainder=draw(st.sampled_from(["spread", "drop", "pad", "carry"])),
        sub_epochs=draw(st.integers(1, 2)),
    )
    names: list[str] = []
    legs = []
    for number in range(draw(st.integers(1, 4))):
        load = draw(st.sampled_from(names)) if names else None
        actions = drawn_actions(draw, number)
        names += [each for each in actions if isinstance(each, str)]
        legs.append(Leg(draw(st.integers(1, 4)), load, actions))
    return plan, legs


DROPPED = ip.Plan(ip.Shuffle(26), batch_size=1, remainder="drop")


@pytest.mark.slow
@examples(60)
@given(drawn=histories(), num_workers=st.just(0))
@example(  # too few for three
    drawn=(DROPPED, [Leg(2, None, (3, "a", 9, "b")), Leg(3, "b", (1, "c"))]), num_workers=0
)
@example(drawn=(PLAN, [Leg(1, None, (20, "a", 3)), Leg(2, "a", (5, "b"))]), num_workers=2)
def test_the_ledger_is_what_was_read(
    drawn: tuple[ip.Plan, list[Leg]], num_workers: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Through resumes, returns and other worlds, each step and sample is as the loops got them.

    Batches that workers draw ahead are not read yet.
    """
    folder = tmp_path_factory.mktemp("run")
    plan, legs = drawn
    listed, states = Listed(), dict[str, Any]()
    for leg in legs:
        try:
            listed.add(leg, run(folder, plan, leg, states, num_workers=num_workers))
        except ip.IndexPlanError as error:
            if error.what == "each step":  # too few units are left for so many ranks
                reject()
            raise
        listed.check(ip.Ledger(folder / "run.ledger"))


def test_steps_dealt_again_count_when_they_are_done(tmp_path: Path) -> None:
    """Of a step that is dealt three times the ledger has one, after the third."""
    plan = PLAN.replace(batch_size=None, global_batch_size=6)
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), plan, again=3, ledger=path)
    read(loader, 8)
    state = loader.state_dict()
    assert ip.Ledger(path).step == 2
    resumed = PlanLoader(range(53), plan, again=3, ledger=path)
    resumed.load_state_dict(state)
    assert len(list(resumed)) == 3 * 9 - 8
    check_steps(path, [batch.tolist() for batch in plan.replace(world_size=1).batches(0, rank=0)])


BY_ONE = PLAN.replace(batch_size=1)


def read(loader: PlanLoader, steps: int) -> list[list[int]]:
    """Read some batches, and leave the loop."""
    return [batch.tolist() for _, batch in zip(range(steps), loader, strict=False)]


def saved_after(steps: int, plan: ip.Plan, state: Any = None, **options: Any) -> Any:
    """Continue from a state, or start, read some steps, and return the state after them."""
    loader = PlanLoader(range(53), plan, **options)
    if state is not None:
        loader.load_state_dict(state)
    read(loader, steps)
    return loader.state_dict()


def test_a_state_of_a_ledger_is_not_read_on_without_it(tmp_path: Path) -> None:
    """Neither by a loader nor by a sampler: what they read would be missing from the ledger."""
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), PLAN, ledger=path)
    first = read(loader, 5)
    state = loader.state_dict()
    padded = BY_ONE.replace(remainder="pad")
    for reader in (PlanLoader(range(53), BY_ONE), PlanBatchSampler(BY_ONE), PlanSampler(padded)):
        with pytest.raises(ip.IndexPlanError, match="ledger must be passed to the loader, as the"):
            reader.load_state_dict(state)
        assert 0 == reader.run.cursor().position
    resumed = PlanLoader(range(53), BY_ONE, ledger=path)
    resumed.load_state_dict(state)
    check_steps(path, first + [batch.tolist() for batch in resumed])


def test_a_run_that_leaves_its_ledger_does_not_come_back(tmp_path: Path) -> None:
    """At places where the ledger stood as well, it had read other steps; a new file takes it."""
    path, new = tmp_path / "run.ledger", tmp_path / "new.ledger"
    loader = PlanLoader(range(53), PLAN, ledger=path)
    read(loader, 5)
    state = loader.state_dict()
    loader.load_state_dict(state)
    read(loader, 5)  # which are void for a run that loads the state
    before = path.read_bytes()
    for steps in (6, 15, 17):  # to a step's end, to the ledger's, and past it
        left = saved_after(steps, BY_ONE, state, ledger=False)
        assert "ledger" not in left
        assert "ledger" not in saved_after(2, PLAN, left)
        del loader
        loader = PlanLoader(range(53), PLAN, ledger=path)
        loader.load_state_dict(left)
        with pytest.raises(ip.IndexPlanError, match="must be empty, or begin where the state"):
            read(loader, 1)
        assert before == path.read_bytes()
    loader = PlanLoader(range(53), PLAN, ledger=new)
    loader.load_state_dict(left)
    account = check_steps(new, [batch.tolist() for batch in loader]).account(0)
    assert (15 + 17, 53 - 15 - 17) == (account.num_finished, account.num_read)


@pytest.mark.parametrize("cure", ["record", "move", "begin"])
@examples(16)
@given(at=st.integers(1, 9), gap=st.integers(1, 7))
def test_a_plan_past_where_the_run_stands_needs_a_word(
    cure: str, at: int, gap: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its cursor does not say whether the steps between were read or skipped; each cure does."""
    path = tmp_path_factory.mktemp("gap") / "run.ledger"
    first = read(PlanLoader(range(53), PLAN, ledger=path), at)
    past = PLAN.resume(PLAN.replace(world_size=1).cursor_at(3 * (at + gap)))
    ledger, before = ip.Ledger(path), path.read_bytes()
    with pytest.raises(ip.IndexPlanError, match="record what was read up to there; or, to skip"):
        read(PlanLoader(range(53), past, ledger=path), 1)
    assert before == path.read_bytes()
    given: Any = path
    if cure == "record":
        ledger.record(ledger.plan.resume(ledger.cursor), past.start)
        first = read(PlanLoader(range(53), PLAN), at + gap)
    elif cure == "begin":
        ledger.begin(past.replace(world_size=1).resume(past.start), skip=True)
        given = ledger
    loader = PlanLoader(
        range(53), PLAN.resume(ledger.cursor) if cure == "move" else past, ledger=given
    )
    if cure == "move":
        loader.move(past)
    found = check_steps(path, first + [batch.tolist() for batch in loader]).account()
    assert (0 if cure == "record" else 3 * gap) == found.num_skipped
    assert 53 == found.num_read + found.num_skipped


def test_a_first_state_is_loaded_again(tmp_path: Path) -> None:
    """Where the ledger begins nothing in it counts, so a state without a hash is no guess there.

    So a run that had no ledger gets one at a resume, from there on.
    """
    path = tmp_path / "run.ledger"
    state = saved_after(4, PLAN)
    for plan in (PLAN, BY_ONE, PLAN.replace(batch_size=7)):
        loader = PlanLoader(range(53), plan, ledger=path)
        loader.load_state_dict(state)
        got = read(loader, 3)
        del loader
        check_steps(path, got)
    before = path.read_bytes()
    for steps in (3, 5):
        with pytest.raises(ip.IndexPlanError, match="must be empty, or begin where the state"):
            saved_after(1, PLAN, saved_after(steps, PLAN), ledger=path)
    assert before == path.read_bytes()


@pytest.mark.parametrize("shared", [True, False])
def test_a_loader_for_validation_does_not_keep_the_ledger(shared: bool, tmp_path: Path) -> None:
    """A second loader that begins is refused before it makes the steps of the first one void."""
    path = tmp_path / "run.ledger"
    (tmp_path / "link").symlink_to(tmp_path)
    given = [ip.Ledger(path)] * 2 if shared else [path, tmp_path / "link" / "run.ledger"]
    loader, validation = (PlanLoader(range(53), PLAN, ledger=each) for each in given)
    first = read(loader, 18)
    before = path.read_bytes()
    with pytest.raises(ip.IndexPlanError, match="leave ledger= out of the loader for validation"):
        next(iter(validation))
    assert before == path.read_bytes()
    check_steps(path, first + read(loader, 18))
    del loader
    with pytest.warns(UserWarning, match="none of the steps in it count any longer") as warned:
        check_steps(path, read(validation, 2))  # it is the only one now
    assert [__file__] == [each.filename for each in warned]


def test_a_loader_that_loads_a_state_follows_the_first(tmp_path: Path) -> None:
    """It continues the run in the same process, and the first reads no more of it."""
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), PLAN, ledger=path)
    batches = iter(loader)
    got = [next(batches).tolist() for _ in range(5)]
    resumed = PlanLoader(range(53), BY_ONE, ledger=path)
    resumed.load_state_dict(loader.state_dict())
    more = iter(resumed)
    got += [next(more).tolist() for _ in range(4)]
    loader.state_dict()  # of where it stood, which is recorded
    before = path.read_bytes()
    with pytest.raises(ip.IndexPlanError, match="whose run another loader has continued"):
        next(batches)
    assert loader.state_dict()["cursor"]["step"] == 5  # it received nothing more
    loader.set_epoch(0)
    with pytest.raises(ip.IndexPlanError, match="whose run another loader has continued"):
        read(loader, 1)
    assert before == path.read_bytes()
    got += [batch.tolist() for batch in more]
    check_steps(path, got)
    loader.load_state_dict(resumed.state_dict())
    check_steps(path, got + read(loader, 2))


@pytest.mark.parametrize("cure", ["load", "another", "number"])
def test_a_run_that_starts_over_is_told_so_once(cure: str, tmp_path: Path) -> None:
    """A loader without a state makes all steps void; nothing is said where it is meant.

    A script that saves no state, but the number of its epoch, goes on with that.
    """
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), PLAN, ledger=path)
    assert 18 == len(read(loader, 18))
    state = loader.state_dict()
    read(loader, 3)
    del loader
    again = PlanLoader(range(53), PLAN, ledger=tmp_path / "b" if cure == "another" else path)
    if cure == "load":
        again.load_state_dict(state)
    if cure == "number":
        again.set_epoch(1)
    assert 18 == len(read(again, 18))  # where warnings are errors
    del again
    assert (0 if cure == "another" else 3) == ip.Ledger(path).account().num_void_steps
    over = PlanLoader(range(53), PLAN, ledger=path)
    with pytest.warns(UserWarning, match="load the state of a checkpoint first") as warned:
        num_read = [len(list(over)), len(list(over))]
    assert ([18, 18], 1, 36) == (num_read, len(warned), ip.Ledger(path).step)


AT_EXIT = """
import sys
import indexplan as ip
from indexplan_torch import PlanLoader
plan = ip.Plan(ip.Shuffle(53, seed=3), batch_size=3)
loops = [iter(PlanLoader(range(53), plan, ledger=path)) for path in sys.argv[1:5]]
for loop in loops:
    next(loop)
for path in sys.argv[2:4]:
    with open(path, "ab") as other:
        other.write(b"{}\\n")
first, resumed = (PlanLoader(range(53), plan, ledger=sys.argv[5]) for _ in range(2))
left_open = iter(first)
for step in range(5):
    next(left_open)
    if step == 1:
        state = first.state_dict()
resumed.load_state_dict(state)
next(iter(resumed))
"""


@pytest.mark.slow
def test_all_loops_are_recorded_when_the_process_ends(tmp_path: Path) -> None:
    """Two whose ledgers cannot be written are named, and the others have theirs.

    What a loop has read is recorded before another continues, though the loop is left open, as an
    interrupted trainer's; nothing is said of that.
    """
    paths = [str(tmp_path / f"{name}.ledger") for name in "abcde"]
    command = [sys.executable, "-c", AT_EXIT, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for path in paths[1:3]:
        assert f"{path} must have one writer at a time" in done.stderr
    assert not [path for path in (paths[0], *paths[3:]) if path in done.stderr]
    assert [1, 1] == [ip.Ledger(path).step for path in (paths[0], paths[3])]
    account = ip.Ledger(paths[4]).account()
    assert (3, 3) == (account.num_steps, account.num_void_steps)


def test_a_ledger_stays_up_to_date_and_travels(tmp_path: Path) -> None:
    """One that is passed can be asked at once; loaders that trainers make again keep it."""
    ledger = ip.Ledger(tmp_path / "run.ledger")
    loader = PlanLoader(range(53), PLAN, ledger=ledger)
    list(loader)
    assert ledger.step == ip.Ledger(tmp_path / "run.ledger").step == 18
    again = PlanLoader(loader.dataset, loader.plan, batch_sampler=loader.batch_sampler)
    assert again.run.recorder is loader.run.recorder
    travelled = pickle.loads(pickle.dumps(loader.run.recorder))  # noqa: S301 (our own)
    assert travelled.path == loader.run.recorder.path


def test_a_fork_of_the_process_writes_nothing(tmp_path: Path) -> None:
    """A child has the loop's place, but is not the run."""
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), PLAN, ledger=path)
    batches = iter(loader)
    next(batches)
    child = os.fork()
    if not child:
        try:
            loader.state_dict()
            batches.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert ip.Ledger(path).step == 0
    batches.close()
    assert ip.Ledger(path).step == 1
