"""An error of a DataLoader's worker arrives as the error that a loop without workers raises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_fetch import ShardFile
from indexplan_torch import Bins, PlanBatchSampler, PlanLoader, ShardedDataset
from tests.adapters.small import Identity, refused
from tests.support.bins import Bins as BinsOf

PLAN = ip.Plan(ip.Sequential(12), world_size=1, batch_size=2)
WORKERS = pytest.mark.parametrize("num_workers", [0, 2])


class Lost(Identity):
    """A dataset whose files are gone."""

    def __getitem__(self, index: Any) -> Any:
        raise ip.PlanFileError(f"file {index}", "must be there", "none", "restore it")


@WORKERS
@pytest.mark.parametrize("own", [True, False])
def test_of_a_dataset(num_workers: int, own: bool) -> None:
    """Its type and sentence are the same; a worker's traceback is its cause."""
    if own:
        error = refused(PlanLoader(Lost(12), PLAN, rank=0, world_size=1, num_workers=num_workers))
    else:
        batches = PlanBatchSampler(PLAN, rank=0, world_size=1)
        error = refused(DataLoader(Lost(12), batch_sampler=batches, num_workers=num_workers))
    assert ip.PlanFileError is type(error)
    assert "file 0 must be there; got none; restore it" == str(error)
    if num_workers:
        assert "in DataLoader worker process" in str(error.__cause__)
        assert "in __getitem__\n" in str(error.__cause__)


@WORKERS
def test_of_bins(num_workers: int) -> None:
    """So does the adapter's own error about what a dataset returns."""
    plan = ip.Plan(BinsOf(4), world_size=1, batch_size=1)
    data = Bins(["word"] * plan.order.num_samples)
    loader = PlanLoader(data, plan, rank=0, world_size=1, num_workers=num_workers)
    assert str(refused(loader)) == (
        "the field 'input_ids' must hold numbers, to be joined; got 'word'; return dicts of "
        "tensors with an entry for each token, or pass a join of your own"
    )


def unreadable(file: ShardFile) -> Any:
    """Open a file of another format."""
    raise RuntimeError(f"another format than {file.shard}")


@WORKERS
def test_of_shards(num_workers: int, tmp_path: Path) -> None:
    """So does the error about a shard that cannot be opened."""
    np.save(tmp_path / "a.npy", np.arange(12))
    shards = ip.shard_sizes(f"{tmp_path}/*.npy")
    data = ShardedDataset(shards, unreadable, cache_dir=tmp_path / "cache", cache_bytes=10**6)
    plan = ip.Plan(ip.ShardShuffle(shards), world_size=1, batch_size=2)
    error = refused(PlanLoader(data, plan, rank=0, world_size=1, num_workers=num_workers))
    if data._fetcher is not None:
        data._fetcher.stop()
    assert ip.IndexPlanError is type(error)
    assert str(error).startswith(f"shard 0, {tmp_path}/a.npy, must be a file that open_shard opens")
    assert str(error).endswith("check the file in its place, and what open_shard does with it")
