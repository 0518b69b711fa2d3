"""Errors of plan directories that are opened and read: damaged, locked or none."""

from __future__ import annotations

import os
import pickle
import shutil
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
from tests.support.forging import rehashed


def after(change: Callable[[Path], Any]) -> None:
    """Open a plan in which something was changed."""
    root = saved()
    change(root)
    ip.load(root)


def read_after(change: Callable[[Path], Any]) -> None:
    """Open a plan, change something, and read."""
    root = saved()
    order = ip.types.Stored(root)
    change(root)
    order.take(0, 300)


def unpickled_after(change: Callable[[Path], Any]) -> None:
    """Open a plan, pickle its order, change something, and open it from the pickle."""
    root = saved()
    text = pickle.dumps(ip.types.Stored(root))
    change(root)
    pickle.loads(text)  # noqa: S301 (our own)


def another(root: Path) -> None:
    """Put another plan in a plan's place."""
    shutil.rmtree(root)
    saved(plan=STORED.replace(batch_size=5))


def unknown_epoch() -> None:
    """Ask for an epoch that is not stored, of an order that nobody knows."""
    root = saved(plan=ip.Plan(Unknown(1000), batch_size=2))
    ip.types.Stored(root).num_units(7)


class Unknown(ip.Sequential):
    """An order that is not registered."""

    algorithm = "unknown-test"


def wrong_offsets(change: Callable[[Any], Any], ask: Callable[[ip.types.Stored], Any]) -> None:
    """Change the offsets of bins, and read."""
    ip.save(ip.Plan(Bins(50), batch_size=2), "a.plan")
    path = Path("a.plan/epoch-00000/chunk-00000.offsets.npy")
    data = path.read_bytes()
    path.write_bytes(data[:128] + change(np.load(path)).tobytes())
    rehashed(path)
    ask(ip.types.Stored("a.plan"))


def cut(root: Path) -> None:
    """Cut the end of a chunk off."""
    written(f"{root}/{CHUNK}", (root / CHUNK).read_bytes()[:-1])


def link(path: Path) -> None:
    """Put a link in a file's place."""
    path.rename("moved")
    path.symlink_to(Path("moved").absolute())


def huge(path: Path) -> None:
    """Make a file longer than any plan.json."""
    os.truncate(path, 2**30 + 1)


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
    ("nothing there", lambda: ip.load("a.plan")),
    ("a file", lambda: ip.load(written("a.plan"))),
    ("a folder of something else", lambda: ip.load(written("a.plan/photo.jpg").parent)),
    ("a build that is not finished", lambda: ip.load(parts(1))),
    ("a folder that is locked", lambda: locked({str(saved()): 0}, lambda: ip.load("a.plan"))),
    (
        "a plan.json that is locked",
        lambda: locked({f"{saved()}/plan.json": 0}, lambda: ip.load("a.plan")),
    ),
    ("a plan.json that is huge", lambda: after(lambda r: huge(r / "plan.json"))),
    ("a plan.json that is a link", lambda: after(lambda r: link(r / "plan.json"))),
    ("a plan.json that is no JSON", lambda: after(lambda r: written(f"{r}/plan.json", "{"))),
    ("a chunk that is gone", lambda: after(lambda r: (r / CHUNK).unlink())),
    ("a chunk that was cut", lambda: after(cut)),
    ("another dataset", changed_dataset),
    ("a dataset for a plan without", no_dataset),
    ("an epoch that cannot be computed", unknown_epoch),
    ("a chunk cut after opening", lambda: read_after(cut)),
    ("another plan after opening", lambda: read_after(another)),
    ("another plan where a pickle is opened", lambda: unpickled_after(another)),
    ("a chunk edited after opening", lambda: read_after(lambda r: damaged(r / CHUNK))),
    (
        "a chunk locked after opening",
        lambda: (
            root := saved(),
            order := ip.types.Stored(root),
            locked({f"{root}/{CHUNK}": 0}, lambda: order.take(0, 300)),
        ),
    ),
    (
        "a verification of a locked chunk",
        lambda: (plan := ip.load(saved()), locked({f"a.plan/{CHUNK}": 0}, lambda: ip.verify(plan))),
    ),
    ("offsets that fall", lambda: wrong_offsets(np.flip, lambda order: order.offsets(0, 0, 3))),
    (
        "offsets outside the chunk",
        lambda: wrong_offsets(lambda all_: all_ + 99, lambda order: order.take(0, 0, 3)),
    ),
]
