"""Read every unit several times in an epoch: repeat-v1."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from indexplan.errors import IndexPlanError, integer, invalid
from indexplan.once import once
from indexplan.orders.base import Float64, Int64, Order
from indexplan.orders.fields import whole
from indexplan.orders.layers import Layer, Run
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.orders.units import expand


@register
@dataclass(frozen=True, eq=False)
class Repeat(Layer):
    """Reads every unit of another order several times in an epoch, within a span that you choose.

    For repeated augmentation (Hoffer et al., "Augment Your Batch", CVPR 2020): a step reads several
    copies of a sample, and the rank that reads a copy augments it.

    Parameters
    ----------
    order : Order
        The order to read.
    copies : int
        How often to read each unit, 1 <= copies < 2**31.
    span : int, optional
        All copies of a unit are in the same block of this many positions, a multiple of `copies`.
        By default `copies`, which makes copies neighbours. With a span of the global batch, all
        copies are in the same step, on different ranks if there are enough, under the remainders
        "drop" and "pad". Under "spread", steps may be smaller, and part copies.

    Raises
    ------
    IndexPlanError
        If copies is out of range, span is not a multiple of it, or an epoch would have 2**63 units
        or more.

    Notes
    -----
    Position p is in block p // span, which holds m = min(span, what is left) / copies units and
    reads them in turn: position p reads unit (p % span) % m of the block.

    Examples
    --------
    >>> import indexplan as ip
    >>> ip.Repeat(ip.Sequential(5), copies=2, span=6).take(0, 0, 10)
    array([0, 1, 2, 0, 1, 2, 3, 4, 3, 4])
    """

    order: Order
    copies: int = field(metadata=whole(1, 2**31, "pass how often a unit is read"))
    span: int | None = None

    algorithm = "repeat-v1"
    _keeps_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        copies = self.copies
        span = copies if self.span is None else self.span
        span = integer("span", span, 1, 2**63, "leave it out for copies that are neighbours")
        if span % copies:
            cure = f"use {-(-span // copies) * copies}"
            raise invalid("span", f"a multiple of copies, {copies}", span, cure)
        vars(self)["span"] = span
        self.num_units(0)  # raises if there are too many

    @once
    def traits(self) -> Traits:
        """The inner order's; with more than one copy, samples are read more than once."""
        inner = self.order.traits
        reads = inner.reads if self.copies == 1 else "any"
        return replace(inner, reads=reads)

    def num_units(self, epoch: int) -> int:
        """Return the inner order's number of units, times the copies."""
        num_units = self.copies * self.order.num_units(epoch)
        if num_units >= 2**63:
            what, rule = "an epoch of Repeat", "must have fewer than 2**63 units"
            raise IndexPlanError(what, rule, num_units, "use fewer copies")
        return num_units

    @property
    def _width(self) -> int:
        """Different units in a span."""
        return (self.span or self.copies) // self.copies

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> list[Run]:
        """Return the inner position of each position of some runs."""
        _, units = self._turns(epoch, starts, stops)
        return [(epoch, units, units + 1)]

    def _turns(self, epoch: int, starts: Int64, stops: Int64) -> tuple[Int64, Int64]:
        """Return for each position the turn of its block that it is in, and the unit inside."""
        block, at = np.divmod(expand(starts, stops), self._width * self.copies)
        begin = block * self._width
        held = np.minimum(self._width, self.order.num_units(epoch) - begin)
        turns, at = np.divmod(at, held)
        return turns, begin + at

    @property
    def ip_num_copies(self) -> int:
        return self.copies * self.order.ip_num_copies

    def ip_copies(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        turns, units = self._turns(epoch, starts, stops)
        inside = self.order.ip_copies(epoch, units, units + 1)
        return turns * self.order.ip_num_copies + inside

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner epoch and position where the last span that has begun ends."""
        blocks = -(-position // (self._width * self.copies))
        return epoch, min(blocks * self._width, self.order.num_units(epoch))

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share over whole spans and parts of spans."""
        # Whole spans read all their units `copies` times. At each end there may be part of a span:
        # the end of a turn through its units, some whole turns, and the start of another.
        intervals = []
        size, units = self._width * self.copies, self.order.num_units(epoch)
        first, last = -(-start // size), stop // size  # whole spans
        cuts = {start, stop, *(cut * size for cut in (first, last) if first <= last)}
        for low, high in pairwise(sorted(cuts)):
            begin = low // size * self._width
            if low % size == 0 and high % size == 0:
                intervals.append((self.copies, epoch, begin, high // size * self._width))
                continue
            held = min(self._width, units - begin)
            (turn, at), (until, end) = (divmod(p - low // size * size, held) for p in (low, high))
            if turn == until:
                intervals.append((1, epoch, begin + at, begin + end))
                continue
            intervals.append((1, epoch, begin + at, begin + held))
            intervals.append((until - turn - 1, epoch, begin, begin + held))
            intervals.append((1, epoch, begin, begin + end))
        return self._mean_shares(intervals)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = self.order.find(epoch, indices, most)
        block, at = np.divmod(positions, self._width)
        held = np.minimum(self._width, self.order.num_units(epoch) - block * self._width)
        first = block * (self._width * self.copies) + at
        copies = self.copies if most is None else min(most, self.copies)
        if not len(first):  # there is no memory for the copies of nothing
            copies = 0
        places = first[:, None] + held[:, None] * np.arange(copies)
        return np.repeat(which, copies), places.ravel()

    def tally(self, epoch: int, indices: Int64) -> Int64:
        return self.copies * self.order.tally(epoch, indices)
