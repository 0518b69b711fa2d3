"""Errors of orders of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case
from tests.support.listed import Wrapped


@dataclass(frozen=True, eq=False)
class Nowhere(ip.Order):
    """An order that does not say where it reads samples."""

    num_samples: int

    algorithm = "test-nowhere-v1"

    def _fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        out[:] = 0


@dataclass(frozen=True, eq=False)
class Once(Nowhere):
    """An order that may repeat samples, and names one place of each."""

    traits = ip.Traits(reads="any")

    def _locate(self, epoch: int, indices: Any) -> Any:
        return indices


class Plain(ip.Sequential):
    """An order whose fields nobody knows."""

    __dataclass_fields__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Spread(ip.Sequential):
    """An order with a float."""

    width: float = 1.0

    algorithm = "test-spread-v1"


def nested(depth: int) -> Any:
    """Nest an order, and read it back."""
    order: ip.Order = ip.Sequential(5)
    for _ in range(depth):
        order = Wrapped(order)
    return ip.Plan.from_json(ip.Plan(order, batch_size=1).to_json())


CASES: list[Case] = [
    ("a trait of a number", lambda: ip.Traits(deals_bins=1)),
    ("a trait of another word", lambda: ip.Traits(reads="twice")),
    ("no inverse", lambda: Nowhere(5).locate(0, 1)),
    ("an inverse of one place", lambda: Once(5).count(0, 1)),
    ("an order without fields", lambda: Plain(5).to_dict()),
    ("a check of a class", lambda: ip.testing.check_order(ip.Shuffle)),
    ("a check of no epochs", lambda: ip.testing.check_order(ip.Shuffle(5), epochs=[])),
    ("a check of an order that breaks a law", lambda: ip.testing.check_order(Nowhere(5))),
    ("orders too deep", lambda: nested(8)),
    ("a field of nan", lambda: Spread(5, float("nan")).fingerprint),
]
