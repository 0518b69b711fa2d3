"""Exports that succeed once what the error names is put right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import indexplan as ip
from tests.errors.catalogue.exports import CASES, export
from tests.errors.catalogue.made import OPEN, STORED, locked, saved
from tests.support.bins import Bins
from tests.support.cures import after, where_all_may_enter

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
