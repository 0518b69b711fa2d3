"""What a run hears of its shards while it reads: how many were fetched, and what waited."""

from __future__ import annotations

import warnings
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
    """A logger hears of a pass's first batch and of its end; workers count, too."""
    plan, heard = plan_of(shards), list[Fetched]()
    made.append(
        ShardedDataset(
            shards, rows_of, cache_dir=tmp_path, cache_bytes=10**8, on_metrics=heard.append
        )
    )
    method = "fork" if num_workers else None
    loader = PlanLoader(made[0], plan, num_workers=num_workers, multiprocessing_context=method)
    for number in range(2):
        loader.set_epoch(number)
        assert plan.steps(number).stop == len(list(loader))
        assert made[0].report() == heard[-1]
    assert len(heard) >= 3
    read = len(ip.reads(plan, shards, epoch=0).shards)
    assert heard[-1].num_fetches >= read
    assert heard[-1].num_stalls >= 1
    assert heard[-1].num_stalls + heard[-1].num_hits >= read
    assert 0 == heard[-1].num_retries
    assert all(
        getattr(a, name) <= getattr(b, name) for a, b in pairwise(heard) for name in Fetched._fields
    )


def test_metrics_of_a_logger_that_fails(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path
) -> None:
    """An error of the logger is a warning; the run continues, and the logger is called again."""

    def fail(_: Any) -> None:
        raise ConnectionError("no network")

    plan = plan_of(shards)
    made.append(
        ShardedDataset(shards, rows_of, cache_dir=tmp_path, cache_bytes=10**8, on_metrics=fail)
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert plan.steps(0).stop == len(list(PlanLoader(made[0], plan)))
    assert 2 <= len(said)
    assert {str(each.message) for each in said} == {
        "on_metrics must not raise an error; got ConnectionError('no network'); the run continues, "
        "and it is called again: correct it to see what is fetched"
    }
