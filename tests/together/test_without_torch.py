"""Two ranks of a node that share a folder of shards, in processes that have no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import indexplan as ip

ROOT = Path(__file__).parents[2]
NEEDED = ("numpy", "numpy.libs", "numba", "llvmlite", "llvmlite.libs", "pyarrow", "fsspec")
PLAN = "ip.Plan(ip.ShardShuffle(shards, lanes=4, stripe=64), world_size=2, global_batch_size=16)"
READ = f"""
import json, sys
from importlib.util import find_spec
import indexplan as ip
from indexplan_fetch import ShardLoader, open_parquet
assert find_spec("torch") is None
shards = ip.shard_sizes("data/*.parquet")
plan, rank = {PLAN}, int(sys.argv[1])
options = {{"num_epochs": 2, "cache_dir": "cache", "cache_bytes": 10**8, "ranks_per_node": 2}}
with ShardLoader(shards, open_parquet, plan, rank=rank, **options) as loader:
    ids = [[sample["id"] for sample in samples] for samples in loader]
    print(json.dumps([ids, loader.report().num_fetches]))
"""


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
    shards = ip.shard_sizes(tmp_path / "data" / "*.parquet")
    plan = eval(PLAN)  # noqa: S307 (the same)
    paths = [str(ROOT), str(ROOT / "adapters"), str(tmp_path / "site")]
    code = f"import sys; sys.path[:0] = {paths}\n{READ}"
    command = [sys.executable, "-I", "-S", "-c", code]
    ranks = [
        subprocess.Popen([*command, str(rank)], cwd=tmp_path, stdout=subprocess.PIPE)
        for rank in range(2)
    ]
    found = [json.loads(each.communicate()[0]) for each in ranks]
    for rank, (ids, _) in enumerate(found):
        assert [b.tolist() for epoch in range(2) for b in plan.batches(epoch, rank=rank)] == ids
    read = {shard for epoch in range(2) for shard in ip.reads(plan, shards, epoch=epoch).shards}
    assert len(read) == sum(num_fetches for _, num_fetches in found)
