"""Exports as tables: a row for each slot of each batch, whatever the plan."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.cli import main
from indexplan.files import rows
from tests.support.bins import bin_orders
from tests.support.examples import examples
from tests.support.micro import micro_batches
from tests.support.strategies import balanced_plans, plans, start_of, sub_epochs_of
from tests.support.trees import PLAN, tree

DRAWN = plans() | plans(bin_orders()) | balanced_plans()


def leaves(nested: Any) -> list[list[int]]:
    """The inner batches of nested ones, as lists."""
    if isinstance(nested, np.ndarray):
        return [nested.tolist()]
    return [leaf for part in nested for leaf in leaves(part)]


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    return pq.read_table(path).to_pylist()


def expected_rows(plan: ip.Plan, places: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """What a table holds, batch by batch."""
    found = []
    for epoch, sub_epoch in places:
        steps = plan.steps(epoch, sub_epoch)
        for step in steps:
            for rank in range(plan.world_size or 0):
                where: Any = {"step": step, "rank": rank}
                batch = plan.batch(epoch, sub_epoch, **where).tolist()
                offsets = plan.units(epoch, sub_epoch, **where).offsets
                valid = offsets[plan.units(epoch, sub_epoch, **where).num_valid]
                inner = leaves(micro_batches(plan.units(epoch, sub_epoch, **where)))
                micro = [number for number, part in enumerate(inner) for _ in part]
                assert batch == [index for part in inner for index in part]
                for slot, index in enumerate(batch):
                    row = {"epoch": epoch, "sub_epoch": sub_epoch, **where}
                    row["micro_batch"] = micro[slot]
                    if plan.order.deals_bins:
                        row["bin"] = int(np.searchsorted(offsets, slot, "right")) - 1
                    padded = bool(slot >= valid)
                    found.append({**row, "slot": slot, "index": index, "padded": padded})
    return found


@examples(16)
@given(plan=DRAWN.filter(lambda plan: plan.world_size * plan.sub_epochs <= 16))
def test_any_plan(tmp_path_factory: pytest.TempPathFactory, plan: ip.Plan) -> None:
    """The rows of an epoch are the batches of all ranks, in the sequence of steps."""
    root = tmp_path_factory.mktemp("any") / "a"
    epochs = range(start_of(plan)[0], start_of(plan)[0] + 2)
    done = ip.export(plan, root, epochs=epochs, format="parquet")
    num = 2 + (plan.balance is not None)  # with the lengths
    assert (num, 0) == (done.num_written, done.num_kept)
    for epoch in epochs:
        places = [place for place in sub_epochs_of(plan, epoch + 1) if place[0] == epoch]
        assert expected_rows(plan, places) == read(root / f"epoch-{epoch:05d}.parquet")
    again = ip.export(plan, root, epochs=epochs, format="parquet")
    assert (0, num, done.num_bytes) == (again.num_written, again.num_kept, again.num_bytes)


@pytest.mark.parametrize("batch_size", [3, 40, (4, 25)])
def test_row_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, batch_size: Any) -> None:
    """No more rows are drawn at a time than a group has, or one step."""
    monkeypatch.setattr(rows, "ROWS", 64)
    plan = ip.Plan(ip.Shuffle(1000, seed=2), world_size=4, batch_size=batch_size, remainder="pad")
    ip.export(plan, tmp_path / "a", format="parquet")
    found = pq.ParquetFile(tmp_path / "a/epoch-00000.parquet").metadata
    groups = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
    assert max(groups) <= max(64, 4 * int(np.prod(batch_size)))
    assert len(groups) >= 1000 // max(64, 4 * int(np.prod(batch_size)))
    assert expected_rows(plan, [(0, 0)]) == read(tmp_path / "a/epoch-00000.parquet")
    assert 1 == ip.export(plan, tmp_path / "a", format="parquet").num_kept


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is handed on row group by row group, and neither rows nor bytes are kept."""
    monkeypatch.setattr(rows, "ROWS", 2**12)

    def peak(num_samples: int) -> tuple[int, int]:
        plan = ip.Plan(ip.Sequential(num_samples), world_size=2, batch_size=256)
        tracemalloc.start()  # NumPy's arrays, and Python's bytes
        total = sum(map(len, rows.table_of(plan, 0, range(1))))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return total, most

    peak(2**12)  # imports
    (total, most), (_, before) = peak(2**17), peak(2**14)
    assert total > 3 * 2**17
    assert most < 1.2 * before


def test_beside_arrays(tmp_path: Path) -> None:
    """One folder may hold all formats; each file says of which plan it is."""
    for kind in ("npy", "parquet"):
        ip.export(PLAN, tmp_path / "a", format=kind)
    assert 12 + 1 + 1 == len(tree(tmp_path / "a"))
    schema = pq.read_schema(tmp_path / "a/epoch-00000.parquet")
    assert {b"indexplan.plan_fingerprint": PLAN.fingerprint.encode()} == schema.metadata
    assert {"int64", "bool"} == {str(field.type) for field in schema}


def test_other_rows(tmp_path: Path) -> None:
    """A table of another plan, with a row less or more, or damaged, is refused and left alone."""
    ip.export(PLAN, tmp_path / "a", format="parquet")
    file = tmp_path / "a/epoch-00000.parquet"
    right = file.read_bytes()
    others = [b"", right[:-9], right + b"x" * 9]
    for change in ({"seed": 99}, {"num_samples": PLAN.order.num_samples - 1}):
        order = ip.Shuffle(**{"num_samples": PLAN.order.num_samples, "seed": 5, **change})
        ip.export(PLAN.replace(order=order), tmp_path / str(len(others)), format="parquet")
        others.append((tmp_path / f"{len(others)}/epoch-00000.parquet").read_bytes())
    for data in others:
        file.write_bytes(data)
        with pytest.raises(ip.PlanFileError, match="must hold what the plan deals; got "):
            ip.export(PLAN, tmp_path / "a", format="parquet")
        assert data == file.read_bytes()


def test_leftovers(tmp_path: Path) -> None:
    """What a killed export leaves of a table goes with the next one."""
    ip.export(PLAN, tmp_path / "a", format="parquet")
    left = tmp_path / "a/.epoch-00000.parquet.indexplan-01234567-1-0123456789ab.tmp"
    left.write_bytes(b"of a killed one")
    os.utime(left, (0, 0))
    ip.export(PLAN, tmp_path / "a", format="parquet")
    assert not left.exists()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--format` writes what the function does."""
    (tmp_path / "a.json").write_text(PLAN.to_json())
    words = ["export", str(tmp_path / "a.json"), str(tmp_path / "out"), "--format", "parquet"]
    assert 0 == main(words)
    assert "1 file written" in capsys.readouterr().out
    ip.export(PLAN, tmp_path / "b", format="parquet")
    assert read(tmp_path / "b/epoch-00000.parquet") == read(tmp_path / "out/epoch-00000.parquet")
