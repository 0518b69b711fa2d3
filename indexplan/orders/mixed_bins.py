"""Units of several sources, each drawn by itself, put together in the order of reading.

What a mixture asks of its sources is sorted by source: rows of (source, its number, its epoch,
starts and stops of its runs, where its units begin and end among all).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from indexplan.orders.base import Int64
from indexplan.orders.phases import Int32
from indexplan.orders.sequential import expand


def fill(sources: Int32, asked: list[Any], begins: Int64, out: Int64) -> None:
    """Write the samples of units, of which source j's are counted from begins[j] on."""
    sizes = _sizes(asked, len(sources))
    ends = np.append(0, np.cumsum(sizes))
    drawn = np.empty(int(ends[-1]), np.int64)
    for source, j, inside, lows, highs, first, last in asked:
        part = drawn[ends[first] : ends[last]]
        source._fill(inside, lows, highs, part)  # noqa: SLF001 (of an order too)
        part += begins[j]
    out[_places(sources, sizes)] = drawn


def spans(sources: Int32, asked: list[Any]) -> Int64:
    """Return which part is read of each sample of units; int64 (samples, 2)."""
    places = _places(sources, _sizes(asked, len(sources)))
    out = np.empty((len(places), 2), np.int64)
    drawn = [
        source._spans(inside, lows, highs)  # noqa: SLF001
        for source, _, inside, lows, highs, _, _ in asked
    ]
    out[places] = np.concatenate([out[:0], *drawn])
    return out


def offsets(sources: Int32, asked: list[Any]) -> Int64:
    """Return where the samples of units begin, and the end."""
    sizes = np.empty(len(sources), np.int64)
    sizes[np.argsort(sources, kind="stable")] = _sizes(asked, len(sources))
    return np.append(0, np.cumsum(sizes))


def _sizes(asked: list[Any], num: int) -> Int64:
    """Return the samples in each unit of those sorted by source."""
    sizes = np.empty(num, np.int64)
    for source, _, inside, lows, highs, first, last in asked:
        sizes[first:last] = np.diff(source._offsets(inside, lows, highs))  # noqa: SLF001
    return sizes


def _places(sources: Int32, sizes: Int64) -> Int64:
    """Return where the samples of units sorted by source belong."""
    where = np.argsort(sources, kind="stable")  # unit i of those by source is unit where[i]
    at = np.empty(len(sources), np.int64)
    at[where] = sizes
    begin = (np.cumsum(at) - at)[where]
    return expand(begin, begin + sizes)
