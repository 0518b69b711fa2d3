"""Which samples a run has read so far, and how often."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.ledger.history import History, Segment
from indexplan.ledger.intervals import intervals
from indexplan.orders.arguments import check_indices
from indexplan.orders.base import Int64

AT_ONCE = 2**20  # samples that are looked for at a time


def count_reads(history: History, segments: list[Segment], samples: Int64) -> Int64:
    """Return how often some segments that follow each other read each of some samples."""
    total = np.zeros(len(samples), np.int64)
    for epoch, order, group, *_ in history.stretches(segments):
        found = [each[:2] for segment in group for each in intervals(history, segment, epoch)]
        starts, stops = np.array(found, np.int64).reshape(-1, 2).T
        there = np.flatnonzero(samples < order.num_samples)  # others joined later
        which, positions = order.find(epoch, samples[there])
        # how many intervals hold a position: those that have begun, without those that are over
        begun = np.sort(starts).searchsorted(positions, "right")
        times = begun - np.sort(stops).searchsorted(positions, "right")
        total += np.bincount(there[which], times, len(samples)).astype(np.int64)
    return total


class Seen:
    """The samples that a run had read before one of its steps, in memory that stays the same.

    `Ledger.seen` returns it.

    Parameters
    ----------
    history : History
        What the lines of the ledger add up to.
    step : int
        The run's step.
    num_samples : int
        Samples of the dataset.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
    >>> ledger = ip.Ledger("run.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=1))
    >>> seen = ledger.seen(ledger.step)
    >>> seen.contains([0, 7]), seen.count([0, 7])
    (array([ True,  True]), array([2, 1]))
    """

    def __init__(self, history: History, step: int, num_samples: int) -> None:
        self.step = step
        self._history, self._num_samples = history, num_samples

    def contains(self, samples: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each of some samples was read: bool, the shape of `samples`."""
        return self.count(samples) > 0

    def count(self, samples: ArrayLike) -> Int64:
        """Return how often each of some samples was read: int64, the shape of `samples`.

        Padded repeats count. The cost is that of a `locate` in each epoch.

        Raises
        ------
        IndexPlanError
            If a sample is not one of the dataset.
        """
        array = check_indices(samples, self._num_samples)
        segments = self._history.before(self.step)
        counts = [
            count_reads(self._history, segments, part)
            for part in np.split(array.ravel(), range(AT_ONCE, array.size, AT_ONCE))
        ]
        return np.concatenate(counts).reshape(array.shape)

    def __repr__(self) -> str:
        return f"Seen(step={self.step})"
