"""The units of a mixture, sorted by source, and the runs that each source reads of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from indexplan.orders.base import Int64, Order
from indexplan.orders.phases import Int32


class Sorted(NamedTuple):
    """Units of a mixture, sorted by source.

    sources : int32 (num,)
        The source of each unit, in order of reading.
    begins : int64 (k + 1,)
        Where the units of each source begin among all, and where the last ones end.
    parts : int64 (k + 1,)
        Source j reads the epochs [parts[j], parts[j + 1]) of `epochs`.
    epochs, cuts : int64
        Epoch i reads the runs [cuts[i], cuts[i + 1]).
    starts, stops : int64
        The runs of positions.
    """

    sources: Int32
    begins: Int64
    parts: Int64
    epochs: Int64
    cuts: Int64
    starts: Int64
    stops: Int64

    def rows(self, whose: tuple[Order, ...]) -> list[tuple[Any, ...]]:
        """Return what to draw: the source, its number and epoch, starts and stops of its runs."""
        rows = []
        of = np.repeat(np.arange(len(whose)), np.diff(self.parts)).tolist()
        edges = pairwise(self.cuts[: len(of) + 1].tolist())
        for j, epoch, (a, b) in zip(of, self.epochs[: len(of)].tolist(), edges, strict=True):
            starts, stops = self.starts[a:b], self.stops[a:b]
            rows.append((whose[j], j, epoch, starts, stops))
        return rows
