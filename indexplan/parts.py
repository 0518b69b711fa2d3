"""Things spread over parts as evenly as can be: sub-epochs of an epoch, steps of a span."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Integer = TypeVar("Integer", np.int64, np.uint64)


def split(total: int, parts: int, part: int) -> int:
    """Return where `part` starts when `total` things are spread over `parts` parts.

    The first `total % parts` parts get one thing more than the others.
    """
    return part * (total // parts) + min(part, total % parts)


def part_of(total: int, parts: int, things: NDArray[Integer]) -> NDArray[Integer]:
    """Return the part, by the rule of `split`, that holds each of `things`.

    With the shape of `things`, and their dtype, int64 or uint64.
    """
    if parts == 1:
        return np.zeros_like(things)
    as_theirs = things.dtype.type
    small, num_large = divmod(total, parts)
    bound = as_theirs(num_large * (small + 1))
    after = as_theirs(num_large) + (things - bound) // as_theirs(max(small, 1))
    found: NDArray[Integer] = np.where(things < bound, things // as_theirs(small + 1), after)
    return found


class Extent:
    """How long epochs and sub-epochs are under an order: here, one that leaves nothing out.

    This is what the partition knows of an order; equal for one and the same. Where some units are
    left out, sub-epochs keep the others that they have, so they are no equal parts of what remains.
    """

    def __init__(self, order: Any) -> None:
        self.order = order

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Extent) and self.order is other.order

    def __hash__(self) -> int:
        return id(self.order)

    @property
    def changing(self) -> set[int] | None:
        """The epochs from which the number of units changes; None if unknown."""
        return set() if self.order.constant_num_units else None

    @property
    def sums_up(self) -> bool:
        """Whether `before` and `holding` can be asked, as some formula adds up the epochs."""
        return self.changing is not None

    @property
    def changed(self) -> list[int]:
        """The epochs from which on all have equally many units, where `sums_up`."""
        return sorted({0, *(self.changing or ())})

    def units(self, epoch: int) -> int:
        """Return how many units an epoch has."""
        found: int = self.order.num_units(epoch)
        return found

    def before(self, epoch: int) -> int:
        """Return how many units all epochs before this one have together."""
        return epoch * self.units(0)

    def holding(self, place: int) -> tuple[int, int]:
        """Return the epoch and the position in it of a stream place."""
        return divmod(place, self.units(0)) if place else (0, 0)  # which may have no unit

    def edge(self, epoch: int, parts: int, part: int) -> int:
        """Return the position at which one of so many sub-epochs starts, or the last one ends."""
        return split(self.units(epoch), parts, part)

    def parts_of(self, epoch: int, parts: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the sub-epochs that hold some positions."""
        return part_of(self.units(epoch), parts, positions)

    def changes(self, epoch: int, parts: int) -> set[int]:
        """Return the sub-epochs at which their size changes, from 0 to `parts`."""
        return {0, self.units(epoch) % parts, parts}

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> int:
        """Return how many units of the sub-epochs [start, stop) are excluded."""
        return 0

    def num_taken_out(self, epoch: int) -> int:
        """Return how many samples an epoch removes from bins that it still reads."""
        return 0
