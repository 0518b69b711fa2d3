"""The example of docs/examples/shards_in_a_store.py: two nodes of two ranks, then one of three."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import indexplan as ip
from tests.support.forked import results
from tests.support.remote import ROOT, server, store
from tests.together.sharded_runs import forks

__all__ = ["server"]  # a fixture

SCRIPT = ROOT / "docs" / "examples" / "shards_in_a_store.py"


def launch(nodes: int, ranks: int, folder: Path, *options: str) -> list[str]:
    """Run the example on nodes of this machine, each with a folder of its own; what was printed."""
    options = ("--cache-dir", str(folder / "node-{node}"), *options)
    forks().load("torch._dynamo")  # which the first optimizer imports
    started = forks().ranks(
        "tests.together.sharded_runs:run_script",
        folder,
        nodes * ranks,
        str(SCRIPT),
        *options,
        LOCAL_WORLD_SIZE=str(ranks),
    )
    results(started)
    return [line for rank in started for line in rank.log.read_text().splitlines()]


@pytest.mark.usefixtures("server")
def test_two_nodes_then_one(tmp_path: Path) -> None:
    """Stopped on two nodes of two ranks, resumed on one of three: each sample once, in all.

    Each node downloads no more than it reads, into a folder of half the dataset.
    """
    (tmp_path / "data").mkdir()
    random, first = np.random.default_rng(0), 0
    for number, rows in enumerate(random.integers(20, 60, 48).tolist()):
        ids, x = np.arange(first, first + rows), random.random(rows)
        noise = [random.bytes(400) for _ in ids]
        table = pa.table({"id": ids, "x": x, "y": 2 * x, "noise": noise})
        pq.write_table(table, tmp_path / "data" / f"{number:03}.parquet")
        first += rows
    store().put(f"{tmp_path}/data/", "bucket/example/", recursive=True)
    options = ["--store", "s3://bucket/example", "--checkpoint", str(tmp_path / "run.pt")]
    lines = launch(2, 2, tmp_path, *options, "--max-steps", "30")
    downloads = [int(n) for n in re.findall(r"2 ranks downloaded (\d+) samples", str(lines))]
    shards = ip.shard_sizes(tmp_path / "data" / "*.parquet", whole_files=True)
    order = ip.ShardShuffle(shards, lanes=8, stripe=192, seed=1)
    plan = ip.Plan(order, world_size=4, global_batch_size=24)
    for node, counted in enumerate(downloads):
        needed = ip.reads(plan, shards, 0, ranks=range(2 * node, 2 * node + 2), stop_step=30)
        of_all = ip.reads(plan, shards, 0, ranks=range(2 * node, 2 * node + 2))
        sizes = shards.sizes.array
        assert sizes[needed.shards].sum() <= counted <= sizes[of_all.shards].sum()
    assert 2 == len(downloads)
    assert f"4 ranks have read 720 of {first} samples" in lines
    lines = launch(1, 3, tmp_path, *options)
    assert f"3 ranks have read {first} of {first} samples" in lines
    assert "each was read 1 to 1 times" in lines
    assert [1] * first == torch.load(tmp_path / "run.pt")["times"].tolist()
    num_bytes = sum(shards.num_bytes)
    for node in range(2):
        kept = [*(tmp_path / f"node-{node}").glob("*/shards/*")]
        on_disk = sum(path.stat().st_blocks * 512 for path in kept)  # columns leave holes
        assert 0 < on_disk <= num_bytes // 2
