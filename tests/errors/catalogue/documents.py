"""Errors of windows of documents, and of orders that cut samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.orders import Traits, Units
from tests.errors.catalogue.made import Case, saved
from tests.support.forging import rehashed, rewritten
from tests.support.listed import Wrapped

ORDER = ip.DocumentWindows([5, 3, 9, 4], 10)
PLAN = ip.Plan(ORDER, world_size=1, batch_size=1)


@dataclass(frozen=True, eq=False)
class Cut(ip.Sequential):
    """An order that says that it cuts samples, and not where."""

    algorithm = "test-cut-v1"
    traits = Traits(deals_bins=True, cuts_samples=True)

    def deal(self, epoch: int, starts: Any, stops: Any) -> Units:
        return super().deal(epoch, starts, stops)


@dataclass(frozen=True, eq=False)
class Over(Wrapped):
    """An order over another one, which knows nothing of spans."""

    algorithm = "test-over-v1"
    traits = Traits(deals_bins=True, reads="any")


def forged(**changes: Any) -> None:
    """Open a plan of pieces whose plan.json was edited with care."""
    root = saved(plan=PLAN)
    rewritten(root, lambda content: {**content, **changes})
    ip.load(root)


def other_spans(change: Callable[[Any], Any]) -> None:
    """Change the spans of a plan directory, and read."""
    path = Path(saved(plan=PLAN), "epoch-00000/chunk-00000.spans.npy")
    data = path.read_bytes()
    path.write_bytes(data[:128] + change(np.load(path)).tobytes())
    rehashed(path)
    ip.types.Stored("a.plan").spans(0, 0, 2)


def more_spans() -> None:
    """Open a plan of pieces whose file of spans is too long."""
    with Path(saved(plan=PLAN), "epoch-00000/chunk-00000.spans.npy").open("ab") as stream:
        stream.write(bytes(16))
    ip.load("a.plan")


CASES: list[Case] = [
    ("a document of no tokens", lambda: ip.DocumentWindows([5, 0, 3], 2)),
    ("a window longer than all documents", lambda: ip.DocumentWindows([5, 3], 8)),
    ("too many tokens", lambda: ip.DocumentWindows(np.full(2**23, 2**40), 8)),
    ("spans of whole samples", lambda: ip.Shuffle(5).spans(0, 1)),
    ("a trait of pieces without bins", lambda: Traits(cuts_samples=True)),
    ("spans that nobody wrote", lambda: Cut(5).spans(0, 1)),
    ("a layer that knows nothing of spans", lambda: ip.Plan(Over(ORDER), batch_size=1)),
    (
        "a mixture of pieces and whole samples",
        lambda: ip.Mixture({"web": ORDER, "code": ip.Shuffle(9)}, {"web": 1, "code": 1}),
    ),
    ("a column's sum over pieces", lambda: PLAN.step_total(ORDER.lengths, 0, step=0)),
    (
        "a plan.json of pieces of single samples",
        lambda: forged(traits={**asdict(ORDER.traits), "deals_bins": False}),
    ),
    ("more spans than samples", more_spans),
    ("spans of no tokens", lambda: other_spans(lambda spans: spans * 0)),
]
