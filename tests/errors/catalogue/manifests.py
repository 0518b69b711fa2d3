"""Errors of plan directories whose manifest or block table is not what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
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
    (
        "a manifest of another format",
        lambda: load_edited(format="other"),
        "{here}/a.plan: format must be 'indexplan'; got 'other'; restore the file, or build the "
        "plan again at another path",
    ),
    (
        "a manifest of a later format",
        lambda: load_edited(format_version=5),
        "{here}/a.plan: format_version must be from 1 to 4; got 5; read it with a newer indexplan",
    ),
    (
        "a manifest of promises that are none",
        lambda: load_edited(format_version=2, constant_num_units=1, reads="twice", stream_key=0),
        "{here}/a.plan: constant_num_units and reads must be a boolean and one of once, at most "
        "once, any; got (1, 'twice'); restore the file, or build the plan again at another path",
    ),
    (
        "a manifest of a stream key that is none",
        lambda: load_edited(format_version=2, constant_num_units=True, reads="any", stream_key=-1),
        "{here}/a.plan: stream_key must be an integer from 0 to 2**128 - 1; got -1; restore the "
        "file, or build the plan again at another path",
    ),
    (
        "a manifest of epochs that are none",
        lambda: load_edited(epochs=5),
        "{here}/a.plan: epochs must be a list of integers; got 5; restore the file, or build "
        "the plan again at another path",
    ),
    (
        "a manifest of an epoch that is none",
        lambda: load_edited(epochs=[-1]),
        "{here}/a.plan: an epoch must be an integer from 0 to 2**32 - 1; got -1; restore the "
        "file, or build the plan again at another path",
    ),
    (
        "a manifest of empty epochs",
        lambda: load_edited(num_units=[0]),
        "{here}/a.plan: num_units must be an integer from 1 to 2**63 - 1; got 0; restore the "
        "file, or build the plan again at another path",
    ),
    (
        "a manifest of too many epochs",
        lambda: load_edited(epochs=[0, 1]),
        "{here}/a.plan: epochs must be rising, with one num_units each; got [0, 1]; restore "
        "the file, or build the plan again at another path",
    ),
    (
        "a manifest of no order",
        lambda: load_edited(order=5),
        "{here}/a.plan: order and deals_bins must be an object and a boolean; got (5, False); "
        "restore the file, or build the plan again at another path",
    ),
    (
        "a manifest of no samples",
        lambda: load_edited(num_samples=0),
        "{here}/a.plan: num_samples must be an integer from 1 to 2**63 - 1; got 0; restore the "
        "file, or build the plan again at another path",
    ),
    (
        "a manifest of empty chunks",
        lambda: load_edited(units_per_chunk=0),
        "{here}/a.plan: units_per_chunk must be an integer from 1 to 2**40 - 1; got 0; restore "
        "the file, or build the plan again at another path",
    ),
    (
        "a manifest of no dataset",
        lambda: load_edited(dataset=5),
        "{here}/a.plan: a dataset must be an object; got 5; pass what to_dict returned, or "
        "restore the file that it comes from",
    ),
    (
        "a manifest of a dataset that was edited",
        lambda: load_edited(dataset={"kind": "folder"}),
        "{here}/a.plan: a dataset must have the fields ['header', 'names_sha256', 'num_bytes', "
        "'num_samples', 'pattern', 'sizes_sha256']; got only ['kind']; pass what to_dict "
        "returned, or restore the file that it comes from",
    ),
    (
        "a manifest with more fields",
        lambda: load_edited(colour="red"),
        "{here}/a.plan: a manifest must have only the fields ['blocks_sha256', 'chunk_bytes', "
        "'dataset', 'deals_bins', 'epochs', 'format', 'format_version', 'library_version', "
        "'manifest_sha256', 'num_samples', 'num_units', 'order', 'order_fingerprint', 'plan', "
        "'plan_fingerprint', 'units_per_chunk']; got ['colour']; restore the file, or build the "
        "plan again at another path",
    ),
    (
        "a manifest that was edited",
        lambda: load_edited(library_version="9"),
        "{here}/a.plan: manifest.json must be as it was written; it was edited; restore the "
        "file, or build the plan again at another path",
    ),
    (
        "a manifest of too few chunks",
        lambda: load_forged(chunk_bytes=[1152]),
        "{here}/a.plan: chunk_bytes must be a list of 4 sizes, one for each chunk; got [1152]; "
        "restore the file, or build the plan again at another path",
    ),
    (
        "a manifest of a chunk's size that is none",
        lambda: load_forged(chunk_bytes=[1] * 4),
        "{here}/a.plan: a size must be an integer from 128 to 2**63 - 1; got 1; restore the "
        "file, or build the plan again at another path",
    ),
    (
        "a manifest of another chunk's size",
        lambda: load_forged(chunk_bytes=[1153] * 4),
        "{here}/a.plan: the size of epoch-00000/chunk-00000.npy must be 1152 bytes; got 1153; "
        "restore the file, or build the plan again at another path",
    ),
    (
        "a manifest of other fingerprints",
        wrong_fingerprint,
        "{here}/a.plan: manifest.json must agree with itself; its fingerprints do not; restore "
        "the file, or build the plan again at another path",
    ),
    (
        "a manifest with much to quote",
        lambda: load_edited(**{"x" * 2000: 1}),
        "{here}/a.plan: a manifest must have only the fields ['blocks_sha256', 'chunk_bytes', "
        "'dataset', 'deals_bins', 'epochs', 'format', 'format_version', 'library_version', "
        "'manifest_sha256', 'num_samples', 'num_units', 'order', 'order_fingerprint', 'plan', "
        "'plan_fingerprint', 'units_per_chunk']; got "
        "['" + 298 * "x" + "...; "
        "restore the file, or build the plan again at another path",
    ),
    (
        "an algorithm that is a number",
        lambda: load_forged(order={"algorithm": 5}),
        "{here}/a.plan: an order's algorithm must be a string; got 5; restore the file, or build "
        "the plan again at another path",
    ),
    (
        "a chunk of bins that is one byte longer",
        forged_bins,
        "{here}/a.plan: the size of epoch-00000/chunk-00000.npy must be 128 bytes, and 4 for each "
        "index; got 169; restore the file, or build the plan again at another path",
    ),
    (
        "a manifest of a plan that is none",
        lambda: load_forged(plan={}),
        "a.plan: a plan must have the fields ['batch_size', 'global_batch_size', 'partition', "
        "'remainder', 'resumed', 'sub_epochs', 'world_size']; got only ['order']; write it with "
        "to_json, or read it with the version of indexplan that wrote it",
    ),
    (
        "a block table that was edited",
        lambda: after(lambda r: damaged(r / "blocks.npy", 130)),
        "{here}/a.plan/blocks.npy must be as it was written; it was not; delete blocks.npy and "
        "manifest.json, and run the same build again",
    ),
    (
        "a block table of another length",
        other_table,
        "{here}/a.plan/blocks.npy must hold 4 hashes; delete it and manifest.json, and run the "
        "same build again",
    ),
]
