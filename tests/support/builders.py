"""Builds that tests disturb: real saves of a few plans."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import indexplan as ip
from tests.support.bins import Bins
from tests.support.trees import tree


@dataclass(frozen=True)
class Kind:
    """A plan to build, and how it is cut into files."""

    plan: ip.Plan
    epochs: int
    units_per_chunk: int

    def save(self, path: str | Path, **options: Any) -> ip.types.Saved:
        """Build the plan directory."""
        epochs = range(self.epochs)
        each = self.units_per_chunk
        return ip.save(self.plan, path, epochs=epochs, units_per_chunk=each, **options)


KINDS = {
    # 4 chunks, two of them of two blocks, so that there is time in mid-file
    "large": Kind(
        ip.Plan(ip.Shuffle(1_300_000, seed=1), world_size=2, batch_size=64), 2, 1_100_000
    ),
    # 12 chunks of one block
    "many": Kind(ip.Plan(ip.Shuffle(6000, seed=2), world_size=2, batch_size=64), 2, 1000),
    # 5 chunks of indices and 5 of offsets
    "bins": Kind(ip.Plan(Bins(1000), world_size=2, batch_size=64), 1, 100),
    # one chunk: every call can be counted
    "tiny": Kind(ip.Plan(ip.Shuffle(100, seed=3), world_size=2, batch_size=4), 1, 100),
}


def warm() -> None:
    """Import and compile all that children need, so that they inherit it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tiny", "bins"):
            KINDS[name].save(Path(folder) / name)
            assert ip.verify(ip.load(Path(folder) / name)).ok


def digests(root: Path) -> dict[str, str]:
    """The sha256 of every file of a plan directory, hidden and temporary ones too, by name."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in tree(root).items()}
