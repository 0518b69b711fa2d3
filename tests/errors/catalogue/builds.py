"""Errors of building plan directories."""

from __future__ import annotations

import json
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
    saved,
    written,
)

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
    build = Build.of(json.loads(STORED.to_json()), STORED.order, [0], 2**26, None)
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
