"""DuckDB and Polars read exported tables; they are not installed by the test extra."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import indexplan as ip

pytestmark = pytest.mark.readers

PLAN = ip.Plan(ip.Shuffle(1003, seed=1), world_size=3, batch_size=(2, 8), remainder="pad")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two epochs as tables."""
    root = tmp_path_factory.mktemp("tables") / "a"
    ip.export(PLAN, root, epochs=range(2), format="parquet")
    return root


def test_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """What docs/files.md says of tables runs, and finds what is in them."""
    monkeypatch.chdir(tmp_path)
    plan = ip.Plan(ip.Shuffle(800, seed=1), batch_size=4)
    ip.save(plan, "run.plan", epochs=range(2))
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text()
    section = page.partition("\n### Tables\n")[2].partition("\n### ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert 2 == len(blocks)
    for block in blocks:
        exec(block, {})  # noqa: S102 (our own page)
    said = capfd.readouterr().out
    assert all(f" {column} " in said for column in ("epoch", "step", "rank"))
    for epoch in range(2):
        step, rank = plan.replace(world_size=8).locate(123, epoch)[2:4]
        assert re.search(rf"\b{epoch}\D+\b{step}\D+\b{rank}\b", said)


def test_polars(folder: Path) -> None:
    """Every batch of every rank, read lazily."""
    table = pl.scan_parquet(f"{folder}/*.parquet").sort("epoch", "step", "rank", "slot").collect()
    batches = table.group_by("epoch", "step", "rank", maintain_order=True).agg("index", "padded")
    expected = [
        (epoch, step, rank, PLAN.batch(epoch, step=step, rank=rank).tolist())
        for epoch in range(2)
        for step in range(PLAN.steps(epoch).stop)
        for rank in range(3)
    ]
    assert expected == [row[:4] for row in batches.iter_rows()]
    assert 2 * PLAN.account(0).num_padded == table["padded"].sum()
