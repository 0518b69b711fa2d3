"""Errors of windows of documents, and of orders that cut samples."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.orders import Traits, Units
from tests.errors.catalogue.made import Case, saved
from tests.support.forging import rehashed, rewritten
from tests.support.listed import Wrapped

ORDER = ip.DocumentWindows([5, 3, 9, 4], 10)
PLAN = ip.Plan(ORDER, world_size=1, batch_size=1)
WHOLE = ip.Plan(ip.Shuffle(4), world_size=1, batch_size=1)


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


def changed() -> None:
    """Change the lengths' file before the blocks are added up."""
    np.save("lengths.npy", np.arange(1, 99))
    order = ip.DocumentWindows("lengths.npy", 2)
    np.save("lengths.npy", np.arange(1, 9))
    order.take(0, 0)


CASES: list[Case] = [
    ("a document of no tokens", lambda: ip.DocumentWindows([5, 0, 3], 2)),
    ("a window longer than all documents", lambda: ip.DocumentWindows([5, 3], 8)),
    ("too many tokens", lambda: ip.DocumentWindows(np.full(2**23, 2**40), 8)),
    ("lengths that have changed", changed),
    ("spans of whole samples", lambda: ip.Shuffle(5).spans(0, 1)),
    ("a trait of pieces without bins", lambda: Traits(cuts_samples=True)),
    ("spans that nobody wrote", lambda: Cut(5).spans(0, 1)),
    ("a layer that knows nothing of spans", lambda: ip.Plan(Over(ORDER), batch_size=1)),
    (
        "a layer that knows nothing of spans, inside others",
        lambda: ip.Plan(
            ip.Mixture(
                {"a": ip.Subset(Over(ORDER), range(4), 9), "b": ip.Shuffle(5)}, [(0, [1, 1])]
            ),
            batch_size=1,
        ),
    ),
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


# the cures, followed


@dataclass(frozen=True, eq=False)
class Spanned(Cut):
    """An order that says where it cuts samples: each after its first token."""

    algorithm = "test-spanned-v1"

    def deal(self, epoch: int, starts: Any, stops: Any) -> Units:
        """Deal the spans with the samples."""
        units = super().deal(epoch, starts, stops)
        return units._replace(spans=np.tile([0, 1], (len(units.samples), 1)))


@dataclass(frozen=True, eq=False)
class Through(Over):
    """An order over another one, whose spans it passes on."""

    algorithm = "test-through-v1"
    traits = Traits(deals_bins=True, reads="any", cuts_samples=True)


def inside(order: ip.Order) -> Any:
    """Read an order inside others."""
    sources = {"a": ip.Subset(order, range(4), 9), "b": ip.DocumentWindows([5, 8], 3)}
    plan = ip.Plan(ip.Mixture(sources, [(0, {"a": 1, "b": 1})]), world_size=1, batch_size=1)
    return plan.units(0, rank=0, step=0)


def reopened() -> Any:
    """Open lengths again once they are complete."""
    np.save("lengths.npy", np.arange(1, 99))
    ip.DocumentWindows("lengths.npy", 2)
    np.save("lengths.npy", np.arange(1, 9))
    return ip.DocumentWindows("lengths.npy", 2).take(0, 0)


def tokens() -> Any:
    """Count a step's tokens, by its size and by its spans."""
    units = PLAN.step_size(0, step=0)
    spans: Any = PLAN.units(0, rank=0, step=0).spans
    read = np.diff(spans).sum()
    assert units * ORDER.length == read - units * ORDER.overlap


def rebuilt() -> Any:
    """Build the plan again at another path."""
    saved(plan=PLAN)
    return ip.types.Stored(saved("another.plan", plan=PLAN)).spans(0, 0, 2)


def rebuilt_here() -> Any:
    """Delete the file that is too long, and run the same build again."""
    saved(plan=PLAN)
    Path("a.plan/epoch-00000/chunk-00000.spans.npy").unlink()
    return ip.verify(ip.load(saved(plan=PLAN)))


def verified() -> Any:
    """Let the command say which spans are wrong."""
    with pytest.raises(ip.IndexPlanError):
        other_spans(lambda spans: spans * 0)
    run = [sys.executable, "-m", "indexplan", "verify", "a.plan"]
    said = subprocess.run(run, capture_output=True, text=True, check=False).stdout
    assert "epoch-00000/chunk-00000.spans.npy, block 0: number 1 of epoch 0 holds 0" in said


CURED: dict[str, Callable[[], Any]] = {
    "a document of no tokens": lambda: ip.DocumentWindows([5, 3], 2),
    "a window longer than all documents": lambda: (
        ip.DocumentWindows([5, 3], 7),
        ip.DocumentWindows([5, 3, 1], 8),
    ),
    "too many tokens": lambda: ip.DocumentWindows(np.full(2**23, 2**30), 8),
    "lengths that have changed": reopened,
    "spans of whole samples": lambda: ip.Shuffle(5).take(0, 1),
    "a trait of pieces without bins": lambda: Traits(cuts_samples=True, deals_bins=True),
    "spans that nobody wrote": lambda: Spanned(5).spans(0, 1),
    "a layer that knows nothing of spans": lambda: ip.Plan(
        Through(ORDER), world_size=1, batch_size=1
    ).units(0, rank=0, step=0),
    "a layer that knows nothing of spans, inside others": lambda: inside(Through(ORDER)),
    "a mixture of pieces and whole samples": lambda: ip.Mixture(
        {"web": ORDER, "code": ip.DocumentWindows([3] * 9, 10)}, {"web": 1, "code": 1}
    ),
    "a column's sum over pieces": tokens,
    "a plan.json of pieces of single samples": rebuilt,
    "more spans than samples": rebuilt_here,
    "spans of no tokens": verified,
}
