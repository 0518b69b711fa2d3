"""What a run hears of its shards while it reads: how many were fetched, and what waited."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_fetch import Fetched, ShardFile
from indexplan_torch import PlanLoader, ShardedDataset


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """Two dozen arrays in files of one to three blocks."""
    folder, first = tmp_path_factory.mktemp("data"), 0
    for number, size in enumerate(np.random.default_rng(0).integers(300, 1200, 24).tolist()):
        np.save(folder / f"{number:02}.npy", np.arange(first, first + size))
        first += size
    return ip.shard_sizes(folder / "*.npy")


def rows_of(file: ShardFile) -> Any:
    """Return the rows of a file."""
    return np.load(file.path, mmap_mode="r")


@pytest.fixture
def made() -> Iterator[list[ShardedDataset]]:
    """Datasets, whose threads are ended."""
    found: list[ShardedDataset] = []
    yield found
    for each in found:
        if each._fetcher is not None:
            each._fetcher.stop()


def plan_of(shards: ip.Shards) -> ip.Plan:
    """Return a plan that reads some six shards at a time."""
    order = ip.ShardShuffle(shards, lanes=2, stripe=200, seed=1)
    return ip.Plan(order, world_size=1, batch_size=100, remainder="drop")


@pytest.mark.parametrize("num_workers", [0, 2])
def test_metrics(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path, num_workers: int
) -> None:
    """Reports grow from batch to batch; workers count, too."""
    plan, heard = plan_of(shards), list[Fetched]()
    made.append(ShardedDataset(shards, rows_of, cache_dir=tmp_path, cache_bytes=10**8))
    method = "fork" if num_workers else None
    loader = PlanLoader(made[0], plan, num_workers=num_workers, multiprocessing_context=method)
    for number in range(2):
        loader.set_epoch(number)
        before = len(heard)
        heard += [made[0].report() for _ in loader]
        assert plan.steps(number).stop == len(heard) - before
    read = len(ip.reads(plan, shards, epoch=0).shards)
    assert heard[-1].num_fetches >= read
    assert heard[-1].num_stalls >= 1
    assert heard[-1].num_stalls + heard[-1].num_hits >= read
    assert 0 == heard[-1].num_retries
    assert all(
        getattr(a, name) <= getattr(b, name) for a, b in pairwise(heard) for name in Fetched._fields
    )
