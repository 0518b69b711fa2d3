"""Errors of plan directories that are opened and read: damaged, locked or none."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    Case,
    damaged,
    locked,
    parts,
    saved,
    written,
)
from tests.support.bins import Bins


def after(change: Callable[[Path], Any]) -> None:
    """Open a plan in which something was changed."""
    root = saved()
    change(root)
    ip.load(root)


def read_after(change: Callable[[Path], Any], check: str = "opened") -> None:
    """Open a plan, change something, and read."""
    root = saved()
    order = ip.Stored(root, check=check)
    change(root)
    order.take(0, 300)


def unknown_epoch() -> None:
    """Ask for an epoch that is not stored, of an order that nobody knows."""
    root = saved(plan=ip.Plan(Unknown(1000), batch_size=2))
    ip.Stored(root).num_units(7)


class Unknown(ip.Sequential):
    """An order that is not registered."""

    algorithm = "unknown-test"


def wrong_offsets(change: Callable[[Any], Any], ask: Callable[[ip.Stored], Any]) -> None:
    """Change the offsets of bins, and read."""
    ip.save(ip.Plan(Bins(50), batch_size=2), "a.plan")
    path = Path("a.plan/epoch-00000/chunk-00000.offsets.npy")
    data = path.read_bytes()
    path.write_bytes(data[:128] + change(np.load(path)).tobytes())
    ask(ip.Stored("a.plan"))


def cut(root: Path) -> None:
    """Cut the end of a chunk off."""
    written(f"{root}/{CHUNK}", (root / CHUNK).read_bytes()[:-1])


def link(path: Path) -> None:
    """Put a link in a file's place."""
    path.rename("moved")
    path.symlink_to(Path("moved").absolute())


def huge(path: Path) -> None:
    """Make a file longer than any manifest."""
    os.truncate(path, 2**30 + 1)


def digest(plan: ip.Plan) -> str:
    """The beginning of a manifest's digest, which is another one in every version."""
    with tempfile.TemporaryDirectory() as folder:
        return ip.Stored(saved(f"{folder}/a.plan", plan)).manifest.sha256[:16]


def changed_dataset() -> None:
    """Load a plan for a dataset that has another size by now."""
    np.save("data.npy", np.zeros(1000))
    saved(dataset=ip.Dataset.scan("data.npy"))
    np.save("data.npy", np.zeros(999))
    ip.load("a.plan", dataset=ip.Dataset.scan("data.npy"))


def no_dataset() -> None:
    """Load a plan that remembers no dataset for one."""
    np.save("data.npy", np.zeros(1000))
    ip.load(saved(), dataset=ip.Dataset.scan("data.npy"))


