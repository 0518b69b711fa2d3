"""The order of the dataset itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from indexplan.orders.base import Int64, Order, check_num_samples
from indexplan.orders.registry import register


@register
@dataclass(frozen=True, eq=False)
class Sequential(Order):
    """Every epoch reads samples 0, 1, 2, ... in turn.

    For evaluation, and for datasets that are shuffled already.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset, 1 <= num_samples < 2**63.

    Raises
    ------
    IndexPlanError
        If num_samples is not an integer in that range.

    Examples
    --------
    >>> Sequential(5).take(0, 1, 4)  # positions 1, 2 and 3 of epoch 0
    array([1, 2, 3])
    """

    num_samples: int

    algorithm = "sequential-v1"

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_samples", check_num_samples(self.num_samples))

    def _fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:  # noqa: ARG002
        out[:] = expand(starts, stops)

    def _fill_epochs(
        self, epochs: Int64, cuts: Int64, starts: Int64, stops: Int64, out: Int64
    ) -> None:
        written = type(self)._fill  # noqa: SLF001
        if written is not Sequential._fill:  # a user's subclass that reads something else
            super()._fill_epochs(epochs, cuts, starts, stops, out)
            return
        runs = slice(cuts[0], cuts[-1])
        self._fill(0, starts[runs], stops[runs], out)  # all epochs are the same

    def _locate(self, epoch: int, indices: Int64) -> Int64:  # noqa: ARG002
        return np.array(indices, np.int64)


def expand(starts: Int64, stops: Int64) -> Int64:
    """Return the integers of the intervals [start, stop), one after another; int64, flat."""
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
