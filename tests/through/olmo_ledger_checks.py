"""A ledger under OLMo-core, where the loop is another than its Trainer's; see olmo_checks.py."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

import indexplan as ip
from tests.through.olmo_checks import LENGTH, ORDER, PlanDataLoader, loader, numbers, refuses
from tests.trainers.ranks import run_ranks

pytestmark = pytest.mark.filterwarnings("ignore")


def read(ours: PlanDataLoader, num: int) -> list[list[int]]:
    """Return the samples of some more steps of the epoch."""
    return [numbers(batch) for batch in islice(ours, num)]


def test_a_state_of_a_run_with_a_ledger_needs_it(tmp_path: Path) -> None:
    """Or it is left for good; a state without one starts another ledger where it stands."""
    path = tmp_path / "run.ledger"
    ours = loader(ledger=path, global_batch_size=4 * LENGTH)
    ours.reshuffle()
    read(ours, 2)
    state = ours.state_dict()
    assert ip.Ledger(path).hash == state["ledger"]
    without, left = (loader(global_batch_size=4 * LENGTH, ledger=each) for each in (None, False))
    before = without.state_dict()
    refuses(
        "ledger must be passed to the loader, as the state is that of a run which keeps one; got "
        "none; pass ledger=, where the run's file is, or ledger=False to go on without it for good",
        lambda: without.load_state_dict(state),
    )
    assert before == without.state_dict()
    left.load_state_dict(state)
    left.reshuffle()
    read(left, 1)
    state = left.state_dict()
    assert "ledger" not in state
    ours.load_state_dict(state)
    ours.reshuffle()
    with pytest.raises(ip.IndexPlanError, match="load a state that was saved with this ledger"):
        read(ours, 1)
    new = loader(ledger=tmp_path / "new.ledger", global_batch_size=4 * LENGTH)
    new.load_state_dict(state)
    new.reshuffle()
    batches = read(new, 2)
    ledger = ip.Ledger(tmp_path / "new.ledger")
    assert batches == [ledger.batch(step, 0).tolist() for step in range(2)]


def test_an_epoch_starts_over_only_without_a_ledger(tmp_path: Path) -> None:
    """Nor may it be left; the ledger keeps what was read, and the run goes on from a state."""
    path = tmp_path / "run.ledger"
    ours = loader(ledger=path, global_batch_size=12 * LENGTH)
    ours.reshuffle()
    steps = read(ours, 3)
    state, before = ours.state_dict(), path.read_bytes()
    for epoch, place in ((1, "epoch 0, sub-epoch 0, step 0, position 0"), (3, "epoch 2, ")):
        ours.reset()
        ours.reshuffle(epoch)
        stands = "must begin where the run in .* stands, at epoch 0, sub-epoch 0, step 3, position"
        with pytest.raises(ip.IndexPlanError, match=f"a pass {stands} 36; got {place}"):
            read(ours, 1)
        with pytest.raises(ip.IndexPlanError, match="a state must be saved where the run in"):
            ours.state_dict()
    assert before == path.read_bytes()
    ours.load_state_dict(state)
    ours.reshuffle()
    steps += read(ours, 9)
    ledger = ip.Ledger(path)
    assert steps == [ledger.batch(step, 0).tolist() for step in range(5)]
    assert 0 == ledger.account().num_void_steps


@pytest.mark.parametrize("num_workers", [0, 2])
def test_loops_that_are_left_open_are_recorded(num_workers: int, tmp_path: Path) -> None:
    """By the next loop, by a size and by a state, once each, whatever workers have drawn."""
    path = tmp_path / "run.ledger"
    ours = loader(ledger=path, global_batch_size=4 * LENGTH, num_workers=num_workers)
    ours.reshuffle()
    loops, steps = [], []
    for size in (4, 6, 6, 5):
        ours.global_batch_size = size * LENGTH
        loops.append(iter(ours))
        steps += [numbers(next(loops[-1])) for _ in range(2)]
    ours.state_dict()
    steps.append(numbers(next(loops[-1])))
    for loop in loops:
        loop.close()
    ledger = ip.Ledger(path)
    assert steps == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]
    assert 3 == len({ledger.at(step).plan.global_batch_size for step in range(ledger.step)})


def test_a_loop_that_another_has_followed_counts_no_more(tmp_path: Path) -> None:
    """It reads no more, and the state and the ledger are the other's."""
    ours = loader(ledger=tmp_path / "run.ledger", global_batch_size=4 * LENGTH)
    ours.reshuffle()
    first = iter(ours)
    next(first)
    second = iter(ours)
    next(second)
    ours.state_dict()
    with pytest.raises(ip.IndexPlanError, match="must be read by one loop at a time"):
        next(first)
    ours.state_dict()
    assert 2 == ip.Ledger(tmp_path / "run.ledger").step


def beside_each_other(folder: str) -> list[Any]:
    """Read on four ranks, of which two each differ only in tensor parallelism."""
    torch.distributed.init_process_group("gloo")
    ours = loader(
        dp_world_size=2,
        dp_rank=torch.distributed.get_rank() // 2,
        ledger=f"{folder}/run.ledger",
    )
    ours.reshuffle()
    steps = read(ours, 1)
    ours.global_batch_size = 10 * LENGTH
    steps += read(ours, 1)
    state = ours.state_dict()
    torch.distributed.barrier()  # the store is rank 0's
    return [state, steps]


def test_ranks_that_read_the_same_are_recorded_once(tmp_path: Path) -> None:
    """One of all writes, and all have the hash."""
    told = run_ranks(f"{__name__}:beside_each_other", 4, str(tmp_path))
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert 2 == ledger.step
    for rank, (state, steps) in enumerate(told):
        assert ledger.hash == state["ledger"]
        assert steps == [ledger.batch(step, rank // 2).tolist() for step in range(2)]


@pytest.mark.parametrize("resumed", [False, True])
def test_a_size_that_the_rest_of_an_epoch_does_not_fill(resumed: bool, tmp_path: Path) -> None:
    """Under "drop" it ends the epoch, until a smaller one is set; the ledger has what is read."""
    path = tmp_path / "run.ledger"
    ours = loader(ledger=path, global_batch_size=12 * LENGTH, remainder="drop")
    ours.reshuffle()
    steps = read(ours, 3)
    ours.global_batch_size = 16 * LENGTH
    assert ours.batches_processed == ours.total_batches
    assert [] == read(ours, 1)
    if resumed:
        state = ours.state_dict()
        del ours
        ours = loader(ledger=path, global_batch_size=15 * LENGTH, remainder="drop")
        ours.load_state_dict(state)
        ours.reshuffle()
        assert [] == read(ours, 1)
        assert state == ours.state_dict()
    ours.global_batch_size = 5 * LENGTH
    steps += read(ours, 9)
    ours.state_dict()
    assert ORDER.take(0, 0, 46).tolist() == sum(steps, [])
    ledger = ip.Ledger(path)
    assert steps == [ledger.batch(step, 0).tolist() for step in range(5)]
    assert ledger.verify().ok
