"""DuckDB and Polars read exported tables; they are not installed by the test extra."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

import indexplan as ip

PLAN = ip.Plan(ip.Shuffle(1003, seed=1), world_size=3, batch_size=(2, 8), remainder="pad")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two epochs as tables of both kinds."""
    root = tmp_path_factory.mktemp("tables") / "a"
    for kind in ("parquet", "arrow"):
        ip.export(PLAN, root, epochs=range(2), format=kind)
    return root


def test_duckdb(folder: Path) -> None:
    """A query over both epochs: who read a sample, and a rank's batch."""
    table = duckdb.read_parquet(f"{folder}/*.parquet")
    found = table.filter("index = 123 and not padded").project("epoch, step, rank")
    assert [(epoch, *PLAN.locate(123, epoch)[2:4]) for epoch in range(2)] == found.order(
        "epoch"
    ).fetchall()
    batch = table.filter("epoch = 1 and step = 7 and rank = 2").order("slot").project("index")
    assert PLAN.batch(1, step=7, rank=2).tolist() == [index for (index,) in batch.fetchall()]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_polars(folder: Path, kind: str) -> None:
    """Every batch of every rank, read lazily from both kinds of files."""
    scan = pl.scan_parquet if kind == "parquet" else pl.scan_ipc
    table = scan(f"{folder}/*.{kind}").sort("epoch", "step", "rank", "slot").collect()
    batches = table.group_by("epoch", "step", "rank", maintain_order=True).agg("index", "padded")
    expected = [
        (epoch, step, rank, PLAN.batch(epoch, step=step, rank=rank).tolist())
        for epoch in range(2)
        for step in range(PLAN.num_steps(epoch))
        for rank in range(3)
    ]
    assert expected == [row[:4] for row in batches.iter_rows()]
    assert 2 * PLAN.account(0).num_padded == table["padded"].sum()
