"""The extent: how many units each epoch has, where that is not one number for all of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


class Extent(Protocol):
    """How long epochs and sub-epochs are under an order that leaves units out; hashable.

    Its sub-epochs keep the units that they have without what is left out, so they are no equal
    parts of what remains.
    """

    def units(self, epoch: int) -> int:
        """Return how many units an epoch has."""

    @property
    def sums_up(self) -> bool:
        """Whether `before` and `holding` can be asked, as some formula adds up the epochs."""

    @property
    def changed(self) -> list[int]:
        """The epochs at which their number of units changes, where `sums_up`."""

    def before(self, epoch: int) -> int:
        """Return how many units all epochs before this one have together."""

    def holding(self, place: int) -> tuple[int, int]:
        """Return the epoch and the position in it of a stream place."""

    def edge(self, epoch: int, parts: int, part: int) -> int:
        """Return the position at which one of so many sub-epochs starts, or the last one ends."""

    def parts_of(self, epoch: int, parts: int, positions: Int64) -> Int64:
        """Return the sub-epochs that hold some positions."""

    def changes(self, epoch: int, parts: int) -> set[int]:
        """Return the sub-epochs at which their size changes, from 0 to `parts`."""

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> int:
        """Return how many units of some sub-epochs are excluded."""
