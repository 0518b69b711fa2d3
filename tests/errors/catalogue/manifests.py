"""Errors of plan directories whose plan.json or hashes are not what was written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import indexplan as ip
from indexplan.orders import Traits
from tests.errors.catalogue.made import (
    CHUNK,
    STORED,
    Case,
    damaged,
    load_edited,
    load_forged,
    saved,
)
from tests.support.bins import Bins

HASHES = CHUNK.replace(".npy", ".xxh64")
ORDER = STORED.order.to_dict()


def forged_bins(name: str) -> None:
    """Open a plan of bins with a file that is one byte longer."""
    root = saved(plan=ip.Plan(Bins(10), batch_size=2))
    with (root / "epoch-00000" / name).open("ab") as stream:
        stream.write(b"x")
    ip.load(root)


def touched_after(change: Callable[[Path], Any]) -> None:
    """Read a plan in which something was changed."""
    root = saved()
    change(root)
    ip.load(root).order.take(0, 300)


CASES: list[Case] = [
    ("a plan.json of another format", lambda: load_edited(format="other")),
    ("a plan.json of a later format", lambda: load_edited(format_version=3)),
    (
        "a plan.json of traits that are none",
        lambda: load_edited(traits=["once"]),
    ),
    (
        "a plan.json of a trait that is none",
        lambda: load_edited(traits={**asdict(Traits()), "reads": "twice"}),
    ),
    ("a plan.json of too few traits", lambda: load_edited(traits={"reads": "any"})),
    ("a plan.json of a stream key that is none", lambda: load_edited(stream_key=-1)),
    ("a plan.json of epochs that are none", lambda: load_edited(epochs=5)),
    ("a plan.json of an epoch that is none", lambda: load_edited(epochs=[-1])),
    ("a plan.json of empty epochs", lambda: load_edited(num_units=[0])),
    ("a plan.json of too many epochs", lambda: load_edited(epochs=[0, 1])),
    ("a plan.json of no order", lambda: load_edited(plan={"order": 5})),
    ("a plan.json of no samples", lambda: load_edited(num_samples=0)),
    ("a plan.json of empty chunks", lambda: load_edited(units_per_chunk=0)),
    ("a plan.json of no dataset", lambda: load_edited(dataset=5)),
    ("a plan.json of a dataset that was edited", lambda: load_edited(dataset={"kind": "folder"})),
    ("a plan.json that was edited", lambda: load_edited(num_samples=999)),
    ("a plan.json with much to quote", lambda: load_edited(**{"x" * 2000: 1})),
    ("an algorithm that is a number", lambda: load_forged(plan={"order": {"algorithm": 5}})),
    ("a plan.json of a plan that is none", lambda: load_forged(plan=5)),
    ("a plan.json of a plan of other fields", lambda: load_forged(plan={"order": ORDER})),
    ("a chunk of bins that is one byte longer", lambda: forged_bins("chunk-00000.npy")),
    ("hashes of another length", lambda: forged_bins("chunk-00000.xxh64")),
    ("hashes of another chunk", lambda: touched_after(lambda r: damaged(r / HASHES, 5))),
    ("a hash that was edited", lambda: touched_after(lambda r: damaged(r / HASHES, 35))),
]
