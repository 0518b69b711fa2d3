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
from indexplan.files.build import build_chunk
from indexplan.files.format import Build
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    Case,
    Elsewhere,
    array,
    damaged,
    locked,
    saved,
    written,
)


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


def unfinished(change: Callable[[Path], Any]) -> None:
    """Build a plan, take its manifest away, change something, and build it again."""
    again(lambda root: ((root / "manifest.json").unlink(), change(root)))


def file_for_a_folder(root: Path) -> None:
    """Put a file where an epoch's folder belongs."""
    shutil.rmtree(root / "epoch-00000")
    written(f"{root}/epoch-00000")


def worker_without_the_folder() -> None:
    """Run a task where its folder is not."""
    build = Build.of(STORED.order, [0], 2**26, None)
    build_chunk("a.plan", build, STORED.order, next(build.chunks()))


def locked_again(root: Path, modes: dict[str, int]) -> None:
    """Build once more as somebody whom the modes of some paths keep from it."""
    locked({f"{root}/{name}".rstrip("/"): mode for name, mode in modes.items()}, saved)


def leftover(root: str | Path) -> None:
    """Leave what a killed builder leaves."""
    path = written(f"{root}/epoch-00000/.chunk-00000.npy.1-0123456789ab.tmp")
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
        "the number of chunk files must be at most 2**26; got 1099511627776; build fewer "
        "epochs, or leave units_per_chunk out",
    ),
    (
        "no path",
        lambda: saved(None),
        "path must be a str or path-like object; got None; pass where the directory is, such as "
        "run.plan",
    ),
    (
        "no executor",
        lambda: saved(executor=5),
        "executor must be a concurrent.futures.Executor; got 5; for Dask, pass "
        "client.get_executor()",
    ),
    (
        "a pool that is closed",
        lambda: saved(executor=closed_pool()),
        "executor must take tasks; got RuntimeError (cannot schedule new futures after "
        "shutdown); pass a new one",
    ),
    (
        "a folder that cannot be listed",
        unlisted_folder,
        "a.plan/epoch-00000/chunk-00000.npy must be written; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    # the dataset
    (
        "a dataset at no path",
        lambda: ip.Dataset.scan("data"),
        "dataset must be a folder or a .npy file; got 'data'; check the path",
    ),
    (
        "a dataset in no file",
        lambda: ip.Dataset.scan("data.npy"),
        "dataset must be readable; got 'No such file or directory' at data.npy; check the path "
        "and its permissions",
    ),
    (
        "a dataset of another kind",
        lambda: ip.Dataset.scan(written("data.csv")),
        "dataset must be a folder or a .npy file; got 'data.csv'; check the path",
    ),
    (
        "a pattern that leaves the folder",
        lambda: scan("../**/*"),
        "pattern must be a glob that stays in the folder; got '../**/*'; name the folder itself as "
        "the dataset",
    ),
    (
        "an absolute pattern",
        lambda: scan("/data/*"),
        "pattern must be a glob; got '/data/*' (Non-relative patterns are unsupported); write "
        "it as '**/*.jpg', relative to the folder",
    ),
    (
        "a pattern of no file",
        lambda: scan("*.jpg"),
        "pattern must be one that matches files of data; got '*.jpg'; check both, or leave it "
        "out for all files",
    ),
    (
        "an array that is none",
        lambda: ip.Dataset.scan(written("data.npy", "text")),
        "data.npy must be a .npy file; got 'EOF: reading magic string, expected 8 bytes got 4'; "
        "write it with numpy.save",
    ),
    (
        "an array without rows",
        lambda: ip.Dataset.scan(array("data.npy", np.zeros((0, 3)))),
        "data.npy must be an array with at least one row; got (0, 3); check that it is the dataset",
    ),
    (
        "a dataset of another size",
        lambda: saved(dataset=scan()),
        "the order's num_samples must be 2, the dataset's number of samples; got 1000; use an "
        "order of 2 samples",
    ),
    # saving
    (
        "no plan",
        lambda: ip.save(STORED.order, "a.plan"),
        "plan must be a Plan; got Sequential(num_samples=1000); pass indexplan.Plan(...) or "
        "indexplan.load(path)",
    ),
    (
        "no epochs",
        lambda: saved(epochs=[]),
        "epochs must be at least one epoch; got []; leave it out for epoch 0",
    ),
    (
        "empty chunks",
        lambda: saved(units_per_chunk=0),
        "units_per_chunk must be an integer from 1 to 2**40 - 1; got 0; leave it out",
    ),
    (
        "a part that is no pair",
        lambda: saved(part=3),
        "part must be a pair (number, of how many), such as (1, 4); got 3; leave it out to "
        "build all",
    ),
    (
        "a part of none",
        lambda: saved(part=(1, 0)),
        "part's second number must be an integer from 1 to 999999999; got 0; pass (number, of "
        "how many), such as (1, 4)",
    ),
    (
        "a part that is no number",
        lambda: saved(part=("1", 4)),
        "part's first number must be an integer from 0 to 999999999; got '1'; pass (number, of "
        "how many), such as (1, 4)",
    ),
    (
        "a part too many",
        lambda: saved(part=(5, 4)),
        "part must be from 1/4 to 4/4; got '5/4'; count from 1, in a job array with --array=1-4",
    ),
    (
        "a pool that breaks",
        lambda: saved(executor=broken_pool()),
        "the executor must run until the build is done; got BrokenThreadPool (A thread "
        "initializer failed, the thread pool is not usable anymore); run the same build again, "
        "which goes on where this one stopped",
    ),
    (
        "an order that cannot travel",
        lambda: saved(plan=ip.Plan(local_order(), batch_size=2), executor=Elsewhere()),
        "the order must be picklable, to be sent to the executor's workers; got \"Can't pickle "
        "local object 'local_order.<locals>.Local'\"; define its class at the top of a module, "
        "and keep only what can be pickled in it",
    ),
    (
        "an order that workers do not know",
        save_on_workers_without_the_module,
        "the order's class must be importable by every worker of the executor; got \"No module "
        "named 'only_here'\"; define it in a module, and install that module there or add it "
        "to PYTHONPATH",
    ),
    (
        "a worker that does not see the folder",
        worker_without_the_folder,
        "a.plan must be there, for every worker to see; got no build.json there on {host}; if "
        "nobody removed it, choose a path on shared storage",
    ),
    (
        "a folder in no folder",
        lambda: saved("no/a.plan"),
        "no/a.plan must be a folder that can be made; got 'No such file or directory'; check "
        "the path",
    ),
    (
        "a file at the path",
        lambda: saved(str(written("a.plan"))),
        "a.plan must be new, empty or a plan directory; got a file; choose another path",
    ),
    (
        "a folder of something else",
        lambda: saved(str(written("a.plan/photo.jpg").parent)),
        "a.plan must be new, empty or a plan directory; got a folder that holds photo.jpg; "
        "choose another path",
    ),
    (
        "a build of other epochs",
        lambda: again(lambda _: None, epochs=range(2)),
        "a.plan must be a build of the same order and epochs; got one with epochs [0], not [0, "
        "1]; num_units [1000], not [1000, 1000]; choose another path",
    ),
    (
        "a build.json that is no JSON",
        lambda: again(lambda r: written(f"{r}/build.json")),
        "a.plan: build.json must be JSON; got b'' (Expecting value: line 1 column 1 (char 0)); "
        "restore the file, or choose another path",
    ),
    (
        "a chunk of other bytes",
        lambda: again(lambda r: damaged(r / CHUNK)),
        "a.plan/epoch-00000/chunk-00001.npy must hold what its order generates; got other bytes "
        "in block 0; delete the file and run the same build again",
    ),
    (
        "a chunk with more bytes",
        lambda: again(lambda r: written(f"{r}/{CHUNK}", (r / CHUNK).read_bytes() + b"x")),
        "a.plan/epoch-00000/chunk-00001.npy must hold what its order generates; got more "
        "bytes; delete the file and run the same build again",
    ),
    (
        "another partition",
        lambda: again(lambda _: None, plan=STORED.replace(batch_size=(5, 3))),
        "a.plan must be a build of the same partition; got one with batch_size 16, not [5, 3]; "
        "load that plan and use plan.replace or plan.resume, or choose another path",
    ),
    (
        "a manifest that was edited",
        lambda: again(lambda r: damaged(r / "manifest.json")),
        "a.plan/manifest.json must hold what its build writes; got other bytes; delete the file "
        "and run the same build again",
    ),
    (
        "a block table of other bytes",
        lambda: again(lambda r: damaged(r / "blocks.npy", 130)),
        "a.plan/blocks.npy must hold what its build writes; got other bytes; delete the file and "
        "run the same build again",
    ),
    (
        "a file for an epoch's folder",
        lambda: unfinished(file_for_a_folder),
        "a.plan/epoch-00000 must be a folder that can be made; got 'File exists'; delete what "
        "is there, or choose another path",
    ),
    (
        "a folder that is locked",
        lambda: again(lambda r: (shutil.rmtree(r / "epoch-00000"), locked_again(r, {"": 0o555}))),
        "a.plan/epoch-00000 must be a folder that can be made; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "an epoch's folder that is locked",
        lambda: again(
            lambda r: ((r / CHUNK).unlink(), locked_again(r, {"": 0o777, "epoch-00000": 0o555}))
        ),
        "a.plan/epoch-00000/chunk-00001.npy must be written; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "a chunk that is locked",
        lambda: again(lambda r: locked_again(r, {"": 0o777, CHUNK: 0})),
        "a.plan/epoch-00000/chunk-00001.npy must be readable; got 'Permission denied'; check "
        "its permissions and its file system",
    ),
    (
        "leftovers that cannot be removed",
        lambda: again(lambda r: (leftover(r), locked_again(r, {"": 0o777, "epoch-00000": 0o555}))),
        "a.plan must be cleared of temporary files; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "no path of a dataset",
        lambda: ip.Dataset.scan(None),
        "dataset must be a str or path-like object; got None; pass where the folder or the .npy "
        "file is",
    ),
    (
        "half a character in a path",
        lambda: ip.load("\ud800"),
        "path must be a str or path-like object; got '\\ud800'; pass where the directory is, such "
        "as run.plan",
    ),
    (
        "a number for a pattern",
        lambda: ip.Dataset.scan(".", 5),
        "pattern must be a glob; got 5; write it as '**/*.jpg'",
    ),
    (
        "a path for a dataset",
        lambda: saved(dataset="data"),
        "dataset must be a Dataset, or Shards; got 'data'; pass indexplan.Dataset.scan(path), or "
        "indexplan.shard_sizes(path)",
    ),
    (
        "a comparison with a path",
        lambda: scan().check_same("data"),
        "built_for must be a Dataset; got 'data'; pass what Dataset.scan returned",
    ),
]
