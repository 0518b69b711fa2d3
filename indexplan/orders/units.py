"""Units one after another, the runs of positions that they are read at, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan.orders.columns import Column

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
    >>> from indexplan.orders import expand
    >>> expand(np.array([2, 7]), np.array([5, 9]))
    array([2, 3, 4, 7, 8])
    """
    if len(starts) == 1:
        return np.arange(starts[0], stops[0], dtype=np.int64)
    sizes = stops - starts
    ends = np.cumsum(sizes)
    shifts: Int64 = np.repeat(starts - ends + sizes, sizes)
    return np.arange(len(shifts), dtype=np.int64) + shifts


def cut_pieces(starts: Int64, stops: Int64, at_once: int) -> Iterator[tuple[int, Int64, Int64]]:
    """Cut runs into pieces of at most `at_once` units: how many, starts, stops."""
    ends = np.cumsum(stops - starts)
    total = int(ends[-1]) if len(ends) else 0
    if total <= at_once:
        yield total, starts, stops
        return
    for done in range(0, total, at_once):
        until = min(total, done + at_once)
        first, last = np.searchsorted(ends, [done, until - 1], side="right").tolist()
        low, high = starts[first : last + 1].copy(), stops[first : last + 1].copy()
        low[0] = stops[first] - (ends[first] - done)
        high[-1] = stops[last] - (ends[last] - until)
        yield until - done, low, high


class Units(NamedTuple):
    """Units of an epoch, one after another: what `Order.deal` returns.

    Parameters
    ----------
    samples : numpy.ndarray
        int64, shape (samples,): the samples of the first unit, then those of the second, and so on.
    sizes : numpy.ndarray
        int64, shape (units,): how many samples each unit holds, 0 or more.
    spans : numpy.ndarray, optional
        int64, shape (samples, 2): which part [start, stop) of each sample is read, in tokens for
        example. Given if and only if the order's traits have `cuts_samples`.

    Examples
    --------
    >>> from indexplan.orders import Units
    >>> units = Units(np.array([7, 2, 9]), sizes=np.array([1, 2]))  # bins [7] and [2, 9]
    >>> units.offsets
    array([0, 1, 3])
    """

    samples: Int64
    sizes: Int64
    spans: Int64 | None = None

    @property
    def offsets(self) -> Int64:
        """Where each unit starts among the samples, and where the last one ends."""
        offsets = np.zeros(len(self.sizes) + 1, np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        return offsets

    def moved(self, where: Int64) -> Units:
        """Return the same units in a different sequence: unit i becomes unit where[i].

        Parameters
        ----------
        where : numpy.ndarray
            int64, shape (units,): a permutation.
        """
        sizes, firsts = np.empty_like(self.sizes), np.empty_like(self.sizes)
        sizes[where] = self.sizes
        firsts[where] = np.cumsum(self.sizes) - self.sizes
        at = expand(firsts, firsts + sizes)
        spans = self.spans
        if spans is not None:  # as rows of 16 bytes: 5 times as fast as spans[at]
            rows = np.ascontiguousarray(spans).view(np.complex128).ravel().take(at)
            spans = rows.view(np.int64).reshape(-1, 2)
        return Units(self.samples.take(at), sizes, spans)


def joined(parts: Iterable[Units], *, cut: bool) -> Units:
    """Return units that come in parts as one; `cut` if the parts have spans."""
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    none = np.empty(0, np.int64)
    samples = np.concatenate([none, *(each.samples for each in parts)])
    sizes = np.concatenate([none, *(each.sizes for each in parts)])
    if not cut:
        return Units(samples, sizes)
    spans = [each.spans for each in parts if each.spans is not None]
    return Units(samples, sizes, np.concatenate([none.reshape(0, 2), *spans]))


def costs_of(units: Units, lengths: Column, cost: Callable[[Int64], Int64], *, bins: bool) -> Int64:
    """Return what each unit costs; units are bins of samples or single samples."""
    if units.spans is None:
        costs = cost(lengths.array[units.samples].astype(np.int64))
    else:
        costs = cost(units.spans[:, 1] - units.spans[:, 0])
    return summed(costs, units.offsets) if bins else costs


def summed(costs: Int64, offsets: Int64) -> Int64:
    """Return the sums of costs between rising offsets; 2**63 - 1 where a sum is larger."""
    ends = np.cumsum(np.append(0, costs))  # may wrap around, but the difference wraps back
    sums: Int64 = ends[offsets[1:]] - ends[offsets[:-1]]
    if int(np.diff(offsets).max(initial=0)) * int(costs.max(initial=0)) >= 2**63:
        halves = (np.cumsum(np.append(0, half)) for half in (costs >> 32, costs & 2**32 - 1))
        high, low = (half[offsets[1:]] - half[offsets[:-1]] for half in halves)
        sums[high + (low >> 32) >= 2**31] = 2**63 - 1
    return sums
