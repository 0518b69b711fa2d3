"""Every trainer whose loader keeps a ledger: resumed, moved to another plan, and then asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist
from accelerate import Accelerator
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare
from tests.adapters.small import check_steps, loader_of, of_plan
from tests.trainers.drivers import EPOCHS, SAVED, TRAINERS, Rows, samples, train
from tests.trainers.ranks import run_ranks

STEPS = 11  # an epoch
ORDER = ip.Mixture(
    {"a": ip.Shuffle(30, seed=1), "b": ip.Shuffle(23, seed=2)}, weights={"a": 30, "b": 23}
)
PLAN = ip.Plan(ORDER, world_size=1, batch_size=5)
HERE = PLAN.cursor(1, step=SAVED - STEPS)  # the place of the checkpoint, or of the move
GONE = [3, 17, 44]
WITHOUT = PLAN.replace(order=ip.Without(ORDER, GONE, since=HERE))
WEIGHTED = PLAN.replace(order=ORDER.with_phase(HERE, {"a": 1, "b": 4}))
BY = pytest.mark.parametrize("by", TRAINERS)


def loader(
    folder: Path, plan: ip.Plan = PLAN, ledger: Any = "run.ledger", **options: Any
) -> PlanLoader:
    """Make the loader of a process; None and False are passed as they are."""
    ledger = ledger and folder / ledger
    return PlanLoader(Rows(), plan.replace(world_size=None), ledger=ledger, **options)


@BY
@pytest.mark.parametrize("plan", [PLAN, WITHOUT], ids=["the same", "without samples"])
def test_a_resumed_training_can_be_asked(by: str, plan: ip.Plan, tmp_path: Path) -> None:
    """Each step that counts is in the ledger, what is left out is not, and all else is read."""
    first = train(by, loader(tmp_path), tmp_path, stop=SAVED + 3)
    rest = train(by, loader(tmp_path, plan), tmp_path, resumed=True)
    account = check_steps(tmp_path / "run.ledger", first[:SAVED] + rest).account()
    assert EPOCHS * 53 == account.num_read + account.num_excluded
    assert (account.num_dropped, account.num_left) == (0, 0)
    assert account.num_void_steps in (3, 4)  # a batch that the loop held when it stopped counts
    if plan is WITHOUT:
        assert not {sample for batch in rest for sample in batch} & set(GONE)


@BY
def test_a_checkpoint_of_a_run_with_a_ledger_needs_it(by: str, tmp_path: Path) -> None:
    """The trainer passes the error on, reads nothing, and goes on where the ledger is left."""
    train(by, loader(tmp_path), tmp_path, stop=SAVED + 3)
    before = (tmp_path / "run.ledger").read_bytes()
    with pytest.raises(ip.IndexPlanError, match="as the state is that of a run which keeps one"):
        train(by, loader(tmp_path, ledger=None), tmp_path, resumed=True, stop=0)
    rest = train(by, loader(tmp_path, ledger=False), tmp_path, resumed=True)
    whole = [PLAN.batch(1, step=step, rank=0).tolist() for step in range(4, STEPS)]
    assert whole == rest[: len(whole)]
    assert before == (tmp_path / "run.ledger").read_bytes()


@BY
@pytest.mark.parametrize("num_workers", [0, 2])
def test_weights_change_at_a_step(by: str, num_workers: int, tmp_path: Path) -> None:
    """The steps after it are those of the other plan, resumed there; the ledger has both."""
    made, open_ = loader(tmp_path, num_workers=num_workers), WEIGHTED.replace(world_size=None)
    read = train(by, made, tmp_path, move=lambda its: its.move(open_))
    plans = [PLAN, WEIGHTED.resume(HERE)]
    assert read == [
        plans[step >= SAVED].batch(step // STEPS, step=step % STEPS, rank=0).tolist()
        for step in range(STEPS * EPOCHS)
    ]
    ledger = check_steps(tmp_path / "run.ledger", read)
    assert 2 == len({ledger.at(step).plan.fingerprint for step in (0, SAVED)})


@BY
@pytest.mark.parametrize("num_steps", [1, 3, 7])  # inside the pass, and to its end
def test_a_trainer_jumps(by: str, num_steps: int, tmp_path: Path) -> None:
    """The steps between are skipped, in the ledger too, and the next pass is read whole."""
    made = loader(tmp_path)
    to = PLAN.replace(world_size=None).resume(PLAN.cursor(1, step=HERE.step + num_steps))
    read = train(by, made, tmp_path, move=lambda its: its.move(to))
    every = [batch.tolist() for epoch in range(EPOCHS) for batch in PLAN.batches(epoch, rank=0)]
    assert every[:SAVED] + every[SAVED + num_steps :] == read
    check_steps(tmp_path / "run.ledger", read)


TWO = ip.Plan(ip.Shuffle(53, seed=3), world_size=2, batch_size=5)
SMALLER = TWO.replace(batch_size=3).resume(TWO.cursor(0, step=4))


def on_two_ranks(folder: str) -> list[Any]:
    """Move on both ranks, to the same plan, and then to plans that differ."""
    dist.init_process_group("gloo")
    loader = PlanLoader(Rows(), TWO, ledger=f"{folder}/run.ledger")
    read: list[Any] = []
    try:
        for number, batch in enumerate(loader, 1):
            read.append(samples(batch))
            if number == 4:
                loader.move(SMALLER)
                read.append(loader.state_dict()["ledger"])
            if number == 5:
                loader.move(TWO.replace(batch_size=2 + dist.get_rank()))
    except ip.IndexPlanError as error:
        read.append(str(error))
    dist.destroy_process_group()
    return read


def test_all_ranks_move_or_none(tmp_path: Path) -> None:
    """Ranks read on with the same plan, and refuse plans that differ before they read them."""
    told = run_ranks(f"{__name__}:on_two_ranks", 2, str(tmp_path))
    for rank, (*batches, line, last, error) in enumerate(told):
        assert [TWO.batch(0, step=step, rank=rank).tolist() for step in range(4)] == batches
        assert SMALLER.batch(0, step=4, rank=rank).tolist() == last
        assert told[0][4] == line
        assert "ranks must read the same plan; got batch_size " in error  # 2 or 3 first


@pytest.mark.parametrize("prepared", [False, True])
@settings(max_examples=12, deadline=None)
@given(saved=st.integers(1, 14), more=st.integers(0, 7), ahead=st.booleans())
def test_a_state_that_is_loaded_in_a_loop_is_read_next(
    saved: int, more: int, ahead: bool, prepared: bool
) -> None:
    """Not the rest of the loop's pass, which the state does not name; nor what was fetched."""
    plan = ip.Plan(ip.Shuffle(103, seed=3), batch_size=5, sub_epochs=3)
    loader: Any = loader_of(plan, rank=0, world_size=1, num_workers=2 * ahead)
    loader = prepare(Accelerator(cpu=True), loader) if prepared else loader
    whole = plan.replace(world_size=1)
    every = [batch for number in range(6) for batch in of_plan(whole, number, rank=0)]
    got, state = [], None
    while loader.cursor.epoch < 2:
        for batch in loader:
            got.append(batch)
            if len(got) == saved:
                state = loader.state_dict()
            if len(got) == saved + more:
                loader.load_state_dict(state)
    assert every[: saved + more] + every[saved:] == got
