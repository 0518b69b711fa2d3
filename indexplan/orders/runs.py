"""Runs: intervals [start, stop) of positions, given as two arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


def expand(starts: Int64, stops: Int64) -> Int64:
    """Return the integers in intervals, one interval after another.

    Use it in an order's hooks to turn the runs that are asked for into positions.

    Parameters
    ----------
    starts, stops : numpy.ndarray
        int64, shape (num_runs,): the intervals [start, stop), each of them 0 or longer.

    Returns
    -------
    numpy.ndarray
        int64, shape (sum of lengths,).

    Examples
    --------
    >>> import indexplan as ip
    >>> ip.expand(np.array([2, 7]), np.array([5, 9]))
    array([2, 3, 4, 7, 8])
    """
    if len(starts) == 1:
        return np.arange(starts[0], stops[0], dtype=np.int64)
    sizes = stops - starts
    ends = np.cumsum(sizes)
    shifts: Int64 = np.repeat(starts - ends + sizes, sizes)
    return np.arange(len(shifts), dtype=np.int64) + shifts


def cut_runs(
    starts: Int64, stops: Int64, ends: Int64, done: int, until: int
) -> tuple[Int64, Int64]:
    """Return the units [done, until) of some runs, as runs; `ends` is the cumsum of their sizes."""
    first, last = np.searchsorted(ends, [done, until - 1], side="right").tolist()
    low, high = starts[first : last + 1].copy(), stops[first : last + 1].copy()
    low[0] = stops[first] - (ends[first] - done)
    high[-1] = stops[last] - (ends[last] - until)
    return low, high


def cut_pieces(starts: Int64, stops: Int64, at_once: int) -> Iterator[tuple[int, Int64, Int64]]:
    """Cut runs into pieces of at most `at_once` units: how many, starts, stops."""
    ends = np.cumsum(stops - starts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= at_once:
        yield total, starts, stops
        return
    for done in range(0, total, at_once):
        until = min(total, done + at_once)
        yield until - done, *cut_runs(starts, stops, ends, done, until)
