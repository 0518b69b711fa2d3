"""A rank without torch: what test_without_torch.py runs, each in a process of its own."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

import indexplan as ip
from indexplan_fetch import ShardLoader, open_parquet


def plan_of(shards: ip.Shards) -> ip.Plan:
    """Return a plan of two ranks that reads few shards at a time."""
    order = ip.ShardShuffle(shards, lanes=4, stripe=64, seed=3)
    return ip.Plan(order, world_size=2, global_batch_size=16, remainder="drop")


def main() -> None:
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
