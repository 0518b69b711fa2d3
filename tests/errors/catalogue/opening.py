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
from indexplan.cli.main import main
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
from tests.support import cures
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
        "an epoch that is locked",
        lambda: locked({f"{saved()}/epoch-00000": 0}, lambda: ip.load("a.plan")),
    ),
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
    ("a chunk's header edited after opening", lambda: read_after(lambda r: damaged(r / CHUNK, 9))),
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


# the cures, followed

met = cures.after(CASES)


def loaded(path: str = "a.plan") -> None:
    """Load the plan, and check it whole."""
    plan = ip.load(path)
    ip.verify(plan)
    assert plan == STORED


def built(path: str = "a.plan") -> None:
    """Build what is not there with the command."""
    size = ["--num-samples", "1000", "--world-size", "3", "--batch-size", "16"]
    assert 0 == main(["build", path, *size])
    ip.verify(ip.load(path))


def again(*removed: str, build: Callable[[], Any] = saved) -> Callable[[], None]:
    """Delete files of the plan directory, and run the same build again."""

    def do() -> None:
        for name in removed:
            Path("a.plan", name).unlink()
        build()
        loaded()

    return do


def elsewhere() -> None:
    """Build the plan again at another path."""
    saved("b.plan")
    loaded("b.plan")


def restored(name: str) -> Callable[[], None]:
    """Restore a file of the plan directory from a copy."""

    def do() -> None:
        Path("a.plan", name).unlink(missing_ok=True)
        shutil.copy(saved("copy.plan") / name, Path("a.plan", name))
        loaded()

    return do


def readable(path: str) -> Callable[[], None]:
    """Let everybody read a path, and read the plan as somebody without rights."""

    def do() -> None:
        mode = 0o755 if Path(path).is_dir() else 0o644
        locked({path: mode}, lambda: ip.load("a.plan").order.take(0, 300))

    return do


def verified() -> None:
    """Ask the command what is wrong, which finds something."""
    assert 1 == main(["verify", "a.plan"])


def a_path_each() -> None:
    """Open the other plan, and build the first at a path of its own."""
    ip.load("a.plan").order.take(0, 300)
    elsewhere()


def a_new_plan() -> None:
    """Build a new plan for the dataset as it is now, and restore the dataset for the old one."""
    now = ip.Dataset.scan("data.npy")
    plan = STORED.replace(order=ip.Sequential(999))
    ip.load(saved("b.plan", plan, dataset=now), dataset=now)
    np.save("data.npy", np.zeros(1000))
    ip.load("a.plan", dataset=ip.Dataset.scan("data.npy"))


def with_a_dataset() -> None:
    """Build the plan with its dataset, or load it without."""
    dataset = ip.Dataset.scan("data.npy")
    ip.load(saved("b.plan", dataset=dataset), dataset=dataset)
    loaded()


PLAN_JSON = (restored("plan.json"), elsewhere)
DAMAGED = (restored(CHUNK), again(CHUNK))
LOCKED = {
    "a folder that is locked": "a.plan",
    "an epoch that is locked": "a.plan/epoch-00000",
    "a plan.json that is locked": "a.plan/plan.json",
    "a chunk locked after opening": f"a.plan/{CHUNK}",
    "a verification of a locked chunk": f"a.plan/{CHUNK}",
}
CURED = {
    **{name: cures.where_all_may_enter(met(name, readable(path))) for name, path in LOCKED.items()},
    "nothing there": met("nothing there", built),
    "a file": met("a file", lambda: built("b.plan")),
    "a build that is not finished": met(
        "a build that is not finished", again(build=lambda: parts(2, 3, 4))
    ),
    **{
        name: met(name, *PLAN_JSON)
        for name in (
            "a plan.json that is huge",
            "a plan.json that is a link",
            "a plan.json that is no JSON",
        )
    },
    "a chunk that is gone": met(
        "a chunk that is gone",
        again(),
    ),
    **{
        name: met(name, *DAMAGED)
        for name in (
            "a chunk that was cut",
            "a chunk cut after opening",
            "a chunk's header edited after opening",
        )
    },
    "a chunk edited after opening": met("a chunk edited after opening", verified, *DAMAGED),
    "another dataset": met("another dataset", a_new_plan),
    "a dataset for a plan without": met("a dataset for a plan without", with_a_dataset),
    "another plan after opening": met("another plan after opening", a_path_each),
    "another plan where a pickle is opened": met(
        "another plan where a pickle is opened", a_path_each
    ),
    "offsets that fall": met("offsets that fall", verified),
    "offsets outside the chunk": met("offsets outside the chunk", verified),
}
