"""Plan directories of format version 1 are read and built on, byte by byte."""

from __future__ import annotations

import base64
from pathlib import Path

import indexplan as ip
from tests.support.bins import Drawn
from tests.support.old_directories import GOLDEN, old
from tests.support.trees import tree


def test_an_old_build_goes_on_as_it_was_begun(tmp_path: Path) -> None:
    """A build that format version 1 began is finished in it, and its files are the same."""
    root = old("drawn", tmp_path / "a.plan")
    (root / "manifest.json").unlink()
    (root / "epoch-00002/chunk-00001.npy").unlink()
    plan = ip.Plan(Drawn(20, seed=7), world_size=2, batch_size=3)
    assert 1 == ip.save(plan, root, epochs=[0, 2], units_per_chunk=8).num_written
    now = tree(root)
    assert {name: base64.b64decode(data) for name, data in GOLDEN["drawn"].items()} == now
