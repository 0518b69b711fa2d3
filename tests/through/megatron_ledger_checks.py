"""A ledger under Megatron: in its groups of ranks, and its checkpoints; see .ci/run."""

from __future__ import annotations

import argparse
import atexit
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import indexplan as ip
from indexplan_torch.megatron import datasets_provider
from tests.support.ledger_histories import Listed
from tests.trainers.ranks import run_ranks

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of Megatron, about what is not installed
    from megatron.core import parallel_state
    from megatron.core.rerun_state_machine import RerunDataIterator

pytestmark = pytest.mark.filterwarnings("ignore")  # Megatron's own, of what is not installed

LEFT_OPEN: list[Any] = []  # so that no iterator ends with its function, before it is killed


def kept_in_groups(
    tp: int, pp: int, iteration: int, steps: int, killed: bool, folder: str
) -> list[Any]:
    """Train a rank from an iteration on, save, and read a step more; return what it has read."""
    torch.distributed.init_process_group("gloo")
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=pp,
        create_gloo_process_groups=True,
    )
    consumed = {"consumed_train_samples": 8 * iteration, "consumed_valid_samples": 0}
    args = argparse.Namespace(
        micro_batch_size=2,
        num_workers=0,
        dataloader_type="external",
        iteration=iteration,
        dataloader_save=folder,
        **consumed,
    )
    pair, ledger = (range(60), ip.Shuffle(60, seed=1)), f"{folder}/run.ledger"
    made, *_ = datasets_provider(pair, args=args, ledger=ledger)([0, 0, 0])
    train, read = RerunDataIterator(made), []
    dp, num = (
        parallel_state.get_data_parallel_rank(),
        parallel_state.get_data_parallel_world_size(),
    )
    # for batches: others get them from it
    asked = parallel_state.get_tensor_model_parallel_rank() == 0
    first = asked and parallel_state.is_pipeline_first_stage()
    for step in range(steps + 1):
        if first and step == steps:  # what Megatron's maybe_save_dataloader_state does
            place = Path(folder, f"iter_{iteration + steps:07d}", "mp_rank_00" + "_000" * (pp > 1))
            place.mkdir(parents=True, exist_ok=True)
            state = {"dataloader_state_dict": train.iterable.save_state()}
            torch.save(state, place / f"train_dataloader_dprank{dp:03d}.pt")
        if asked:
            read += [next(train).tolist() for _ in range(8 // (2 * num))]
    torch.distributed.barrier()
    LEFT_OPEN.append(train)
    if not killed:  # what `run_ranks` leaves out, as it ends processes at once
        torch.distributed.destroy_process_group()
        atexit._run_exitfuncs()
    return [first, dp, read]


def test_the_ledger_in_megatrons_groups(tmp_path: Path) -> None:
    """Checkpoints carry it, through kills, other groups of ranks, and returns to two of them."""
    saved: dict[int, list[Any]] = {0: []}
    for processes, tp, pp, iteration, steps, killed in [
        (4, 2, 1, 0, 2, True),
        (2, 1, 2, 2, 2, False),
        (2, 1, 1, 2, 3, False),  # the steps up to iteration 4 are void
        (2, 2, 1, 4, 2, True),  # and count again
    ]:
        given = tp, pp, iteration, steps, killed, str(tmp_path)
        told = run_ranks(f"{__name__}:kept_in_groups", processes, *given)
        reads = [read for _, read in sorted((dp, read) for first, dp, read in told if first)]
        assert all(read in ([], reads[dp]) for _, dp, read in told)
        read = saved[iteration] + [[*step] for step in zip(*reads, strict=True)]
        each = 8 // (2 * len(reads))
        saved[iteration + steps] = read[: len(saved[iteration]) + steps * each]
        ledger = ip.Ledger(tmp_path / "run.ledger")
        Listed(saved[iteration + steps] if killed else read).check(ledger, 60)


def kept(monkeypatch: pytest.MonkeyPatch, folder: Path, iteration: int, **given: Any) -> Any:
    """Return the iterator of a job of one rank, as Megatron makes it from a checkpoint."""
    monkeypatch.setattr(parallel_state, "_MPU_DATA_PARALLEL_WORLD_SIZE", 1)
    monkeypatch.setattr(parallel_state, "_MPU_DATA_PARALLEL_RANK", 0)
    numbers = dict.fromkeys(("num_workers", "consumed_valid_samples"), 0)
    places = {"iteration": iteration, "consumed_train_samples": 4 * iteration}
    folders = {"dataloader_save": str(folder)}
    args = argparse.Namespace(**{"micro_batch_size": 4, **numbers, **places, **folders, **given})
    ledger = given.get("ledger", folder / "run.ledger")
    train, *_ = datasets_provider((range(60), ip.Shuffle(60)), args=args, ledger=ledger)([0, 0, 0])
    return train


def save(train: Any, folder: Path, iteration: int, place: str = "mp_rank_00") -> Path:
    """Save what a checkpoint holds of an iterator, as Megatron does."""
    path = folder / f"iter_{iteration:07d}" / place / "train_dataloader_dprank000.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    state = train if isinstance(train, dict) else train.save_state()
    torch.save({"dataloader_state_dict": state}, path)
    return path


def test_states_that_do_not_fit_the_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is guessed where a run's ledger, its checkpoint and the loader's state differ."""
    train = kept(monkeypatch, tmp_path, 0)
    for iteration in range(1, 4):
        next(train)
        path = save(train, tmp_path, iteration)
    del train
    ledger = tmp_path / "run.ledger"
    before = ledger.read_bytes()
    with pytest.raises(ip.IndexPlanError) as raised:
        kept(monkeypatch, tmp_path, 3, consumed_train_samples=16)
    message = (
        "consumed_train_samples must be 12, as the state of iteration 3 says; got 16; load the "
        "checkpoint that was saved with it"
    )
    assert message == str(raised.value)
    with pytest.raises(ip.IndexPlanError, match=r"^ledger must be passed to the loader, as the"):
        kept(monkeypatch, tmp_path, 3, ledger=None)
    next(kept(monkeypatch, tmp_path, 3, ledger=False))
    path.unlink()  # without it, only a ledger that begins there can go on
    with pytest.raises(ip.IndexPlanError, match="must be empty, or begin where the state stands"):
        next(kept(monkeypatch, tmp_path, 3))
    other = kept(monkeypatch, tmp_path, 3, ledger=tmp_path / "new.ledger")
    next(other)
    save(other, tmp_path, 2, "mp_rank_00_000")
    with pytest.raises(ip.IndexPlanError) as raised:
        kept(monkeypatch, tmp_path, 2)
    message = (
        f"states of a loader in {tmp_path / 'iter_0000002'} must be equal; got 2 that differ; "
        "remove those of an earlier run on other ranks"
    )
    assert message == str(raised.value)
    assert before == ledger.read_bytes()
    save({"workers": 3}, tmp_path, 4)  # of another loader
    next(kept(monkeypatch, tmp_path, 4, ledger=None))
    path = save({"plan": ip.Shuffle(3)}, tmp_path, 5)
    next(kept(monkeypatch, tmp_path, 5, ledger=None))
