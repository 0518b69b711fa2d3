"""What shards take of a node: room on disk, full and failing disks, and how many are kept open."""

from __future__ import annotations

import errno
import re
import resource
import shutil
from collections import Counter, OrderedDict
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan_fetch import Fetched, ShardFile, held
from indexplan_torch import PlanLoader, ShardedDataset
from tests.support.forked import results
from tests.support.refused_calls import refuse
from tests.together.sharded_runs import (
    BLOCK,
    Opened,
    expected,
    first_rows,
    forks,
    ids_of,
    live_bytes,
    on_disk,
    plan_of,
    refused,
    write_shards,
)

FREE = "free some space, or pass a smaller cache_bytes; whole shards are kept"
CHECK = "check its permissions and its file system"


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """Thirty files of Parquet of one or two blocks, in a folder."""
    return write_shards(tmp_path_factory.mktemp("shards") / "data", width=40)


def read(data: ShardedDataset, plan: ip.Plan, epoch: int = 0) -> int:
    """Read an epoch; return the most bytes that shards take on disk after a batch."""
    most, loader = 0, PlanLoader(data, plan)
    loader.set_epoch(epoch)
    for step, batch in enumerate(loader):
        assert plan.batch(epoch, step=step, rank=0).tolist() == batch["id"].tolist()
        most = max(most, on_disk(data.folder.path.parent))
    assert plan.steps(epoch).stop == step + 1
    return most


