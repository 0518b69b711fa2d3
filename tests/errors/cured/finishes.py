"""Builds in parts that are finished once a record, a chunk or build.json is put right."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.cli.main import main
from tests.errors.catalogue.finishes import CASES
from tests.errors.catalogue.made import CHUNK, STORED, locked, parts, saved
from tests.support.cures import after, where_all_may_enter

met = after(CASES)
FIRST = "part-00001-of-00002.json"


def whole(path: str = "a.plan") -> None:
    """Check that the plan is finished and right."""
    plan = ip.load(path)
    ip.verify(plan)
    assert plan == STORED


def part_again(*removed: str, numbers: tuple[int, ...] = (1,), of: int = 2) -> Callable[[], None]:
    """Delete files of the plan directory, run some parts again, and finish."""

    def do() -> None:
        for name in removed:
            Path("a.plan", name).unlink()
        parts(*numbers, of=of)
        if not Path("a.plan/manifest.json").exists():
            parts(*range(1, of + 1), of=of)
        whole()

    return do


def restored() -> None:
    """Restore build.json from a copy, and run the same build again."""
    shutil.copy(saved("copy.plan") / "build.json", "a.plan")
    saved()
    whole()


def elsewhere() -> None:
    """Build the plan again at another path."""
    whole(str(saved("b.plan")))


def built() -> None:
    """Build what is not there with the command."""
    assert 0 == main(["build", "a.plan", "--num-samples", "1000", "--batch-size", "2"])
    ip.verify(ip.load("a.plan"))


def built_again() -> None:
    """Run the same build again."""
    saved()
    whole()


def one_partition() -> None:
    """Give all parts the same partition."""
    parts(2, 3, 4)
    whole()


def another_partition() -> None:
    """Delete the records, and run every part again with the other partition."""
    for record in Path("a.plan").glob("part-*.json"):
        record.unlink()
    plan = STORED.replace(world_size=7)
    for number in (1, 2, 3, 4):
        saved(plan=plan, part=(number, 4))
    assert ip.load("a.plan") == plan


def manifest_again() -> None:
    """Delete the manifest and the block table, and run the same build again."""
    for name in ("manifest.json", "blocks.npy"):
        Path("a.plan", name).unlink()
    built_again()


def allowed() -> None:
    """Permit what was not permitted, and finish as somebody without rights."""
    locked({"a.plan": 0o777}, lambda: ip.finish("a.plan"))


def both(*calls: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that makes several."""
    return lambda: [call() for call in calls]


CURED = {
    **{
        name: met(name, part_again(FIRST))
        for name, _ in CASES
        if name.startswith("a record ") and name != "a record of other hashes"
    },
    "a record of other hashes": met("a record of other hashes", part_again(FIRST)),
    "a finish of nothing": met("a finish of nothing", built),
    "a finish without a chunk": met("a finish without a chunk", part_again(numbers=(2, 4), of=4)),
    "a finish with a part's chunk removed": met(
        "a finish with a part's chunk removed", part_again()
    ),
    "a finish of a build without parts": met("a finish of a build without parts", built_again),
    "a finish of a chunk that was cut": met("a finish of a chunk that was cut", part_again(CHUNK)),
    **{
        name: met(name, restored, elsewhere)
        for name in (
            "a finish of an edited build.json",
            "a finish of a build.json that is no JSON",
            "a finish of another build.json",
        )
    },
    "parts of other partitions": both(
        met("parts of other partitions", one_partition),
        lambda: shutil.rmtree("a.plan"),
        met("parts of other partitions", another_partition),
    ),
    "a block table of other hashes under a right digest": met(
        "a block table of other hashes under a right digest", manifest_again
    ),
    "a finish in a locked folder": where_all_may_enter(met("a finish in a locked folder", allowed)),
}
