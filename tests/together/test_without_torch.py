"""Two ranks of a node that share a folder of shards, in processes that have no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip
from indexplan_fetch import ShardLoader, open_parquet

ROOT = Path(__file__).parents[2]
NEEDED = ("numpy", "numpy.libs", "numba", "llvmlite", "llvmlite.libs", "pyarrow", "fsspec")


def plan_of(shards: ip.Shards) -> ip.Plan:
    """Return a plan of two ranks that reads few shards at a time."""
    order = ip.ShardShuffle(shards, lanes=4, stripe=64, seed=3)
    return ip.Plan(order, world_size=2, global_batch_size=16, remainder="drop")


def read_as_a_rank() -> None:
    """Read two epochs as a rank, and print what came."""
    assert find_spec("torch") is None
    rank, glob, cache = int(sys.argv[1]), *sys.argv[2:]
    shards = ip.shard_sizes(glob)
    options = {"cache_dir": cache, "cache_bytes": 10**8, "ranks_per_node": 2}
    plan = plan_of(shards)
    with ShardLoader(shards, open_parquet, plan, rank=rank, num_epochs=2, **options) as loader:
        ids = [[sample["id"] for sample in samples] for samples in loader]
        num_fetches = loader.report().num_fetches
    sys.stdout.write(json.dumps({"ids": ids, "num_fetches": num_fetches}))


def test_two_ranks_without_torch(tmp_path: Path) -> None:
    """Each reads its samples of the plan, and the two fetch each shard once between them."""
    for package in NEEDED:  # nothing else that is installed can be imported
        home = Path(np.__file__).parents[1] / package
        if home.exists():
            (tmp_path / "site" / package).parent.mkdir(exist_ok=True)
            (tmp_path / "site" / package).symlink_to(home)
    (tmp_path / "data").mkdir()
    for number in range(12):
        ids = pa.table({"id": range(100 * number, 100 * number + 100)})
        pq.write_table(ids, tmp_path / "data" / f"{number:02}.parquet", row_group_size=25)
    glob = str(tmp_path / "data" / "*.parquet")
    paths = [str(ROOT), str(ROOT / "adapters"), str(tmp_path / "site")]
    code = f"import sys; sys.path[:0] = {paths}; "
    code += "from tests.together.test_without_torch import read_as_a_rank; read_as_a_rank()"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code, str(rank), glob, str(tmp_path / "cache")],
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    found = [json.loads(each.communicate(timeout=300)[0]) for each in ranks]
    shards = ip.shard_sizes(glob)
    plan = plan_of(shards)
    for rank in range(2):
        expected = [b.tolist() for epoch in range(2) for b in plan.batches(epoch, rank=rank)]
        assert expected == found[rank]["ids"]
    read = {shard for epoch in range(2) for shard in ip.reads(plan, shards, epoch=epoch).shards}
    assert len(read) == sum(each["num_fetches"] for each in found)
