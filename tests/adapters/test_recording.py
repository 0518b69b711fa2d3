"""Loaders that keep a run's ledger, whose ranks are read one after another in this process."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch import PlanLoader
from tests.support.ledger_histories import Leg, Listed, act

PLAN = ip.Plan(ip.Shuffle(53, seed=3), batch_size=3)


def run(folder: Path, plan: ip.Plan, leg: Leg, states: dict[str, Any], **options: Any) -> Any:
    """Read a leg by all of its ranks; return what they tell, and keep the states they save."""
    told: list[list[Any]] = []
    saved: list[dict[str, Any]] = []
    for rank in range(leg.ranks):
        ours = {"rank": rank, "world_size": leg.ranks, "ledger": folder / "run.ledger"}
        loader = PlanLoader(range(plan.order.num_samples), plan, **ours, **options)
        if leg.load:
            loader.load_state_dict(states[leg.load])
        told.append([])
        saved.append({})
        for name, got in act(loader, leg.actions):
            told[-1].append(None if name else got.tolist())
            if name:
                saved[-1][name] = got
    assert all(each == saved[0] for each in saved)
    states.update(saved[0])
    return told


@st.composite
def histories(draw: st.DrawFn) -> tuple[ip.Plan, list[Leg]]:
    """A plan, and legs that go on, return, and change the number of ranks."""
    plan = ip.Plan(
        ip.Shuffle(draw(st.integers(20, 60)), seed=draw(st.integers(0, 5))),
        batch_size=draw(st.integers(1, 3)),
        remainder=draw(st.sampled_from(["spread", "drop", "pad", "carry"])),
        sub_epochs=draw(st.integers(1, 2)),
    )
    names: list[str] = []
    legs = []
    for number in range(draw(st.integers(1, 4))):
        load = draw(st.sampled_from(names)) if names else None
        actions: list[int | str] = []
        for part in range(draw(st.integers(1, 3))):
            names.append(f"{number}.{part}")
            actions += [draw(st.integers(1, 9)), names[-1]]
        if draw(st.booleans()):
            actions.append(draw(st.integers(1, 9)))  # read, and not saved
        legs.append(Leg(draw(st.integers(1, 4)), load, tuple(actions)))
    return plan, legs


DROPPED = ip.Plan(ip.Shuffle(26), batch_size=1, remainder="drop")


@settings(max_examples=30)
@given(drawn=histories())
@example(
    drawn=(DROPPED, [Leg(2, None, (3, "a", 9, "b")), Leg(3, "b", (1, "c"))])
)  # too few for three
def test_the_ledger_is_what_was_read(
    drawn: tuple[ip.Plan, list[Leg]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Through resumes, returns and other worlds, each step and sample is as the loops got them."""
    folder = tmp_path_factory.mktemp("run")
    plan, legs = drawn
    listed, states = Listed(), dict[str, Any]()
    for leg in legs:
        try:
            listed.add(leg, run(folder, plan, leg, states))
        except ip.IndexPlanError as error:
            if error.what == "each step":  # too few units are left for so many ranks
                reject()
            raise
        listed.check(ip.Ledger(folder / "run.ledger"), plan.order.num_samples)


def test_workers_write_nothing(tmp_path: Path) -> None:
    """Batches that workers draw ahead are not read yet."""
    listed, states = Listed(), dict[str, Any]()
    for leg in (Leg(1, None, (20, "a", 3)), Leg(2, "a", (5, "b"))):
        listed.add(leg, run(tmp_path, PLAN, leg, states, num_workers=2))
        listed.check(ip.Ledger(tmp_path / "run.ledger"), 53)


def test_steps_dealt_again_count_when_they_are_done(tmp_path: Path) -> None:
    """Of a step that is dealt three times the ledger has one, after the third."""
    plan = PLAN.replace(batch_size=None, global_batch_size=6)
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), plan, again=3, ledger=path)
    batches = iter(loader)
    for _ in range(8):
        next(batches)
    state = loader.state_dict()
    assert ip.Ledger(path).step == 2
    resumed = PlanLoader(range(53), plan, again=3, ledger=path)
    resumed.load_state_dict(state)
    assert sum(1 for _ in resumed) == 3 * 9 - 8
    ledger = ip.Ledger(path)
    assert ledger.step == 9
    assert [[0], [1]] == [sorted({len(ledger.reads(j)) - 1 for j in range(53)}), [1]]
    assert ledger.verify().ok


def test_a_state_from_before_the_ledger_begins_it(tmp_path: Path) -> None:
    """A run that had no ledger gets one at a resume, from there on."""
    loader = PlanLoader(range(53), PLAN)
    batches = iter(loader)
    first = [next(batches).tolist() for _ in range(4)]
    resumed = PlanLoader(range(53), PLAN, ledger=tmp_path / "run.ledger")
    resumed.load_state_dict(loader.state_dict())
    rest = [batch.tolist() for batch in resumed]
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert rest == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]
    assert sorted(sum(first + rest, [])) == list(range(53))
    assert ledger.verify().ok


def test_a_run_goes_on_by_the_number_of_its_epoch(tmp_path: Path) -> None:
    """A script that saves no state, but the epoch, goes on with it, and steps past it are void."""
    path = tmp_path / "run.ledger"
    loader = PlanLoader(range(53), PLAN, ledger=path)
    list(loader)
    for _ in zip(range(3), loader, strict=False):
        pass
    again = PlanLoader(range(53), PLAN, ledger=path)
    again.set_epoch(1)
    list(again)
    assert (
        f"{path}: 36 steps in 2 segments, 1 plan, 1 return to a checkpoint, 3 void"
        == str(ip.Ledger(path)).splitlines()[0]
    )


def test_a_ledger_object_stays_up_to_date(tmp_path: Path) -> None:
    """A Ledger that is passed can be asked at once, and names the data in its lines."""
    np.save(tmp_path / "data.npy", np.zeros(53))
    data = ip.Dataset.scan(tmp_path / "data.npy")
    ledger = ip.Ledger(tmp_path / "run.ledger", data=data)
    loader = PlanLoader(range(53), PLAN, ledger=ledger)
    list(loader)
    assert ledger.step == 18
    assert ip.Ledger(tmp_path / "run.ledger", data=data).step == 18


def test_a_rebuilt_loader_keeps_the_ledger(tmp_path: Path) -> None:
    """Trainers make a loader again from its parameters, around the same batch sampler."""
    loader = PlanLoader(range(53), PLAN, ledger=tmp_path / "run.ledger")
    again = PlanLoader(
        loader.dataset, loader.plan, ledger=loader.ledger, batch_sampler=loader.batch_sampler
    )
    assert again.feed.recorder is loader.feed.recorder
    travelled = pickle.loads(pickle.dumps(loader.feed.recorder))  # noqa: S301 (our own)
    assert travelled.path == loader.feed.recorder.path


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
