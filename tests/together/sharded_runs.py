"""Shards that are fetched, and ranks that read them, each in its own process."""

from __future__ import annotations

import atexit
import io
import multiprocessing
import os
import runpy
import sys
import tarfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.distributed as dist

import indexplan as ip
from indexplan_fetch import ShardFile
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet, open_tar
from tests.support import refusals
from tests.support.forked import Forked, Forks

BLOCK = 4096


def write_numbers(path: Path, numbers: Sequence[int] | np.ndarray) -> None:
    """Write numbers as an array, or as a tar of as many samples with the same keys and sizes."""
    if path.suffix == ".npy":
        np.save(path, numbers)
        return
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for row, number in enumerate(numbers):
            member = tarfile.TarInfo(f"{row:06}.id")
            data = b"%09d" % number
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


class Numbers(Sequence[int]):
    """The numbers in such a tar, each read when it is asked for."""

    def __init__(self, file: ShardFile) -> None:
        self.samples = open_tar(file)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, row: Any) -> Any:
        """Return a number."""
        return int(self.samples[row]["id"])


def write_shards(
    folder: Path,
    num: int = 30,
    rows: int = 60,
    width: int = 8,
    kind: str = "parquet",
    first: int = 0,
) -> ip.Shards:
    """Write files of different sizes, of Parquet with a column id, arrays or tars.

    Their values count through them all.
    """
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    for number, size in enumerate(random.integers(rows // 2, rows * 3 // 2, num).tolist()):
        path = folder / f"{number:04}.{kind}"
        ids = np.arange(first, first + size)
        if kind == "parquet":
            noise = [random.bytes(width) for _ in ids]
            table = pa.table({"id": ids, "noise": noise})
            pq.write_table(table, path, row_group_size=25, compression="none")
        else:
            write_numbers(path, ids)
        first += size
    return ip.shard_sizes(folder / f"*.{kind}", whole_files=True)


def rows_of(file: ShardFile) -> Any:
    """Return the rows of an array's file, or of a tar of numbers."""
    return Numbers(file) if file.path.endswith(".tar") else np.load(file.path)


class Opened:
    """Makes datasets that share a folder, and ends the threads that fetch for them."""

    def __init__(self, cache_dir: Path) -> None:
        self.cache_dir = cache_dir
        self.made: list[ShardedDataset] = []

    def __call__(self, shards: ip.Shards, open_shard: Any = None, **changes: Any) -> ShardedDataset:
        """Make a dataset that tries a fetch twice, at once."""
        usual = open_parquet if shards.kind == "parquet" else rows_of
        options = {"cache_dir": self.cache_dir, "cache_bytes": 10**9, "tries": 2, **changes}
        self.made.append(ShardedDataset(shards, open_shard or usual, **options))
        self.made[-1].settings = self.made[-1].settings._replace(pause=0.01)
        return self.made[-1]

    def end(self) -> None:
        """End what fetches, as processes do at their end."""
        for each in self.made:
            each.stop()


def refused(data: ShardedDataset, index: int = 0) -> str:
    """Return the message with which a sample is refused."""
    return refusals.refused(data.__getitem__, index)


@cache
def forks() -> Forks:
    """Return what forks ranks, one for all tests of a process."""
    made = Forks("tests.together.sharded_forks")
    atexit.register(made.end)
    return made


def at(shards: ip.Shards, path: str) -> ip.Shards:
    """Return the same shards where a store has them."""
    return ip.Shards.from_json(shards.to_json(), path=path)


def first_rows(shards: ip.Shards) -> list[int]:
    """Return the first sample of each shard."""
    ends: list[int] = np.cumsum(shards.sizes.array, dtype=np.int64).tolist()
    return [0, *ends[:-1]]


def plan_of(shards: ip.Shards, world_size: int | None = None) -> ip.Plan:
    """Return a plan that reads few shards at a time."""
    order = ip.ShardShuffle(shards, lanes=4, stripe=64, seed=3)
    return ip.Plan(order, world_size=world_size, global_batch_size=16, remainder="drop")


def live_bytes(plan: ip.Plan, shards: ip.Shards, ranks: range) -> int:
    """Return the most bytes on disk of shards that some ranks read at a step or before and after.

    Counted by sets, batch by batch.
    """
    steps = [
        {s for r in ranks for s in shards.locate(plan.batch(0, step=t, rank=r))[0].tolist()}
        for t in range(plan.steps(0).stop)
    ]
    size = {s: -(-shards.num_bytes[s] // BLOCK) * BLOCK for read in steps for s in read}
    most = 0
    for t in range(len(steps)):
        live = set().union(*steps[: t + 1]) & set().union(*steps[t:])
        most = max(most, sum(size[s] for s in live))
    return most


def on_disk(folder: Path) -> int:
    """Return the bytes that files below a folder's shards take, however many change meanwhile."""
    total = 0
    for path in folder.glob("*/shards/*"):
        try:
            total += path.stat().st_blocks * 512
        except FileNotFoundError:
            continue
    return total


def read(
    text: str, path: str, cache_dir: str, cache_bytes: int, workers: int, methods: list[str]
) -> dict[str, Any]:
    """Read an epoch on this rank in lockstep with the others, as training does.

    Workers are started by a method for each rank.
    """
    dist.init_process_group("gloo")
    method = methods[dist.get_rank()]
    multiprocessing.set_forkserver_preload(["tests.together.sharded_runs"])
    shards = ip.Shards.from_json(text, path=path)
    dataset = ShardedDataset(shards, open_parquet, cache_dir=cache_dir, cache_bytes=cache_bytes)
    plan = plan_of(shards)
    loader = PlanLoader(dataset, plan, num_workers=workers, multiprocessing_context=method)
    ids, most = [], 0
    for batch in loader:
        ids.append(batch["id"].tolist())
        dist.all_reduce(torch.zeros(1))
        most = max(most, on_disk(Path(cache_dir)))
    dist.barrier()
    report = dataset.report()._asdict()
    dist.destroy_process_group()
    return {"ids": ids, "most": most, **report}


def read_alone(text: str, path: str, cache_dir: str, rank: int, world_size: int) -> list[list[int]]:
    """Read an epoch as one of the ranks of a node, whatever becomes of the others."""
    shards = ip.Shards.from_json(text, path=path)
    dataset = Opened(Path(cache_dir))(shards, ranks_per_node=world_size)
    loader = PlanLoader(dataset, plan_of(shards), rank=rank, world_size=world_size)
    return ids_of(loader)


def start_alone(shards: ip.Shards, place: str, cache: Path, rank: int, world_size: int) -> Forked:
    """Start such a rank."""
    arguments = shards.to_json(), place, str(cache), rank, world_size
    log = cache.parent / f"{rank}.log"
    return forks().start("tests.together.sharded_runs:read_alone", log, *arguments)


def run_script(script: str, *options: str) -> None:
    """Run a script as a rank; {node} in its options is the number of the rank's node."""
    node = os.environ["GROUP_RANK"]
    sys.argv = [script, *(each.replace("{node}", node) for each in options)]
    runpy.run_path(script, run_name="__main__")


def ids_of(loader: Iterable[Any]) -> list[list[int]]:
    """What a loader reads, as `expected` says it."""
    return [(batch["id"] if isinstance(batch, dict) else batch).tolist() for batch in loader]


def expected(plan: ip.Plan, rank: int) -> list[list[int]]:
    """What a rank reads in the first epoch."""
    return [plan.batch(0, step=step, rank=rank).tolist() for step in range(plan.steps(0).stop)]
