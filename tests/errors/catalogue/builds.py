"""Errors of building plan directories."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

import indexplan as ip
from indexplan.files.format import Build
from indexplan.files.saving import write_chunk
from indexplan.orders import Traits
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    Case,
    Elsewhere,
    array,
    damaged,
    edited,
    locked,
    parts,
    saved,
    written,
)
from tests.support.cures import after, where_all_may_enter

HASHES = CHUNK.replace(".npy", ".xxh64")


def scan(pattern: str = "**/*") -> ip.Dataset:
    """Scan a folder of 2 files."""
    written("data/a.txt")
    written("data/b.txt")
    return ip.Dataset.scan("data", pattern)


def broken_pool() -> Executor:
    """A pool whose threads cannot start, and say so in the log."""
    logging.getLogger("concurrent.futures").addHandler(logging.NullHandler())
    return ThreadPoolExecutor(1, initializer=lambda: 1 / 0)


def local_order() -> ip.Order:
    """An order of a class that cannot travel."""

    @dataclass(frozen=True, eq=False)
    class Local(ip.Sequential):
        algorithm = "local-test"

    return Local(1000)


@dataclass(frozen=True, eq=False)
class Even(ip.Sequential):
    """An order without units in odd epochs."""

    algorithm = "even-test"
    traits = Traits(constant_num_units=False, reads="at most once")

    def num_units(self, epoch: int) -> int:
        """Return the number of samples, or 0."""
        return self.num_samples * (1 - epoch % 2)


def save_even(epochs: range = range(2)) -> object:
    """Build epochs of an order of which some may be empty."""
    return ip.save(ip.Plan(Even(5), batch_size=2), "a.plan", epochs=epochs)


def save_on_workers_without_the_module() -> None:
    """Save an order whose class lies in a module that only the caller has."""
    module = ModuleType("only_here")
    module.Lost = type("Lost", (ip.Sequential,), {"__module__": "only_here"})  # type: ignore[attr-defined]
    with patch.dict("sys.modules", only_here=module):
        plan = ip.Plan(module.Lost(1000), batch_size=2)  # type: ignore[attr-defined]
        ip.save(plan, "a.plan", executor=Elsewhere("only_here"))


def again(change: Callable[[Path], Any], **options: Any) -> None:
    """Build a plan, change something, and build it again."""
    change(saved())
    saved(**options)


def edited_again() -> None:
    """Build a plan, edit what its plan.json says beside it, and build it again."""
    edited(sha256="0" * 64)
    saved()


def file_for_a_folder(root: Path) -> None:
    """Put a file where an epoch's folder belongs."""
    shutil.rmtree(root / "epoch-00000")
    written(f"{root}/epoch-00000")


def worker_without_the_folder() -> None:
    """Run a task where its folder is not."""
    build = Build.of(STORED.to_dict(), STORED.order, [0], 2**26, None)
    write_chunk("a.plan", build, build.sha256, STORED.order, next(build.chunks()))


def locked_again(root: Path, modes: dict[str, int]) -> None:
    """Build once more as somebody whom the modes of some paths keep from it."""
    locked({f"{root}/{name}".rstrip("/"): mode for name, mode in modes.items()}, saved)


def leftover(root: str | Path) -> None:
    """Leave what a killed builder leaves."""
    path = written(f"{root}/epoch-00000/.chunk-00000.npy.indexplan-01234567-1-0123456789ab.tmp")
    os.utime(path, (0, 0))


def closed_pool() -> Executor:
    """A pool that was shut down."""
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    return pool


def unlisted_folder() -> None:
    """Build a chunk in a folder that may be written to, and not be listed."""
    (saved(units_per_chunk=1000) / "epoch-00000/chunk-00000.npy").unlink()
    modes = {"a.plan": 0o777, "a.plan/epoch-00000": 0o333}
    locked(modes, lambda: saved(units_per_chunk=1000))


