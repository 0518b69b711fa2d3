"""Plan directories whose manifest is restored, or which are built again."""

from __future__ import annotations

import shutil
from pathlib import Path

import indexplan as ip
from tests.errors.catalogue.made import STORED, saved
from tests.errors.catalogue.manifests import CASES
from tests.support.bins import Bins
from tests.support.cures import after

LATER = "a manifest of a later format"  # takes a later indexplan
BINS = "a chunk of bins that is one byte longer"
TABLES = ("a block table that was edited", "a block table of another length")
met = after(CASES)


def elsewhere() -> None:
    """Build the plan again at another path."""
    assert ip.load(saved("b.plan")) == STORED


def restored() -> None:
    """Restore the files of the plan directory from a copy."""
    shutil.copytree(saved("copy.plan"), "a.plan", dirs_exist_ok=True)
    assert ip.load("a.plan") == STORED


def bins_elsewhere() -> None:
    """Build the plan of bins again at another path."""
    ip.verify(ip.load(saved("b.plan", ip.Plan(Bins(10), batch_size=2))))


def rebuilt() -> None:
    """Delete the block table and the manifest, and run the same build again."""
    for name in ("blocks.npy", "manifest.json"):
        Path("a.plan", name).unlink()
    ip.verify(ip.load(saved()))


CURED = {
    **{
        name: met(name, restored, elsewhere)
        for name, _ in CASES
        if name not in (LATER, BINS, *TABLES)
    },
    BINS: met(BINS, bins_elsewhere),
    **{name: met(name, rebuilt) for name in TABLES},
}
