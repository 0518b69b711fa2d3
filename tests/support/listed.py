"""An order for tests that has a column, and one that has another order inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import Traits, Units, expand

Int64 = NDArray[np.int64]


@ip.register
@dataclass(frozen=True, eq=False)
class Listed(ip.Order):
    """Reads a column of samples from the front, in every epoch; shares scale nothing."""

    samples: ip.Column
    num_samples: int
    shares: ip.Column | None = None

    algorithm = "test-listed-column-v1"
    traits = Traits(reads="any")

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", ip.Column.of(self.samples, "integers"))
        if self.shares is not None:
            object.__setattr__(self, "shares", ip.Column.of(self.shares, "floats"))

    def num_units(self, epoch: int) -> int:
        return len(self.samples)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = self.samples.array[expand(starts, stops)]

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = np.nonzero(indices[:, None] == self.samples.array)
        return which, positions


@ip.register
@dataclass(frozen=True, eq=False)
class Wrapped(ip.Order):
    """The order that it holds, and no other."""

    order: ip.Order

    algorithm = "test-wrapped-v1"

    @property
    def num_samples(self) -> Any:
        return self.order.num_samples

    @property
    def traits(self) -> Traits:
        return self.order.traits

    def num_units(self, epoch: int) -> int:
        return self.order.num_units(epoch)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        self.order.fill(epoch, starts, stops, out)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        return self.order.deal(epoch, starts, stops)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return self.order.find(epoch, indices, most)
