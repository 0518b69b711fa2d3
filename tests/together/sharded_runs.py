"""Ranks that read shards of a store: what test_sharded.py runs, each in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.distributed as dist

import indexplan as ip
from indexplan_torch import PlanLoader, ShardedDataset, open_parquet

BLOCK = 4096
ROOT = Path(__file__).parents[2]


def write_shards(folder: Path, num: int = 30, rows: int = 60, width: int = 8) -> ip.Shards:
    """Write Parquet files of different sizes, whose column id counts through them all."""
    folder.mkdir()
    first, random = 0, np.random.default_rng(1)
    for number, size in enumerate(random.integers(rows // 2, rows * 3 // 2, num).tolist()):
        noise = random.bytes(size * width)
        fields = {
            "id": np.arange(first, first + size),
            "noise": [noise[width * i : width * (i + 1)] for i in range(size)],
        }
        path = folder / f"{number:04}.parquet"
        pq.write_table(pa.table(fields), path, row_group_size=25, compression="none")
        first += size
    return ip.shard_sizes(folder / "*.parquet", whole_files=True)


def at(shards: ip.Shards, path: str) -> ip.Shards:
    """Return the same shards where a store has them."""
    return ip.Shards.from_json(shards.to_json(), path=path)


def plan_of(shards: ip.Shards, world_size: int | None = None) -> ip.Plan:
    """Return a plan that reads few shards at a time."""
    order = ip.ShardShuffle(shards, lanes=4, stripe=64, seed=3)
    return ip.Plan(order, world_size=world_size, global_batch_size=16, remainder="drop")


def live_bytes(plan: ip.Plan, shards: ip.Shards, ranks: range, epoch: int = 0) -> int:
    """Return the most bytes on disk of shards that some ranks read at a step or before and after.

    Counted by sets, batch by batch.
    """
    steps = [
        {s for r in ranks for s in shards.locate(plan.batch(epoch, step=t, rank=r))[0].tolist()}
        for t in range(plan.num_steps(epoch))
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
    text: str, path: str, cache_dir: str, cache_bytes: int, workers: int, method: str
) -> dict[str, Any]:
    """Read an epoch on this rank in lockstep with the others, as training does."""
    dist.init_process_group("gloo")
    shards = ip.Shards.from_json(text, path=path)
    dataset = ShardedDataset(shards, open_parquet, cache_dir=cache_dir, cache_bytes=cache_bytes)
    options = {"multiprocessing_context": method} if workers else {}
    loader = PlanLoader(dataset, plan_of(shards), num_workers=workers, **options)
    ids, most = [], 0
    for batch in loader:
        ids.append(batch["id"].tolist())
        dist.all_reduce(torch.zeros(1))
        most = max(most, on_disk(Path(cache_dir)))
    dist.barrier()
    report = dataset.report()._asdict()
    dist.destroy_process_group()
    return {"ids": ids, "most": most, **report}


def read_alone(text: str, path: str, cache_dir: str, rank: int, world_size: int, said: str) -> None:
    """Read an epoch as one of the ranks of a node, whatever becomes of the others."""
    os.environ.pop("RANK", None)
    shards = ip.Shards.from_json(text, path=path)
    dataset = ShardedDataset(
        shards, open_parquet, cache_dir=cache_dir, cache_bytes=10**9, ranks_per_node=world_size
    )
    plan = plan_of(shards)
    loader = PlanLoader(dataset, plan, rank=rank, world_size=world_size)
    with Path(said).open("w") as file:
        for batch in loader:
            file.write(f"{batch['id'].tolist()}\n")
            file.flush()


def run(*arguments: Any) -> subprocess.Popen[bytes]:
    """Start a rank that reads on, whatever becomes of others."""
    code = "import sys\nfrom tests.together.sharded_runs import read_alone\n"
    code += "text, path, cache, rank, size, said = sys.argv[1:]\n"
    code += "read_alone(open(text).read(), path, cache, int(rank), int(size), said)\n"
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT)


def expected(plan: ip.Plan, rank: int) -> list[list[int]]:
    """What a rank reads in the first epoch."""
    return [plan.batch(0, step=step, rank=rank).tolist() for step in range(plan.num_steps(0))]


def lines(path: Path) -> list[list[int]]:
    """The batches that a rank wrote."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def until(found: Callable[[], Any], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something is so, which a process sees to that has to live."""
    end = time.monotonic() + 120
    while not found():
        assert process is None or process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.002)