CASES: list[Case] = [
    (
        "too many chunks",
        lambda: saved(units_per_chunk=1, plan=ip.Plan(ip.Sequential(2**40), batch_size=1)),
    ),
    ("no path", lambda: saved(None)),
    ("no executor", lambda: saved(executor=5)),
    ("a pool that is closed", lambda: saved(executor=closed_pool())),
    ("a folder that cannot be listed", unlisted_folder),
    # the dataset
    ("a dataset at no path", lambda: ip.Dataset.scan("data")),
    ("a dataset in no file", lambda: ip.Dataset.scan("data.npy")),
    ("a pattern that leaves the folder", lambda: scan("../**/*")),
    ("an absolute pattern", lambda: scan("/data/*")),
    ("a pattern of no file", lambda: scan("*.jpg")),
    ("an array that is none", lambda: ip.Dataset.scan(written("data.npy", "text"))),
    ("an array without rows", lambda: ip.Dataset.scan(array("data.npy", np.zeros((0, 3))))),
    ("a dataset of another size", lambda: saved(dataset=scan())),
    # saving
    ("no plan", lambda: ip.save(STORED.order, "a.plan")),
    ("no epochs", lambda: saved(epochs=[])),
    ("an epoch of no units", save_even),
    ("empty chunks", lambda: saved(units_per_chunk=0)),
    ("a part that is no pair", lambda: saved(part=3)),
    ("a part of none", lambda: saved(part=(1, 0))),
    ("a part that is no number", lambda: saved(part=("1", 4))),
    ("a pool that breaks", lambda: saved(executor=broken_pool())),
    (
        "an order that cannot travel",
        lambda: saved(plan=ip.Plan(local_order(), batch_size=2), executor=Elsewhere()),
    ),
    ("an order that workers do not know", save_on_workers_without_the_module),
    ("a worker that does not see the folder", worker_without_the_folder),
    ("a folder in no folder", lambda: saved("no/a.plan")),
    ("a file at the path", lambda: saved(str(written("a.plan")))),
    ("a folder of something else", lambda: saved(str(written("a.plan/photo.jpg").parent))),
    ("a build of other epochs", lambda: again(lambda _: None, epochs=range(2))),
    ("a plan.json that is no JSON", lambda: again(lambda r: written(f"{r}/plan.json"))),
    ("a chunk of other bytes", lambda: again(lambda r: damaged(r / CHUNK))),
    (
        "a chunk with more bytes",
        lambda: again(lambda r: written(f"{r}/{CHUNK}", (r / CHUNK).read_bytes() + b"x")),
    ),
    ("another partition", lambda: again(lambda _: None, plan=STORED.replace(batch_size=(5, 3)))),
    ("a plan.json that was edited", edited_again),
    ("hashes of other bytes", lambda: again(lambda r: damaged(r / HASHES, 35))),
    ("a file for an epoch's folder", lambda: again(file_for_a_folder)),
    (
        "a folder that is locked",
        lambda: again(lambda r: (shutil.rmtree(r / "epoch-00000"), locked_again(r, {"": 0o555}))),
    ),
    (
        "an epoch's folder that is locked",
        lambda: again(
            lambda r: ((r / CHUNK).unlink(), locked_again(r, {"": 0o777, "epoch-00000": 0o555}))
        ),
    ),
    ("a chunk that is locked", lambda: again(lambda r: locked_again(r, {"": 0o777, CHUNK: 0}))),
    (
        "leftovers that cannot be removed",
        lambda: again(lambda r: (leftover(r), locked_again(r, {"": 0o777, "epoch-00000": 0o555}))),
    ),
    ("no path of a dataset", lambda: ip.Dataset.scan(None)),
    ("half a character in a path", lambda: ip.load("\ud800")),
    ("a number for a pattern", lambda: ip.Dataset.scan(".", 5)),
    ("a path for a dataset", lambda: saved(dataset="data")),
    ("a comparison with a path", lambda: scan().check_same("data")),
]


# the cures, followed

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


def rebuilt(*removed: str) -> Callable[[], None]:
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
    rebuilt()()


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
    **dict.fromkeys(
        (
            "a part of none",
            "a part that is no number",
        ),
        by_parts,
    ),
    "a pool that breaks": met("a pool that breaks", pool),
    "an order that cannot travel": travelled,
    "an order that workers do not know": travelled,
    "a folder in no folder": in_a_folder,
    "a file at the path": met("a file at the path", elsewhere),
    "a folder of something else": met("a folder of something else", elsewhere),
    "a build of other epochs": met("a build of other epochs", other_epochs),
    "a plan.json that is no JSON": met("a plan.json that is no JSON", restored, elsewhere),
    "a plan.json that was edited": met("a plan.json that was edited", restored, elsewhere),
    "a chunk of other bytes": met("a chunk of other bytes", rebuilt(CHUNK)),
    "a chunk with more bytes": met("a chunk with more bytes", rebuilt(CHUNK)),
    "another partition": met("another partition", replaced, elsewhere),
    "hashes of other bytes": met("hashes of other bytes", rebuilt(HASHES)),
    "a file for an epoch's folder": met("a file for an epoch's folder", rebuilt("epoch-00000")),
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
