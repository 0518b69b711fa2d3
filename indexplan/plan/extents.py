"""The extent of an order that leaves units out: how many each epoch has, asked of its layer."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, cast

from indexplan.once import once
from indexplan.orders.base import Order
from indexplan.partition.extent import Extent
from indexplan.partition.steps import Int64

if TYPE_CHECKING:
    from indexplan.orders.gaps import Gaps


class OrderExtent:
    """What the partition needs to know of an order that leaves units out; equal for equal orders.

    Units before an epoch are summed up in closed form, because all epochs between two that the
    order names have equally many.
    """

    def __init__(self, order: Gaps) -> None:
        self._order = order

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OrderExtent):
            return NotImplemented
        return self._order is other._order or self._text == other._text

    def __hash__(self) -> int:
        return self._hash

    @once
    def _text(self) -> str:
        return self._order.fingerprint

    @once
    def _hash(self) -> int:
        return hash(self._text)

    def units(self, epoch: int) -> int:
        """Return how many units an epoch has."""
        return self._order.num_units(epoch)

    @property
    def sums_up(self) -> bool:
        """Whether the order names the epochs at which its number of units changes."""
        return self._order._changes is not None  # noqa: SLF001 (of an order, for this)

    @property
    def changed(self) -> list[int]:
        """The epochs from which on all have equally many units, where the order names them."""
        return sorted({0, *(self._order._changes or ())})  # noqa: SLF001

    @once
    def _rows(self) -> list[tuple[int, int, int]]:
        """Those epochs, as (units before it, it, its units)."""
        epochs = self.changed
        units = [self._order.num_units(epoch) for epoch in epochs]
        added = ((b - a) * num for (a, b), num in zip(pairwise(epochs), units, strict=False))
        before = accumulate(added, initial=0)
        return list(zip(before, epochs, units, strict=True))

    def before(self, epoch: int) -> int:
        """Return how many units all epochs before this one have together."""
        before, first, units = self._rows[bisect_right(self._rows, epoch, key=_epoch) - 1]
        return before + (epoch - first) * units

    def holding(self, place: int) -> tuple[int, int]:
        """Return the epoch and the position in it of a stream place."""
        before, first, units = self._rows[bisect_right(self._rows, place, key=_before) - 1]
        epochs, position = divmod(place - before, units)
        return first + epochs, position

    def edge(self, epoch: int, parts: int, part: int) -> int:
        """Return the position at which one of so many sub-epochs starts, or the last one ends."""
        return self._order._edge(epoch, parts, part)  # noqa: SLF001

    def parts_of(self, epoch: int, parts: int, positions: Int64) -> Int64:
        """Return the sub-epochs that hold some positions."""
        return self._order._parts_of(epoch, parts, positions)  # noqa: SLF001

    def changes(self, epoch: int, parts: int) -> set[int]:
        """Return the sub-epochs at which their size changes, from 0 to `parts`."""
        return self._order._part_changes(epoch, parts)  # noqa: SLF001

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> tuple[int, int]:
        """Return how many units of some sub-epochs are skipped, and how many excluded."""
        return self._order._missing(epoch, parts, start, stop)  # noqa: SLF001


def _before(row: tuple[int, int, int]) -> int:
    return row[0]


def _epoch(row: tuple[int, int, int]) -> int:
    return row[1]


def extent_of(order: Order) -> Extent | None:
    """Return the extent of an order that leaves units out; None for all others."""
    layer = order._gaps  # noqa: SLF001 (of an order, for this)
    return None if layer is None else OrderExtent(cast("Gaps", layer))
