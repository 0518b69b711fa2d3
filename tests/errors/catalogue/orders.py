"""Errors of orders of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import indexplan as ip
from indexplan.orders import Traits
from tests.errors.catalogue.made import Case
from tests.support.listed import Wrapped


@dataclass(frozen=True, eq=False)
class Nowhere(ip.Order):
    """An order that does not say where it reads samples."""

    num_samples: int

    algorithm = "test-nowhere-v1"

    def fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        out[:] = 0


@dataclass(frozen=True, eq=False)
class Unread(ip.Order):
    """An order that reads nothing."""

    num_samples: int

    algorithm = "test-unread-v1"


def of(name: str, **body: Any) -> Any:
    """Make a class of orders with something of its own."""
    return type(name, (ip.Sequential,), body)


class Plain(ip.Sequential):
    """An order whose fields nobody knows."""

    __dataclass_fields__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Spread(ip.Sequential):
    """An order with a float."""

    width: float = 1.0

    algorithm = "test-spread-v1"


class Half(ip.Sequential):
    """An order of half as many units as samples."""

    def num_units(self, epoch: int) -> Any:
        return self.num_samples / 2


def nested(depth: int) -> Any:
    """Nest an order, and read it back."""
    order: ip.Order = ip.Sequential(5)
    for _ in range(depth):
        order = Wrapped(order)
    return ip.Plan.from_json(ip.Plan(order, batch_size=1).to_json())


CASES: list[Case] = [
    ("no inverse", lambda: Nowhere(5).locate(0, 1)),
    ("an order that reads nothing", lambda: Unread(5).take(0, 1)),
    ("a field named like a hook", lambda: of("Full", __annotations__={"fill": "bool"})),
    ("a final method written again", lambda: of("Own", take=len)),
    ("bins without deal", lambda: of("Boxes", traits=Traits(deals_bins=True))),
    ("an order without fields", lambda: Plain(5).to_dict()),
    ("a check of a class", lambda: ip.testing.check_order(ip.Shuffle)),
    ("a check of no epochs", lambda: ip.testing.check_order(ip.Shuffle(5), epochs=[])),
    ("a check of an order that breaks a law", lambda: ip.testing.check_order(Nowhere(5))),
    ("orders too deep", lambda: nested(8)),
    ("a float of units", lambda: Half(5).take(0, 1)),
    ("a field of nan", lambda: Spread(5, float("nan")).fingerprint),
]
