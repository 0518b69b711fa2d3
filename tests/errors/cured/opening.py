"""Plan directories that are opened and read once what the error names is put right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.cli.main import main
from tests.errors.catalogue.made import CHUNK, STORED, locked, parts, saved
from tests.errors.catalogue.opening import CASES
from tests.support.cures import after, where_all_may_enter

met = after(CASES)


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
    **{name: where_all_may_enter(met(name, readable(path))) for name, path in LOCKED.items()},
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
