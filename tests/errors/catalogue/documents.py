"""Errors of windows of documents, and of orders that cut samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case, saved
from tests.support.forging import rewritten
from tests.support.listed import Wrapped

ORDER = ip.DocumentWindows([5, 3, 9, 4], 10)
PLAN = ip.Plan(ORDER, world_size=1, batch_size=1)
WHOLE = ip.Plan(ip.Shuffle(4), world_size=1, batch_size=1)
TOKENS = "leave out what is empty, or count in larger units"


@dataclass(frozen=True, eq=False)
class Cut(ip.Sequential):
    """An order that says that it cuts samples, and not where."""

    algorithm = "test-cut-v1"
    traits = ip.Traits(deals_bins=True, cuts_samples=True)


@dataclass(frozen=True, eq=False)
class Over(Wrapped):
    """An order over another one, which knows nothing of spans."""

    algorithm = "test-over-v1"
    traits = ip.Traits(deals_bins=True, reads="any")


def forged(**changes: Any) -> None:
    """Open a plan of pieces whose manifest was edited with care."""
    root = saved(plan=PLAN)
    rewritten(root, lambda manifest: {**manifest, **changes})
    ip.load(root)


def other_spans(change: Callable[[Any], Any]) -> None:
    """Change the spans of a plan directory, and read."""
    path = Path(saved(plan=PLAN), "epoch-00000/chunk-00000.spans.npy")
    data = path.read_bytes()
    path.write_bytes(data[:128] + change(np.load(path)).tobytes())
    ip.Stored("a.plan").spans(0, 0, 2)


def changed() -> None:
    """Change the lengths' file before the blocks are added up."""
    np.save("lengths.npy", np.arange(1, 99))
    order = ip.DocumentWindows("lengths.npy", 2)
    np.save("lengths.npy", np.arange(1, 9))
    order.take(0, 0)


CASES: list[Case] = [
    (
        "a document of no tokens",
        lambda: ip.DocumentWindows([5, 0, 3], 2),
        f"the length of sample 1 must be an integer from 1 to 1099511627776; got 0; {TOKENS}",
    ),
    (
        "windows of no tokens",
        lambda: ip.DocumentWindows([5, 3], 0),
        "length must be an integer from 1 to 2**63 - 1; got 0; pass the model's context length",
    ),
    (
        "an overlap below 0",
        lambda: ip.DocumentWindows([5, 3], 2, overlap=-1),
        "overlap must be an integer from 0 to 2**63 - 1; got -1; leave it out for 1",
    ),
    (
        "blocks of no documents",
        lambda: ip.DocumentWindows([5, 3], 2, block_size=0),
        "block_size must be an integer from 1 to 2**63 - 1; got 0; leave it out for 1024",
    ),
    (
        "a window longer than all documents",
        lambda: ip.DocumentWindows([5, 3], 8),
        "length + overlap must be at most 8, the sum of lengths; got 9; use shorter windows, or "
        "more documents",
    ),
    (
        "too many tokens",
        lambda: ip.DocumentWindows(np.full(2**23, 2**40), 8),
        "the sum of lengths must be below 2**63; got 9223372036854775808; count in larger units",
    ),
    (
        "lengths that have changed",
        changed,
        "{here}/lengths.npy must be the file that was opened; got 'one that has changed'; open it "
        "again once it is complete",
    ),
    (
        "spans of whole samples",
        lambda: ip.Shuffle(5).spans(0, 1),
        "an order must be one that cuts samples, such as DocumentWindows, to have spans; got "
        "'shuffle-v1'; read its samples whole",
    ),
    (
        "a plan's spans of whole samples",
        lambda: WHOLE.spans(0, step=0, rank=0),
        "an order must be one that cuts samples, such as DocumentWindows, to have spans; got "
        "'shuffle-v1'; read its samples whole",
    ),
    (
        "bins with spans of whole samples",
        lambda: WHOLE.bins(0, rank=0, spans=True),
        "an order must be one that cuts samples, such as DocumentWindows, to have spans; got "
        "'shuffle-v1'; read its samples whole",
    ),
    (
        "a trait of pieces without bins",
        lambda: ip.Traits(cuts_samples=True),
        "a trait, cuts_samples, must be False for single samples; got True; set "
        "deals_bins=True too",
    ),
    (
        "spans that nobody wrote",
        lambda: Cut(5).spans(0, 1),
        "Cut must write _spans, as it cuts samples; got none; see docs/orders.md",
    ),
    (
        "a layer that knows nothing of spans",
        lambda: ip.Plan(Over(ORDER), batch_size=1),
        "cuts_samples must be True in Over, as document-windows-v1 inside it cuts samples; got "
        "False; write _spans too, and set cuts_samples=True in its traits",
    ),
    (
        "a layer that knows nothing of spans, inside others",
        lambda: ip.Plan(
            ip.Mixture(
                {"a": ip.Subset(Over(ORDER), range(4), 9), "b": ip.Shuffle(5)}, [(0, [1, 1])]
            ),
            batch_size=1,
        ),
        "cuts_samples must be True in Over, as document-windows-v1 inside it cuts samples; got "
        "False; write _spans too, and set cuts_samples=True in its traits",
    ),
    (
        "a mixture of pieces and whole samples",
        lambda: ip.Mixture({"web": ORDER, "code": ip.Shuffle(9)}, {"web": 1, "code": 1}),
        "Mixture needs sources all of which cut samples, or none; got 'web', which does, and "
        "'code', which does not; read all of them in DocumentWindows",
    ),
    (
        "a column's sum over pieces",
        lambda: PLAN.step_total(ORDER.lengths, 0, step=0),
        "a column to sum must be None, as the order cuts samples and a step reads parts of them; "
        "got <Column of 4 numbers, <i8>; multiply step_size by the order's length for tokens, or "
        "add up plan.spans",
    ),
    (
        "a manifest of pieces that are none",
        lambda: forged(cuts_samples=False),
        "{here}/a.plan: cuts_samples and deals_bins must be true in format version 3; got (False, "
        "True); restore the file, or build the plan again at another path",
    ),
    (
        "a manifest of more spans than samples",
        lambda: forged(chunk_bytes=[148, 152, 240]),
        "{here}/a.plan: the size of epoch-00000/chunk-00000.spans.npy must be 128 bytes, and 16 "
        "for each of 5 indices; got 240; restore the file, or build the plan again at another path",
    ),
    (
        "spans of no tokens",
        lambda: other_spans(lambda spans: spans * 0),
        "{here}/a.plan: the spans of epoch 0 must hold at least one token each; some do not; "
        "run `indexplan verify` to see what is wrong",
    ),
]
