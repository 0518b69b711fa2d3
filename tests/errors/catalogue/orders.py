"""Errors of orders of one's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.orders import Traits, Units, expand
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


# the cures, followed


@ip.register
class Found(Nowhere):
    """An order that says where it reads samples."""

    algorithm = "test-found-v1"
    traits = Traits(reads="any")

    def find(self, epoch: int, indices: Any, most: int | None = None) -> Any:
        """Find sample 0 at every position, and no other."""
        counts = np.where(indices == 0, self.num_samples, 0)
        return (
            np.repeat(np.arange(len(indices)), counts),
            np.tile(np.arange(self.num_samples), np.count_nonzero(counts)),
        )


class Filled(Unread):
    """An order that says what it reads."""

    algorithm = "test-filled-v1"

    def fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        """Read the samples from the front."""
        out[:] = expand(starts, stops)


class Dealt(Unread):
    """An order that deals bins, of one sample each."""

    algorithm = "test-dealt-v1"
    traits = Traits(deals_bins=True)

    def deal(self, epoch: int, starts: Any, stops: Any) -> Units:
        """Deal the samples from the front."""
        samples = expand(starts, stops)
        return Units(samples, np.ones(len(samples), np.int64))


@ip.register
@dataclass(frozen=True, eq=False)
class Frozen(ip.Sequential):
    """An order that is a frozen dataclass."""

    algorithm = "test-frozen-v1"


@ip.register
class Written(Plain):
    """An order whose fields nobody knows, and which writes them itself."""

    algorithm = "test-written-v1"

    def to_dict(self) -> dict[str, Any]:
        """Write the one field."""
        return {"algorithm": self.algorithm, "num_samples": self.num_samples}

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Any:
        """Read the one field."""
        return cls(values["num_samples"])


class Halved(ip.Sequential):
    """An order of half as many units as samples, in NumPy's integers."""

    def num_units(self, epoch: int) -> Any:
        """Round down."""
        return np.int64(self.num_samples // 2)


def saved(order: ip.Order) -> Any:
    """Write a plan of an order, and read it back."""
    text = ip.Plan(order, batch_size=1).to_json()
    assert ip.Plan.from_json(text).to_json() == text


CURED: dict[str, Callable[[], Any]] = {
    "no inverse": lambda: Found(5).locate(0, 1),
    "an order that reads nothing": lambda: (Filled(5).take(0, 1), Dealt(5).take(0, 1)),
    "a field named like a hook": lambda: of("Full", __annotations__={"fill_": "bool"}),
    "a final method written again": lambda: (Filled(5).take(0, 1), Dealt(5).take(0, 1)),
    "bins without deal": lambda: Dealt(5).take(0, 1),
    "an order without fields": lambda: (saved(Frozen(5)), saved(Written(5))),
    "a check of a class": lambda: ip.testing.check_order(ip.Shuffle(100)),
    "a check of no epochs": lambda: ip.testing.check_order(ip.Shuffle(5)),
    "a check of an order that breaks a law": lambda: ip.testing.check_order(Found(5)),
    "orders too deep": lambda: nested(7),
    "a float of units": lambda: Halved(5).take(0, 1),
    "a field of nan": lambda: Spread(5, 1.5).fingerprint,
}