CASES: list[Case] = [
    (
        "nothing there",
        lambda: ip.load("a.plan"),
        "{here}/a.plan must be a plan directory; got nothing there; check the path, or build it "
        "with `indexplan build`",
    ),
    (
        "a file",
        lambda: ip.load(written("a.plan")),
        "{here}/a.plan must be a plan directory; got a file; check the path, or build it with "
        "`indexplan build`",
    ),
    (
        "a folder of something else",
        lambda: ip.load(written("a.plan/photo.jpg").parent),
        "{here}/a.plan must be a plan directory; got a folder without manifest.json; check the "
        "path",
    ),
    (
        "a build that is not finished",
        lambda: ip.load(parts(1)),
        "{here}/a.plan must be finished; got a half-built one; run the same build again to "
        "finish it",
    ),
    (
        "a folder that is locked",
        lambda: locked({str(saved()): 0}, lambda: ip.load("a.plan")),
        "{here}/a.plan/manifest.json must be readable; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "an epoch that is locked",
        lambda: locked({f"{saved()}/epoch-00000": 0}, lambda: ip.load("a.plan")),
        "{here}/a.plan/epoch-00000/chunk-00000.npy must be readable; got 'Permission denied'; "
        "check its permissions and its file system",
    ),
    (
        "a manifest that is locked",
        lambda: locked({f"{saved()}/manifest.json": 0}, lambda: ip.load("a.plan")),
        "{here}/a.plan/manifest.json must be readable; got 'Permission denied'; check its "
        "permissions and its file system",
    ),
    (
        "a manifest that is huge",
        lambda: after(lambda r: huge(r / "manifest.json")),
        "{here}/a.plan/manifest.json must hold at most 1073741824 bytes; got 1073741825; "
        "restore it, or build the plan again at another path",
    ),
    (
        "a manifest that is a link",
        lambda: after(lambda r: link(r / "manifest.json")),
        "{here}/a.plan/manifest.json must be a plain file; got a link; put the file itself in "
        "its place, or build the plan again at another path",
    ),
    (
        "a manifest that is no JSON",
        lambda: after(lambda r: written(f"{r}/manifest.json", "{")),
        "{here}/a.plan: manifest.json must be JSON; got b'{' (Expecting property name enclosed "
        "in double quotes: line 1 column 2 (char 1)); restore the file, or build the plan again "
        "at another path",
    ),
    (
        "a chunk that is gone",
        lambda: after(lambda r: (r / CHUNK).unlink()),
        "{here}/a.plan/epoch-00000/chunk-00001.npy must be there; got 'No such file or "
        "directory'; restore it, or delete manifest.json and run the same build again",
    ),
    (
        "a chunk that was cut",
        lambda: after(cut),
        "{here}/a.plan/epoch-00000/chunk-00001.npy must hold 1152 bytes; got 1151; restore it, "
        "or delete it and manifest.json and run the same build again",
    ),
    (
        "another check",
        lambda: ip.load(saved(), check="all"),
        "check must be one of opened, touched; got 'all'; leave it out for opened",
    ),
    (
        "another dataset",
        changed_dataset,
        "dataset must be the one that the plan was built for; got another: it had 1,000 samples, "
        "has 999; it had 8,128 bytes, has 8,120; its header was dtype <f8, shape (1000,), "
        "row-major, and is dtype <f8, shape (999,), row-major; restore the dataset, or build a "
        "new plan for this one",
    ),
    (
        "a dataset for a plan without",
        no_dataset,
        "a.plan must be a plan that was built for a dataset; got 'one that remembers none'; "
        "build it with dataset=..., or load it without",
    ),
    (
        "an epoch that cannot be computed",
        unknown_epoch,
        "epoch must be one of the 1 stored ones, 0 to 0; got 7; epoch 7 cannot be computed "
        "here: an order's algorithm must be one of {orders}; got 'unknown-test'; upgrade "
        "indexplan, or import the module that registers it",
    ),
    (
        "a chunk cut after opening",
        lambda: read_after(cut),
        "{here}/a.plan/epoch-00000/chunk-00001.npy must hold 1152 bytes; got 1151; restore it, "
        "or delete it and manifest.json and run the same build again",
    ),
    (
        "another plan after opening",
        lambda: read_after(lambda r: (shutil.rmtree(r), saved(plan=STORED.replace(batch_size=5)))),
        "{here}/a.plan must still hold the plan that was opened, of the manifest_sha256 "
        f"{digest(STORED)}...; got {digest(STORED.replace(batch_size=5))}...; open it again, and "
        "give every plan a path of its own",
    ),
    (
        "a chunk's header edited after opening",
        lambda: read_after(lambda r: damaged(r / CHUNK, 9)),
        "{here}/a.plan/epoch-00000/chunk-00001.npy must begin with a .npy header for 256 "
        "numbers; got another; restore it, or delete it and manifest.json and run the same "
        "build again",
    ),
    (
        "a chunk edited after opening",
        lambda: read_after(lambda r: damaged(r / CHUNK), check="touched"),
        "{here}/a.plan/epoch-00000/chunk-00001.npy, block 0 must have the XXH64 of the block "
        "table, e31a36489698f2e5; got 9a4b9b912b855b4f; run `indexplan verify` to see what is "
        "wrong, then restore the file, or delete it and manifest.json and run the same build "
        "again",
    ),
    (
        "a chunk locked after opening",
        lambda: (
            root := saved(),
            order := ip.Stored(root),
            locked({f"{root}/{CHUNK}": 0}, lambda: order.take(0, 300)),
        ),
        "{here}/a.plan/epoch-00000/chunk-00001.npy must be readable; got 'Permission denied'; "
        "check its permissions and its file system",
    ),
    (
        "a verification of a locked chunk",
        lambda: (plan := ip.load(saved()), locked({f"a.plan/{CHUNK}": 0}, lambda: ip.verify(plan))),
        "{here}/a.plan/epoch-00000/chunk-00001.npy must be readable; got 'Permission denied'; "
        "check its permissions and its file system",
    ),
    (
        "offsets that fall",
        lambda: wrong_offsets(np.flip, lambda order: order.offsets(0, 0, 3)),
        "{here}/a.plan: the offsets of epoch 0 must ascend inside their chunk; they do not; run "
        "`indexplan verify` to see what is wrong",
    ),
    (
        "offsets outside the chunk",
        lambda: wrong_offsets(lambda all_: all_ + 99, lambda order: order.take(0, 0, 3)),
        "{here}/a.plan: the offsets of epoch 0 must ascend inside their chunk; they do not; run "
        "`indexplan verify` to see what is wrong",
    ),
]