def test_room_that_the_plan_needs(dataset_of: Opened, shards: ip.Shards) -> None:
    """Without cache_bytes each shard is fetched once, and the folder holds little beside."""
    plan = plan_of(shards, 1)
    data = dataset_of(shards, cache_bytes=None, ahead=2)
    most = read(data, plan)
    assert int(ip.traffic(plan, shards).downloads.sum()) == data.report().num_samples
    blocks = [-(-each // BLOCK) * BLOCK for each in shards.num_bytes]
    assert most <= live_bytes(plan, shards, range(1)) + 4 * max(blocks)
    assert on_disk(dataset_of.cache_dir) < sum(blocks)


def test_too_little_room(dataset_of: Opened, shards: ip.Shards, tmp_path: Path) -> None:
    """Who gives too little hears how much would do; with that, nothing is said.

    Shards then come again and again, and batches are the plan's.
    """
    plan = plan_of(shards, 1)
    live = live_bytes(plan, shards, range(1))
    data = dataset_of(shards, cache_bytes=live // 2, ahead=2)
    with pytest.warns(UserWarning, match="^cache_bytes must be at least") as said:
        assert read(data, plan) <= live // 2
    found = re.fullmatch(
        rf"cache_bytes must be at least {live}, the bytes of the shards that this node reads at a "
        rf"time; got {live // 2}; pass (\d+), with 2 shards ahead, or leave it out: now shards are "
        "downloaded again and again",
        str(said[0].message),
    )
    assert 1 == len(said)
    assert found is not None
    needed = len(ip.reads(plan, shards, epoch=0).shards)
    assert data.report().num_fetches > 1.2 * needed
    for enough in (live, int(found[1])):
        data = dataset_of(shards, cache_dir=tmp_path / f"{enough}", cache_bytes=enough, ahead=2)
        read(data, plan)
        assert needed == data.report().num_fetches


def test_disk_that_is_too_small(
    dataset_of: Opened, shards: ip.Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with too little room is not filled, and what would do is said."""
    plan = plan_of(shards, 1)
    live = live_bytes(plan, shards, range(1))

    def little(path: Path) -> Any:
        return SimpleNamespace(free=live - on_disk(path.parent))

    monkeypatch.setattr(shutil, "disk_usage", little)
    data = dataset_of(shards, cache_bytes=None, ahead=2)
    expected = (
        rf"the disk of cache_dir must hold {live}, the bytes of the shards that this node reads at "
        r"a time; got \d+, nine tenths of what is free; use a larger disk, or an order that reads "
        "fewer shards at a time: now shards are downloaded again and again"
    )
    with pytest.warns(UserWarning, match=f"^{expected}$"):
        assert read(data, plan) <= live


def test_disk_without_room_for_a_shard(
    dataset_of: Opened, shards: ip.Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where not one shard fits, the batch that needs it raises, and says what would do."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=4000))
    taken = -(-shards.num_bytes[0] // BLOCK) * BLOCK
    assert refused(dataset_of(shards, cache_bytes=None)) == (
        f"cache_dir must have room for {taken} bytes, which shard 0 takes; got 3600, nine tenths "
        "of what is free on its disk; free some, pass a folder on a larger disk, or write "
        "smaller shards"
    )


def test_any_sample_without_a_plan(dataset_of: Opened, shards: ip.Shards) -> None:
    """Without a plan, all that is asked for stays, as far as the disk has room."""
    data, indices = dataset_of(shards, cache_bytes=None), first_rows(shards)[:10]
    for _ in range(2):
        assert indices == [data[index]["id"] for index in indices]
    assert 10 == data.report().num_fetches


@pytest.mark.parametrize("num_workers", [0, 2])
def test_metrics(dataset_of: Opened, shards: ip.Shards, num_workers: int) -> None:
    """Reports grow from batch to batch; workers count, too."""
    plan, data, heard = plan_of(shards, 1), dataset_of(shards), list[Fetched]()
    method = "fork" if num_workers else None
    loader = PlanLoader(data, plan, num_workers=num_workers, multiprocessing_context=method)
    for number in range(2):
        loader.set_epoch(number)
        before = len(heard)
        heard += [data.report() for _ in loader]
        assert plan.steps(number).stop == len(heard) - before
    read = len(ip.reads(plan, shards, epoch=0).shards)
    assert heard[-1].num_fetches >= read
    assert heard[-1].num_stalls >= 1
    assert heard[-1].num_stalls + heard[-1].num_hits >= read
    assert 0 == heard[-1].num_retries
    assert all(
        getattr(a, name) <= getattr(b, name) for a, b in pairwise(heard) for name in Fetched._fields
    )


def by_lru(plan: ip.Plan, shards: ip.Shards, room: int, epochs: int) -> int:
    """How many shards are fetched by a cache that drops what was used longest ago."""
    kept: OrderedDict[int, int] = OrderedDict()
    fetched = 0
    for epoch in range(epochs):
        for step in range(plan.steps(epoch).stop):
            for shard in dict.fromkeys(shards.locate(plan.batch(epoch, step=step, rank=0))[0]):
                if shard not in kept:
                    fetched += 1
                    kept[shard] = -(-shards.num_bytes[shard] // BLOCK) * BLOCK
                    while sum(kept.values()) > room:
                        kept.popitem(last=False)
                kept.move_to_end(shard)
    return fetched


def test_what_is_dropped(dataset_of: Opened, shards: ip.Shards) -> None:
    """Where an epoch does not fit, what the next one needs last is dropped: fewer come again."""
    plan = plan_of(shards, 1)
    room = live_bytes(plan, shards, range(1)) + 8 * BLOCK
    data = dataset_of(shards, cache_bytes=room, ahead=4)
    for epoch in range(4):
        assert read(data, plan, epoch) <= room
    data.stop()
    assert 30 < data.report().num_fetches < 0.9 * by_lru(plan, shards, room, 4)


def test_smaller_cache(dataset_of: Opened, shards: ip.Shards) -> None:
    """A run with a smaller cache drops what the run before it had, and uses what is left."""
    plan = plan_of(shards, 1)
    read(dataset_of(shards), plan)
    dataset_of.end()
    room = max(on_disk(dataset_of.cache_dir) // 2, live_bytes(plan, shards, range(1)))
    second = dataset_of(shards, cache_bytes=room, ahead=4)
    read(second, plan)
    second.stop()
    assert on_disk(dataset_of.cache_dir) <= room
    assert second.report().num_fetches < 30


def read_refused(data: str, whole_files: bool, cache: str, call: str, error: int) -> str:
    """Read a sample, while the kernel refuses a call, or files of more bytes; return the error."""
    shards = ip.shard_sizes(f"{data}/*.parquet", whole_files=whole_files)
    dataset = Opened(Path(cache))(shards)
    assert 0 == dataset[0]["id"]
    if call == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (error, error))
    else:
        refuse(call, error)
    return refused(dataset, len(dataset) - 1)


@pytest.mark.parametrize(
    ("whole_files", "call", "error", "got", "cure"),
    [
        (False, "write", errno.ENOSPC, "No space left on device", FREE),
        (False, "write", errno.EDQUOT, "Disk quota exceeded", FREE),
        (False, "fsync", errno.EIO, "Input/output error", CHECK),
        (True, "fsync", errno.EIO, "Input/output error", CHECK),
        (True, "limit", 1000, "File too large", FREE),  # in the middle of a file
    ],
)
def test_full_disk(
    dataset_of: Opened,
    shards: ip.Shards,
    tmp_path: Path,
    whole_files: bool,
    call: str,
    error: int,
    got: str,
    cure: str,
) -> None:
    """A disk that takes no more is named, no half shard gets its name, and what is whole stays."""
    name = "tests.together.test_sharded_room:read_refused"
    arguments = shards.path, whole_files, str(dataset_of.cache_dir), call, error
    (said,) = results([forks().start(name, tmp_path / "log", *arguments)])
    (folder,) = dataset_of.cache_dir.iterdir()
    assert f"cache_dir must be writable: {folder}; got '{got}'; {cure}" == said
    assert ["00000000.parquet"] == [path.name for path in (folder / "shards").iterdir()]
    again = dataset_of(ip.shard_sizes(f"{shards.path}/*.parquet", whole_files=whole_files))
    assert len(again) - 1 == again[len(again) - 1]["id"]


# What is kept open.


class Opener:
    """Opens arrays, and writes down which."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def __call__(self, file: ShardFile) -> Any:
        """Return the rows of a file."""
        with self.log.open("a") as log:
            log.write(f"{file.number}\n")
        return np.load(file.path)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> ip.Shards:
    """A hundred and fifty arrays of different sizes."""
    return write_shards(tmp_path_factory.mktemp("many") / "data", num=150, kind="npy")


def plan_of_many(shards: ip.Shards) -> ip.Plan:
    """Return a plan of eight ranks of one node, each of which reads eight lanes."""
    order = ip.ShardShuffle(shards, lanes=64, stripe=512, seed=1)
    return ip.Plan(order, world_size=8, batch_size=8, remainder="drop")


@pytest.mark.parametrize("num_workers", [0, 2])
def test_each_shard_is_opened_once(
    dataset_of: Opened, many: ip.Shards, tmp_path: Path, num_workers: int
) -> None:
    """A rank of eight reads dozens of shards at a time: each of its workers opens each once."""
    plan, each = plan_of_many(many), max(1, num_workers)
    data = dataset_of(many, Opener(tmp_path / "log"), ranks_per_node=8, ahead=150)
    loader = PlanLoader(data, plan, rank=3, world_size=8, num_workers=num_workers)
    read: list[set[int]] = [set() for _ in range(each)]
    for step, batch in enumerate(loader):
        drawn = plan.batch(0, step=step, rank=3)
        assert drawn.tolist() == batch.tolist()
        read[step % each] |= set(many.locate(drawn)[0].tolist())
    opened = Counter(map(int, (tmp_path / "log").read_text().split()))
    assert Counter(shard for some in read for shard in some) == opened
    assert 16 < 2 * held.read_at_a_time(plan, many, (0, 0), 3, each)


def test_counts_what_is_live(many: ip.Shards) -> None:
    """What a worker reads at a time is what sets say, batch by batch."""
    plan = plan_of_many(many)
    for each in (1, 3):
        steps = [
            set(many.locate(plan.batch(0, step=step, rank=3))[0].tolist())
            for step in range(0, plan.steps(0).stop, each)
        ]
        live = [
            len(set().union(*steps[: t + 1]) & set().union(*steps[t:])) for t in range(len(steps))
        ]
        assert max(live) == held.read_at_a_time(plan, many, (0, 0), 3, each)


def test_fewer_than_are_read(dataset_of: Opened, many: ip.Shards) -> None:
    """Who says to keep fewer open than are read at a time hears how many would do."""
    plan = plan_of_many(many)
    live = held.read_at_a_time(plan, many, (0, 0), 3, 1)
    expected = (
        f"keep_open must be at least {live}, the shards that each worker reads at a time; got "
        f"{live - 1}; pass {2 * live}, or leave it out: now shards are opened again and again"
    )
    few, enough = (
        PlanLoader(dataset_of(many, keep_open=kept, ranks_per_node=8), plan, rank=3, world_size=8)
        for kept in (live - 1, live)
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(expected)}$"):
        next(iter(few))
    next(iter(enough))


def test_more_than_memory_holds(
    dataset_of: Opened, shards: ip.Shards, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory does not hold the tables that are read at a time, fewer are kept, and said."""
    plan = plan_of(shards, 1)
    live = held.read_at_a_time(plan, shards, (0, 0), 0, 1)
    monkeypatch.setattr(held, "memory", lambda: 6000)  # of which half is for open shards
    with pytest.warns(UserWarning, match="^memory must hold") as said:
        assert expected(plan, 0) == ids_of(PlanLoader(dataset_of(shards), plan))
    assert 1 == len(said)
    assert re.fullmatch(
        rf"memory must hold the {live} shards that each worker reads at a time, some [\d.]+ kB "
        r"once they are opened; got 3 kB, half of this machine's memory divided by 1 process; "
        r"\d are kept open, and others are opened again and again: use smaller row groups, fewer "
        "columns, lanes or workers, or pass keep_open",
        str(said[0].message),
    )
