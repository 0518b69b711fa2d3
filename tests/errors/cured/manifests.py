"""Plan directories whose plan.json is restored, or which are built again."""

from __future__ import annotations

import shutil
from pathlib import Path

import indexplan as ip
from tests.errors.catalogue.made import CHUNK, STORED, saved
from tests.errors.catalogue.manifests import CASES, HASHES
from tests.support.bins import Bins
from tests.support.cures import after

LATER = "a plan.json of a later format"  # takes a later indexplan
BINS = ("a chunk of bins that is one byte longer", "hashes of another length")
HASHED = ("hashes of another chunk", "a hash that was edited")
met = after(CASES)


def elsewhere() -> None:
    """Build the plan again at another path."""
    assert ip.load(saved("b.plan")) == STORED


def restored() -> None:
    """Restore the files of the plan directory from a copy."""
    shutil.copytree(saved("copy.plan"), "a.plan", dirs_exist_ok=True)
    assert ip.load("a.plan") == STORED


def bins_again() -> None:
    """Delete what is too long, and run the same build again."""
    for file in Path("a.plan/epoch-00000").iterdir():
        if file.stat().st_size % 2:
            file.unlink()
    ip.verify(ip.load(saved(plan=ip.Plan(Bins(10), batch_size=2))))


def hashed_again() -> None:
    """Delete the chunk and its hashes, and run the same build again."""
    for name in (CHUNK, HASHES):
        Path("a.plan", name).unlink()
    ip.verify(ip.load(saved()))


CURED = {
    **{
        name: met(name, restored, elsewhere)
        for name, _ in CASES
        if name not in (LATER, *BINS, *HASHED)
    },
    **{name: met(name, bins_again) for name in BINS},
    **{name: met(name, restored, hashed_again) for name in HASHED},
}
