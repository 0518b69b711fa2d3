"""Datasets and builds of plan directories that succeed once what the error names is put right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.builds import CASES, HASHES, save_even, scan
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    Elsewhere,
    array,
    locked,
    parts,
    saved,
)
from tests.support.cures import after, where_all_may_enter

met = after(CASES)


@dataclass(frozen=True, eq=False)
class Travelling(ip.Sequential):
    """An order whose class every worker can import."""

    algorithm = "travelling-test"


def whole(path: str | Path = "a.plan") -> None:
    """Check that the plan is there and right."""
    plan = ip.load(path)
    ip.verify(plan)
    assert plan == STORED


def again(*removed: str) -> Callable[[], None]:
    """Delete files of the plan directory, and run the same build again."""

    def do() -> None:
        for name in removed:
            Path("a.plan", name).unlink()
        saved()
        whole()

    return do


def elsewhere() -> None:
    """Choose another path."""
    whole(saved("b.plan"))


def restored() -> None:
    """Restore plan.json from a copy, and run the same build again."""
    shutil.copy(saved("copy.plan") / "plan.json", "a.plan")
    again()()


def pool() -> None:
    """Build on a new pool."""
    with ThreadPoolExecutor(1) as executor:
        saved(executor=executor)
    whole()


def travelled() -> None:
    """Build an order whose class lies at the top of a module, on workers elsewhere."""
    saved(plan=ip.Plan(Travelling(1000), batch_size=2), executor=Elsewhere())


def by_parts() -> None:
    """Build parts 1 to 4 of 4."""
    parts(1, 2, 3, 4)
    whole()


def dataset(path: str | Path, *pattern: str) -> Callable[[], None]:
    """Scan a dataset, which has rows or files."""

    def do() -> None:
        scan()
        array("rows.npy", np.zeros((2, 3)))
        assert ip.Dataset.scan(path, *pattern).num_samples == 2

    return do


def replaced() -> None:
    """Load the plan, and use replace and resume."""
    plan = ip.load("a.plan").replace(batch_size=5)
    plan.resume(plan.cursor(0, step=1)).batch(0, step=1, rank=0)


def other_epochs() -> None:
    """Build the other epochs at another path."""
    saved("b.plan", epochs=range(2))


def plainly() -> None:
    """Leave out what can be left out."""
    ip.save(STORED, "a.plan")
    whole()


def in_a_folder() -> None:
    """Build where the folder of the path is there."""
    Path("no").mkdir()
    whole(saved("no/a.plan"))


def of_two() -> None:
    """Build an order of 2 samples for a dataset of 2."""
    plan = ip.Plan(ip.Sequential(2), world_size=1, batch_size=1)
    ip.load(saved("b.plan", plan, dataset=scan()))
    array("two.npy", np.zeros(2))
    ip.save(plan, "c.plan", dataset=ip.shard_sizes("two.npy"))


def rights(paths: dict[str, int], **options: Any) -> Callable[[], None]:
    """Permit what was not permitted, and build as somebody without rights."""
    return lambda: locked({"a.plan": 0o777, **paths}, lambda: saved(**options))


EPOCH = {"a.plan/epoch-00000": 0o777}
CURED = {
    "too many chunks": lambda: saved(epochs=[0]),
    "no path": lambda: ip.save(STORED, "run.plan"),
    "no executor": pool,
    "a pool that is closed": met("a pool that is closed", pool),
    "a dataset at no path": dataset("data"),
    "a dataset in no file": dataset("rows.npy"),
    "a dataset of another kind": dataset("data"),
    "a pattern that leaves the folder": dataset("data", "**/*"),
    "an absolute pattern": dataset("data", "**/*.txt"),
    "a pattern of no file": met("a pattern of no file", dataset("data")),
    "an array that is none": dataset("rows.npy"),
    "an array without rows": dataset("rows.npy"),
    "a dataset of another size": of_two,
    "no plan": lambda: (saved(), ip.save(ip.load("a.plan"), "b.plan")),
    "no epochs": plainly,
    "an epoch of no units": lambda: save_even(range(0, 3, 2)),
    "empty chunks": plainly,
    "a part that is no pair": plainly,
    **dict.fromkeys(("a part of none", "a part that is no number", "a part too many"), by_parts),
    "a pool that breaks": met("a pool that breaks", pool),
    "an order that cannot travel": travelled,
    "an order that workers do not know": travelled,
    "a folder in no folder": in_a_folder,
    "a file at the path": met("a file at the path", elsewhere),
    "a folder of something else": met("a folder of something else", elsewhere),
    "a build of other epochs": met("a build of other epochs", other_epochs),
    "a plan.json that is no JSON": met("a plan.json that is no JSON", restored, elsewhere),
    "a plan.json that was edited": met("a plan.json that was edited", restored, elsewhere),
    "a chunk of other bytes": met("a chunk of other bytes", again(CHUNK)),
    "a chunk with more bytes": met("a chunk with more bytes", again(CHUNK)),
    "another partition": met("another partition", replaced, elsewhere),
    "hashes of other bytes": met("hashes of other bytes", again(HASHES)),
    "a file for an epoch's folder": met("a file for an epoch's folder", again("epoch-00000")),
    **{
        name: where_all_may_enter(met(name, rights(paths)))
        for name, paths in {
            "a folder that is locked": {},
            "an epoch's folder that is locked": EPOCH,
            "leftovers that cannot be removed": EPOCH,
            "a chunk that is locked": {f"a.plan/{CHUNK}": 0o644},
        }.items()
    },
    "a folder that cannot be listed": where_all_may_enter(
        met("a folder that cannot be listed", rights(EPOCH, units_per_chunk=1000))
    ),
    "no path of a dataset": dataset("data"),
    "half a character in a path": lambda: ip.load(saved("run.plan")),
    "a number for a pattern": dataset("data", "**/*.txt"),
    "a path for a dataset": of_two,
    "a comparison with a path": lambda: scan().check_same(scan()),
}
