"""Errors of exporting plans."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

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
from tests.support.cures import after, where_all_may_enter


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
        "an export of tables to a locked file",
        lambda: (
            export(format="parquet"),
            locked({"out": 0o777, "out/epoch-00000.parquet": 0}, lambda: export(format="parquet")),
        ),
    ),
    (
        "an export with leftovers",
        lambda: export_again(
            lambda r: (leftover(r), locked({str(r): 0o777, f"{r}/epoch-00000": 0o555}, export))
        ),
    ),
]


# the cures, followed

met = after(CASES)
TABLE, RANK = "out/epoch-00000.parquet", "out/epoch-00000/rank-00000.npy"


def exported(out: str = "out") -> None:
    """Check what was exported."""
    rank = np.load(f"{out}/epoch-00000/rank-00000.npy")
    np.testing.assert_array_equal(rank[:32].ravel()[:16], STORED.batch(0, step=0, rank=0))


def removed(*names: str) -> Callable[[], None]:
    """Delete files, or links, and run the same export again."""

    def do() -> None:
        for name in names:
            Path("out", name).unlink()
        export()
        exported()

    return do


def elsewhere() -> None:
    """Export to another path."""
    export(out="other")
    exported("other")


def folder_itself() -> None:
    """Put the folder itself in the place of its link, and export again."""
    Path("out/epoch-00000").unlink()
    Path("elsewhere").rename("out/epoch-00000")
    export()
    exported()


def restored() -> None:
    """Restore export.json from a copy."""
    export(out="copy")
    Path("copy/export.json").replace("out/export.json")
    export()
    exported()


def table_again() -> None:
    """Delete the table and run the same export again."""
    Path(TABLE).unlink()
    export(format="parquet")
    assert pq.read_table(TABLE).num_rows


def allowed(path: str, **options: str) -> Callable[[], None]:
    """Permit what was not permitted, and export as somebody without rights."""

    def do() -> None:
        mode = 0o777 if Path(path).is_dir() else 0o644
        locked({"out": 0o777, path: mode}, lambda: export(**options))  # type: ignore[arg-type]

    return do


def plainly() -> None:
    """Leave out what can be left out."""
    export()
    exported()


def in_a_folder() -> None:
    """Export where the folder of the path is there."""
    Path("no").mkdir()
    export(out="no/out")
    exported("no/out")


def bins_read() -> None:
    """Read the plan of bins, and export it as a table."""
    plan = ip.Plan(Bins(10), world_size=1, batch_size=2)
    assert plan.units(0, step=0, rank=0)
    export(plan, format="parquet")
    assert pq.read_table(TABLE).num_rows


CURED = {
    "an export of no plan": lambda: (export(), saved(), export(ip.load("a.plan"))),
    "an export of bins": bins_read,
    "an export in no format": plainly,
    "a table with other rows": met("a table with other rows", table_again),
    "an export of an open world": lambda: export(OPEN.replace(world_size=2)),
    "an export of no epochs": plainly,
    "an export to a link for an epoch": met(
        "an export to a link for an epoch", folder_itself, elsewhere
    ),
    "an export in no folder": in_a_folder,
    **{
        name: met(name, elsewhere)
        for name in (
            "an export to a file",
            "an export to another folder",
        )
    },
    "an export of another plan": met(
        "an export of another plan", lambda: export(STORED.replace(world_size=2), "other")
    ),
    "an export.json that is no JSON": met("an export.json that is no JSON", restored, elsewhere),
    "an export with other bytes": met(
        "an export with other bytes", removed("epoch-00000/rank-00001.npy")
    ),
    "an export to a file for an epoch": met(
        "an export to a file for an epoch", removed("epoch-00000"), elsewhere
    ),
    **{
        name: where_all_may_enter(met(name, allowed(TABLE, format="parquet")))
        for name in ("a locked table", "an export of tables to a locked file")
    },
    "an export to a locked file": where_all_may_enter(
        met("an export to a locked file", allowed(RANK))
    ),
    "an export with leftovers": where_all_may_enter(
        met("an export with leftovers", allowed("out/epoch-00000"))
    ),
}
