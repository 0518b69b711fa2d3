"""Errors of plan directories whose manifest or block table is not what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.canonical import canonical_json
from indexplan.files.format import header
from tests.errors.catalogue.made import (
    Case,
    damaged,
    forged,
    load_edited,
    load_forged,
    saved,
    written,
)
from tests.support.bins import Bins
from tests.support.forging import digest, rewritten


def after(change: Callable[[Path], Any]) -> None:
    """Open a plan in which something was changed."""
    root = saved()
    change(root)
    ip.load(root)


def forged_bins() -> None:
    """Open a plan of bins with a chunk that is one byte longer, and a manifest that agrees."""
    root = saved(plan=ip.Plan(Bins(10), batch_size=2))
    with (root / "epoch-00000/chunk-00000.npy").open("ab") as stream:
        stream.write(b"x")

    def change(manifest: dict[str, Any]) -> dict[str, Any]:
        first, *others = manifest["chunk_bytes"]
        return {**manifest, "chunk_bytes": [first + 1, *others]}

    rewritten(root, change)
    ip.load(root)


def wrong_fingerprint() -> None:
    """Change a fingerprint, and make the manifest's digest right again."""
    path = saved() / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["manifest_sha256"]
    manifest["order_fingerprint"] = "0" * 64
    path.write_text(canonical_json({**manifest, "manifest_sha256": digest(manifest)}))
    ip.load("a.plan")


def other_table() -> None:
    """Put a longer block table in its place, with its digest."""
    table = header("<u8", 5) + bytes(8 * 5)
    root = forged(blocks_sha256=hashlib.sha256(table).hexdigest())
    written(f"{root}/blocks.npy", table)
    ip.load(root)


CASES: list[Case] = [
    ("a manifest of another format", lambda: load_edited(format="other")),
    ("a manifest of a later format", lambda: load_edited(format_version=2)),
    (
        "a manifest of traits that are none",
        lambda: load_edited(traits=["once"]),
    ),
    (
        "a manifest of a trait that is none",
        lambda: load_edited(traits={**asdict(ip.Traits()), "reads": "twice"}),
    ),
    ("a manifest of too few traits", lambda: load_edited(traits={"reads": "any"})),
    ("a manifest of a stream key that is none", lambda: load_edited(stream_key=-1)),
    ("a manifest of epochs that are none", lambda: load_edited(epochs=5)),
    ("a manifest of an epoch that is none", lambda: load_edited(epochs=[-1])),
    ("a manifest of empty epochs", lambda: load_edited(num_units=[0])),
    ("a manifest of too many epochs", lambda: load_edited(epochs=[0, 1])),
    ("a manifest of no order", lambda: load_edited(order=5)),
    ("a manifest of no samples", lambda: load_edited(num_samples=0)),
    ("a manifest of empty chunks", lambda: load_edited(units_per_chunk=0)),
    ("a manifest of no dataset", lambda: load_edited(dataset=5)),
    ("a manifest of a dataset that was edited", lambda: load_edited(dataset={"kind": "folder"})),
    ("a manifest with more fields", lambda: load_edited(colour="red")),
    ("a manifest that was edited", lambda: load_edited(library_version="9")),
    ("a manifest of too few chunks", lambda: load_forged(chunk_bytes=[1152])),
    ("a manifest of a chunk's size that is none", lambda: load_forged(chunk_bytes=[1] * 4)),
    ("a manifest of another chunk's size", lambda: load_forged(chunk_bytes=[1153] * 4)),
    ("a manifest of other fingerprints", wrong_fingerprint),
    ("a manifest with much to quote", lambda: load_edited(**{"x" * 2000: 1})),
    ("an algorithm that is a number", lambda: load_forged(order={"algorithm": 5})),
    ("a chunk of bins that is one byte longer", forged_bins),
    ("a manifest of a plan that is none", lambda: load_forged(plan={})),
    ("a block table that was edited", lambda: after(lambda r: damaged(r / "blocks.npy", 130))),
    ("a block table of another length", other_table),
]
