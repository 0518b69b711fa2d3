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
    saved,
    without,
    written,
)
from tests.support.bins import Bins


def again(change: Callable[[Path], Any], **options: Any) -> None:
    """Build a plan, change something, and build it again."""
    change(saved())
    saved(**options)


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
    path = written(f"{root}/epoch-00000/.rank-00000.npy.1-0123456789ab.tmp")
    os.utime(path, (0, 0))


CASES: list[Case] = [
    # exports
    (
        "an export of no plan",
        lambda: export(STORED.order),
        "plan must be a Plan; got Sequential(num_samples=1000); pass indexplan.Plan(...) or "
        "indexplan.load(path)",
    ),
    (
        "an export of bins",
        lambda: export(ip.Plan(Bins(10), world_size=1, batch_size=2)),
        "an exported order must be one of single samples; got 'test-bins-v1'; read it with "
        "plan.batch and plan.offsets, or export it as 'parquet'",
    ),
    (
        "an export in no format",
        lambda: export(format="csv"),
        "format must be one of npy, parquet, arrow; got 'csv'; leave it out for npy",
    ),
    (
        "a table without pyarrow",
        lambda: without("pyarrow", lambda: export(format="arrow")),
        "pyarrow must be installed for the format 'arrow'; got No module named 'pyarrow'; pip "
        "install 'indexplan[shards]'",
    ),
    (
        "a bar without tqdm",
        lambda: without("tqdm", lambda: ip.ProgressBar("exporting")),
        "tqdm must be installed for progress bars; got No module named 'tqdm'; pip install "
        "'indexplan[cli]'",
    ),
    (
        "a table with other rows",
        lambda: (
            export(format="parquet"),
            written("out/epoch-00000.parquet", "not a table"),
            export(format="parquet"),
        ),
        "out/epoch-00000.parquet must hold what the plan deals; got other rows; delete the file "
        "and run the same export again",
    ),
    (
        "a locked table",
        lambda: (
            export(format="parquet"),
            locked({"out": 0o777, "out/epoch-00000.parquet": 0}, lambda: export(format="parquet")),
        ),
        "out/epoch-00000.parquet must be readable; got 'Permission denied'; check its permissions "
        "and its file system",
    ),
    (
        "an export of an open world",
        lambda: export(OPEN),
        "world_size must be set for an export, which has files for each rank; got None; use "
        "plan.replace(world_size=...)",
    ),
    (
        "an export of no epochs",
        lambda: export(epochs=[]),
        "epochs must be at least one epoch; got []; leave it out for epoch 0",
    ),
    (
        "an export to a link for an epoch",
        lambda: export_again(link_for_a_folder),
        "out/epoch-00000 must be a plain folder; got a link; put the folder itself in its place, "
        "or build the plan again at another path",
    ),
    (
        "an export in no folder",
        lambda: export(out="no/out"),
        "no/out must be a folder that can be made; got 'No such file or directory'; check the path",
    ),
    (
        "an export to a file",
        lambda: export(out=str(written("out"))),
        "out must be new, empty or an export of the same plan; got a file; choose another path",
    ),
    (
        "an export to another folder",
        lambda: export(out=str(written("out/photo.jpg").parent)),
        "out must be new, empty or an export of the same plan; got a folder that holds "
        "photo.jpg; choose another path",
    ),
    (
        "an export of another plan",
        lambda: export_again(lambda _: None, STORED.replace(world_size=2)),
        "out must be new, empty or an export of the same plan; got one of the plan "
        "1cd7e488ac45861867654509d67116e88c5c224cd5e2205707cbcc1a489a694e, not "
        "c0b9843b81d159bfa81d83a1d88bb0cb841fabf090cbf2bcc5a60784b55f5bb1; choose another path",
    ),
    (
        "an export.json that is no JSON",
        lambda: export_again(lambda r: written(f"{r}/export.json", "x")),
        "out: export.json must be JSON; got b'x' (Expecting value: line 1 column 1 (char 0)); "
        "restore the file, or choose another path",
    ),
    (
        "an export with other bytes",
        lambda: export_again(lambda r: damaged(r / "epoch-00000/rank-00001.npy")),
        "out/epoch-00000/rank-00001.npy must hold what the plan deals; got other bytes; delete "
        "the file and run the same export again",
    ),
    (
        "an export to a file for an epoch",
        lambda: export_again(file_for_a_folder),
        "out/epoch-00000 must be a folder that can be made; got 'File exists'; delete what is "
        "there, or choose another path",
    ),
    (
        "an export to a locked file",
        lambda: export_again(
            lambda r: locked({str(r): 0o777, f"{r}/epoch-00000/rank-00000.npy": 0}, export)
        ),
        "out/epoch-00000/rank-00000.npy must be readable; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "an export of tables to a locked file",
        lambda: (
            export(format="parquet"),
            locked({"out": 0o777, "out/epoch-00000.parquet": 0}, lambda: export(format="parquet")),
        ),
        "out/epoch-00000.parquet must be readable; got 'Permission denied'; check its permissions "
        "and its file system",
    ),
    (
        "an export with leftovers",
        lambda: export_again(
            lambda r: (leftover(r), locked({str(r): 0o777, f"{r}/epoch-00000": 0o555}, export))
        ),
        "out must be cleared of temporary files; got 'Permission denied'; check its permissions "
        "and its file system",
    ),
]
