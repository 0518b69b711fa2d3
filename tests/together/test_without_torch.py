"""A rank that reads shards in a process that has no torch, nor anything else but what it needs."""

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
READ = """
import json
from importlib.util import find_spec
import indexplan as ip
from indexplan_fetch import ShardLoader, open_parquet
assert find_spec("torch") is None
shards = ip.shard_sizes("data/*.parquet")
plan = ip.Plan(ip.ShardShuffle(shards, lanes=4, stripe=64), world_size=1, batch_size=16)
with ShardLoader(shards, open_parquet, plan, rank=0, num_epochs=2, cache_dir="cache") as loader:
    print(json.dumps([[sample["id"] for sample in samples] for samples in loader]))
"""


def test_a_rank_without_torch(tmp_path: Path) -> None:
    """It reads its samples of the plan."""
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
    plan = ip.Plan(ip.ShardShuffle(shards, lanes=4, stripe=64), world_size=1, batch_size=16)
    paths = [str(ROOT), str(ROOT / "adapters"), str(tmp_path / "site")]
    code = f"import sys; sys.path[:0] = {paths}\n{READ}"
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    expected = [b.tolist() for epoch in range(2) for b in plan.batches(epoch, rank=0)]
    assert expected == json.loads(done.stdout)
