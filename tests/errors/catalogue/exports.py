"""Errors of exporting plans."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import (
    OPEN,
    STORED,
    Case,
    damaged,
    locked,
    without,
    written,
)
from tests.support.bins import Bins


def file_for_a_folder(root: Path) -> None:
    """Put a file where an epoch's folder belongs."""
    shutil.rmtree(root / "epoch-00000")
    written(f"{root}/epoch-00000")


def link_for_a_folder(root: Path) -> None:
    """Put a link where an epoch's folder belongs."""
    (root / "epoch-00000").rename("elsewhere")
    (root / "epoch-00000").symlink_to(Path("elsewhere").absolute())


def export(plan: ip.Plan = STORED, out: str = "out", **options: Any) -> Path:
    """Export a plan."""
    ip.export(plan, out, **options)
    return Path(out)


def export_again(change: Callable[[Path], Any], plan: ip.Plan = STORED) -> None:
    """Export a plan, change something, and export it again."""
    change(export())
    export(plan)


def leftover(root: str | Path) -> None:
    """Leave what a killed builder leaves."""
    path = written(f"{root}/epoch-00000/.rank-00000.npy.indexplan-01234567-1-0123456789ab.tmp")
    os.utime(path, (0, 0))


CASES: list[Case] = [
    # exports
    ("an export of no plan", lambda: export(STORED.order)),
    ("an export of bins", lambda: export(ip.Plan(Bins(10), world_size=1, batch_size=2))),
    ("an export in no format", lambda: export(format="csv")),
    ("a table without pyarrow", lambda: without("pyarrow", lambda: export(format="parquet"))),
    (
        "a table with other rows",
        lambda: (
            export(format="parquet"),
            written("out/epoch-00000.parquet", "not a table"),
            export(format="parquet"),
        ),
    ),
    (
        "a locked table",
        lambda: (
            export(format="parquet"),
            locked({"out": 0o777, "out/epoch-00000.parquet": 0}, lambda: export(format="parquet")),
        ),
    ),
    ("an export of an open world", lambda: export(OPEN)),
    ("an export of no epochs", lambda: export(epochs=[])),
    ("an export to a link for an epoch", lambda: export_again(link_for_a_folder)),
    ("an export in no folder", lambda: export(out="no/out")),
    ("an export to a file", lambda: export(out=str(written("out")))),
    ("an export to another folder", lambda: export(out=str(written("out/photo.jpg").parent))),
    (
        "an export of another plan",
        lambda: export_again(lambda _: None, STORED.replace(world_size=2)),
    ),
    (
        "an export.json that is no JSON",
        lambda: export_again(lambda r: written(f"{r}/export.json", "x")),
    ),
    (
        "an export with other bytes",
        lambda: export_again(lambda r: damaged(r / "epoch-00000/rank-00001.npy")),
    ),
    ("an export to a file for an epoch", lambda: export_again(file_for_a_folder)),
    (
        "an export to a locked file",
        lambda: export_again(
            lambda r: locked({str(r): 0o777, f"{r}/epoch-00000/rank-00000.npy": 0}, export)
        ),
    ),
    (
        "an export with leftovers",
        lambda: export_again(
            lambda r: (leftover(r), locked({str(r): 0o777, f"{r}/epoch-00000": 0o555}, export))
        ),
    ),
]
