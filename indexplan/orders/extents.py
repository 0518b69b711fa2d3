"""How long epochs and sub-epochs are under an order that leaves units out, and what they lack."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import cast

import numpy as np

from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.left_out import LeftOut
from indexplan.parts import Extent
from indexplan.seeds import EPOCH_STOP


class GapsExtent(Extent):
    """How long they are under a layer that leaves some samples out.

    Units before an epoch are summed up in closed form, because all epochs between two that the
    order names have equally many.
    """

    def __init__(self, order: Order, left_out: LeftOut) -> None:
        super().__init__(order)
        self.left_out = left_out
        self.inside = extent_of(left_out.order)

    @once
    def changing(self) -> set[int] | None:
        """The epochs from which the number of units changes; None if unknown."""
        inner, inside = self.left_out.order, self.inside.changing
        if inside is None or inner.traits.deals_bins or not inner.ip_same_reads:
            return None
        epochs = {epoch for epoch, _, _ in self.left_out.since}
        return inside | epochs | {epoch + 1 for epoch in epochs if epoch + 1 < EPOCH_STOP}

    @once
    def _rows(self) -> list[tuple[int, int, int]]:
        """Those epochs, as (units before it, it, its units)."""
        epochs = self.changed
        units = [self.units(epoch) for epoch in epochs]
        added = ((b - a) * num for (a, b), num in zip(pairwise(epochs), units, strict=False))
        before = accumulate(added, initial=0)
        return list(zip(before, epochs, units, strict=True))

    def before(self, epoch: int) -> int:
        """Return how many units all epochs before this one have together."""
        before, first, units = self._rows[bisect_right(self._rows, epoch, key=itemgetter(1)) - 1]
        return before + (epoch - first) * units

    def holding(self, place: int) -> tuple[int, int]:
        """Return the epoch and the position in it of a stream place."""
        before, first, units = self._rows[bisect_right(self._rows, place, key=itemgetter(0)) - 1]
        epochs, position = divmod(place - before, units)
        return first + epochs, position

    def edge(self, epoch: int, parts: int, part: int) -> int:
        if part in (0, parts):  # without a search
            return self.units(epoch) if part else 0
        edge, sections = self.inside.edge(epoch, parts, part), self.left_out.sections(epoch)
        if sections is None:
            return edge
        which = int(sections.starts.searchsorted(edge, "right")) - 1
        dealt = int(sections.bounds[which]) + edge - int(sections.starts[which])
        return min(dealt, int(sections.bounds[which + 1]))

    def parts_of(self, epoch: int, parts: int, positions: Int64) -> Int64:
        if parts == 1:
            return np.zeros_like(positions)
        sections = self.left_out.sections(epoch)
        if sections is not None:
            which = sections.bounds.searchsorted(positions, "right") - 1
            which = np.minimum(which, len(sections.starts) - 1)
            positions = positions + sections.starts[which] - sections.bounds[which]
        return self.inside.parts_of(epoch, parts, positions)

    def changes(self, epoch: int, parts: int) -> set[int]:
        if parts == 1:
            return {0, 1}
        changes, sections = self.inside.changes(epoch, parts), self.left_out.sections(epoch)
        if sections is None:
            return changes
        held = np.unique(self.inside.parts_of(epoch, parts, sections.starts[1:] - 1)).tolist()
        return changes | set(held) | {part + 1 for part in held}

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> int:
        excluded = self.inside.missing(epoch, parts, start, stop)
        inside = [self.inside.edge(epoch, parts, part) for part in (start, stop)]
        mine = [self.edge(epoch, parts, part) for part in (start, stop)]
        return excluded + (inside[1] - inside[0]) - (mine[1] - mine[0])

    def num_taken_out(self, epoch: int) -> int:
        """Return how many samples an epoch removes from bins, by the layers inside too."""
        return self.inside.num_taken_out(epoch) + self.left_out.num_taken_out(epoch)


def extent_of(order: Order) -> Extent:
    """Return the extent of an order."""
    return cast("Extent | None", order.ip_gaps) or Extent(order)
