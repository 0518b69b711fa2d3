"""Units that were drawn source by source, put together in the order in which a mixture reads them.

A mixture sorts its units by source. Sources of bins are drawn epoch by epoch, as rows of (source,
its number, its epoch, starts and stops of its runs, where its units begin and end among all).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from indexplan.orders.base import Int64, Order
from indexplan.orders.pattern import Int32
from indexplan.orders.sequential import expand


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
        """Return what to draw epoch by epoch, for orders that deal bins."""
        rows, done = [], 0
        of = np.repeat(np.arange(len(whose)), np.diff(self.parts)).tolist()
        edges = pairwise(self.cuts[: len(of) + 1].tolist())
        for j, epoch, (a, b) in zip(of, self.epochs[: len(of)].tolist(), edges, strict=True):
            starts, stops = self.starts[a:b], self.stops[a:b]
            until = done + int((stops - starts).sum())
            rows.append((whose[j], j, epoch, starts, stops, done, until))
            done = until
        return rows


def fill(sources: Int32, asked: list[Any], begins: Int64, out: Int64) -> None:
    """Write the samples of units; those of source j become indices from begins[j] on."""
    sizes = _sizes(asked, len(sources))
    ends = np.append(0, np.cumsum(sizes))
    drawn = np.empty(int(ends[-1]), np.int64)
    for source, j, inside, lows, highs, first, last in asked:
        part = drawn[ends[first] : ends[last]]
        source._fill(inside, lows, highs, part)  # noqa: SLF001 (of an order too)
        part += begins[j]
    out[_places(sources, sizes)] = drawn


def spans(sources: Int32, asked: list[Any]) -> Int64:
    """Return which part of each sample in the units is read; int64 (samples, 2)."""
    places = _places(sources, _sizes(asked, len(sources)))
    out = np.empty((len(places), 2), np.int64)
    drawn = [
        source._spans(inside, lows, highs)  # noqa: SLF001
        for source, _, inside, lows, highs, _, _ in asked
    ]
    out[places] = np.concatenate([out[:0], *drawn])
    return out


def offsets(sources: Int32, asked: list[Any]) -> Int64:
    """Return where the samples of each unit begin, and where the last ones end."""
    sizes = np.empty(len(sources), np.int64)
    sizes[np.argsort(sources, kind="stable")] = _sizes(asked, len(sources))
    return np.append(0, np.cumsum(sizes))


def _sizes(asked: list[Any], num: int) -> Int64:
    """Return the number of samples in each unit, sorted by source."""
    sizes = np.empty(num, np.int64)
    for source, _, inside, lows, highs, first, last in asked:
        sizes[first:last] = np.diff(source._offsets(inside, lows, highs))  # noqa: SLF001
    return sizes


def _places(sources: Int32, sizes: Int64) -> Int64:
    """Return where the samples of units that are sorted by source belong."""
    where = np.argsort(sources, kind="stable")  # unit i by source is unit where[i] by reading
    at = np.empty(len(sources), np.int64)
    at[where] = sizes
    begin = (np.cumsum(at) - at)[where]
    return expand(begin, begin + sizes)
