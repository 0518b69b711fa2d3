"""How much room shards get on disk, what the plan reads at a time, and what a run hears of it."""

from __future__ import annotations

import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import indexplan as ip
from indexplan_fetch import Fetched, ShardFile
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet
from tests.together.sharded_runs import first_rows, live_bytes, on_disk, write_shards


class Usage(NamedTuple):
    """What shutil says of a disk."""

    total: int
    used: int
    free: int


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """A dozen arrays in files of one to three blocks."""
    folder, first = tmp_path_factory.mktemp("data"), 0
    for number, size in enumerate(np.random.default_rng(0).integers(300, 1200, 12).tolist()):
        np.save(folder / f"{number:02}.npy", np.arange(first, first + size))
        first += size
    return ip.shard_sizes(folder / "*.npy")


def rows_of(file: ShardFile) -> Any:
    """Return the rows of a file."""
    return np.load(file.path, mmap_mode="r")


def plan_of(shards: ip.Shards) -> ip.Plan:
    """Return a plan that reads some six shards at a time."""
    order = ip.ShardShuffle(shards, lanes=2, stripe=200, seed=1)
    return ip.Plan(order, world_size=1, batch_size=100, remainder="drop")


def read(data: ShardedDataset, plan: ip.Plan) -> int:
    """Read an epoch; return the most bytes that its shards take on disk after a batch."""
    most = 0
    for step, batch in enumerate(PlanLoader(data, plan)):
        assert plan.batch(0, step=step, rank=0).tolist() == batch.tolist()
        most = max(most, on_disk(data.folder.path.parent))
    return most


def test_room_that_the_plan_needs(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path
) -> None:
    """Without cache_bytes each shard is fetched once, and the folder holds little beside."""
    plan = plan_of(shards)
    made.append(ShardedDataset(shards, rows_of, cache_dir=tmp_path, ahead=2))
    most = read(made[0], plan)
    assert int(ip.traffic(plan, shards).downloads.sum()) == made[0].report().num_samples
    largest = max(shards.num_bytes)
    assert most <= live_bytes(plan, shards, range(1)) + 4 * largest
    assert on_disk(tmp_path) < sum(-(-each // 4096) * 4096 for each in shards.num_bytes)


def test_room_of_row_groups(made: list[ShardedDataset], tmp_path: Path) -> None:
    """Row groups, whose sizes footers tell, are fetched once, too."""
    files = write_shards(tmp_path / "data", num=10, width=40)
    shards = ip.shard_sizes(f"{files.path}/*.parquet")
    order = ip.ShardShuffle(shards, lanes=4, stripe=64, seed=3)
    plan = ip.Plan(order, world_size=1, batch_size=16, remainder="drop")
    made.append(ShardedDataset(shards, open_parquet, cache_dir=tmp_path / "cache", ahead=2))
    found = [batch["id"].tolist() for batch in PlanLoader(made[0], plan)]
    assert [each.tolist() for each in plan.batches(0, rank=0)] == found
    assert len(ip.reads(plan, shards, epoch=0).shards) == made[0].report().num_fetches


def test_too_little_room(shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path) -> None:
    """Who gives too little hears how much would do; with that, nothing is said."""
    plan = plan_of(shards)
    live = live_bytes(plan, shards, range(1))
    expected = (
        rf"cache_bytes must be at least {live}, the bytes of the shards that this node reads at a "
        rf"time; got {live // 2}; pass (\d+), with 2 shards ahead, or leave it out: now shards are "
        "downloaded again and again"
    )
    made.append(
        ShardedDataset(shards, rows_of, cache_dir=tmp_path / "a", cache_bytes=live // 2, ahead=2)
    )
    with pytest.warns(UserWarning, match="^cache_bytes must be at least") as said:
        read(made[0], plan)
    found = re.fullmatch(expected, str(said[0].message))
    assert 1 == len(said)
    assert found is not None
    needed = int(ip.traffic(plan, shards).downloads.sum())
    assert made[0].report().num_samples > 1.2 * needed
    for enough in (live, int(found[1])):
        cache = tmp_path / str(enough)
        made.append(ShardedDataset(shards, rows_of, cache_dir=cache, cache_bytes=enough, ahead=2))
        read(made[-1], plan)
        assert needed == made[-1].report().num_samples


def test_disk_that_is_too_small(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with too little room is not filled, and what would do is said."""
    plan = plan_of(shards)
    live = live_bytes(plan, shards, range(1))

    def little(path: Path) -> Any:
        return Usage(live, 0, live - on_disk(path.parent))

    monkeypatch.setattr(shutil, "disk_usage", little)
    made.append(ShardedDataset(shards, rows_of, cache_dir=tmp_path, ahead=2))
    expected = (
        rf"the disk of cache_dir must hold {live}, the bytes of the shards that this node reads at "
        r"a time; got \d+, nine tenths of what is free; use a larger disk, or an order that reads "
        "fewer shards at a time: now shards are downloaded again and again"
    )
    with pytest.warns(UserWarning, match=f"^{expected}$"):
        most = read(made[0], plan)
    assert most <= live


def test_disk_without_room_for_a_shard(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not one shard fits, the batch that needs it raises, and says what would do."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**6, 0, 4000))
    made.append(ShardedDataset(shards, rows_of, cache_dir=tmp_path))
    taken = -(-shards.num_bytes[0] // 4096) * 4096
    with pytest.raises(ip.IndexPlanError) as error:
        made[0][0]
    assert str(error.value) == (
        f"cache_dir must have room for {taken} bytes, which shard 0 takes; got 3600, nine tenths "
        "of what is free on its disk; free some, pass a folder on a larger disk, or write "
        "smaller shards"
    )


def test_any_sample_without_a_plan(
    shards: ip.Shards, made: list[ShardedDataset], tmp_path: Path
) -> None:
    """Without a plan, all that is asked for stays, as far as the disk has room."""
    made.append(ShardedDataset(shards, rows_of, cache_dir=tmp_path))
    indices = first_rows(shards)[:10]
    for _ in range(2):
        assert indices == [int(made[0][index]) for index in indices]
    assert 10 == made[0].report().num_fetches


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
