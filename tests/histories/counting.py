"""The oracle: how often was each sample read in each epoch? Once, or the account says otherwise.

It knows of no step, rank or batch: it is given what all ranks read, and counts. Nothing here is
computed as the library computes it.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
from numpy.typing import NDArray

import indexplan as ip

Int64 = NDArray[np.int64]


class Count:
    """What was read of each epoch from one place of a run on, and what was dropped and padded.

    Parameters
    ----------
    order : Order
        A fresh one, which is never stored.
    epoch, position : int
        Where the history begins; what is before counts as read.
    huge : bool
        Whether samples are too many for a counter each. Then the positions of what was read are
        looked up, by the order's inverse, and have to be all those between two places.
    """

    def __init__(self, order: ip.Order, epoch: int, position: int, *, huge: bool) -> None:
        self.order, self.epoch, self.position, self.huge = order, epoch, position, huge
        self.reads: dict[int, list[Int64]] = defaultdict(list)
        self.filled = Counter({epoch: position})  # units of each epoch that are read or dropped
        self.dropped: Counter[int] = Counter()
        self.padded: Counter[int] = Counter()

    def add(self, epoch: int, samples: Int64) -> None:
        """Add what steps read that end inside their epoch."""
        self.reads[epoch].append(samples)
        self.filled[epoch] += len(self._units(epoch, samples))

    def add_carried(self, epoch: int, samples: Int64) -> None:
        """Add a step, in its order, that may run past epochs' ends: each takes what it lacks."""
        while samples.size:
            lacks = self.order.num_units(epoch) - self.filled[epoch]
            units = self._units(epoch, samples)
            cut = len(samples) if len(units) <= lacks else units[max(lacks, 0)]
            self.add(epoch, samples[:cut])
            samples = samples[cut:]
            epoch += 1

    def add_account(self, epoch: int, *, dropped: int, padded: int) -> None:
        """Add what the account says of a sub-epoch that has ended."""
        self.dropped[epoch] += dropped
        self.padded[epoch] += padded
        self.filled[epoch] += dropped - padded

    def _units(self, epoch: int, samples: Int64) -> Int64:
        """Return at which of some samples a unit begins."""
        if not self.order.deals_bins:
            return np.arange(len(samples))
        return np.flatnonzero(np.isin(samples, [unit[0] for unit in self.order.row(epoch)]))

    def wrong(self, epoch: int, position: int) -> tuple[int, int, list[str]]:
        """Return the units lost and those repeated before a place, and words on them."""
        lost, repeated, words = 0, 0, []
        after = {e for e in self.reads if e > epoch}
        for number in sorted({*range(self.epoch, epoch + 1), *after}):
            start = self.position if number == self.epoch else 0
            stop = self.order.num_units(number) if number < epoch else position
            stop = 0 if number > epoch else stop
            samples = np.concatenate([np.empty(0, np.int64), *self.reads[number]])
            times, extra = self._times(number, samples, start, stop)
            missing = int((stop - start) - np.count_nonzero(times))
            extra += int(np.maximum(times - 1, 0).sum())
            dropped, padded = self.dropped[number], self.padded[number]
            if (missing, extra) != (dropped, padded):
                lost += abs(missing - dropped)
                repeated += abs(extra - padded)
                words.append(
                    f"epoch {number}: {missing} of {stop - start} units were not read, of which "
                    f"{dropped} are accounted for as dropped; {extra} were read again, of which "
                    f"{padded} are accounted for as padded"
                )
        return lost, repeated, words

    def _times(self, epoch: int, samples: Int64, start: int, stop: int) -> tuple[Int64, int]:
        """Return how often each unit was read that was read at all, and reads of no such unit."""
        if self.huge:
            positions = self.order.locate(epoch, samples)
            inside = (positions >= start) & (positions < stop)
            return np.unique(positions[inside], return_counts=True)[1], int((~inside).sum())
        times = np.bincount(samples, minlength=self.order.num_samples)
        if stop == 0:
            return times[:0], int(times.sum())
        if not self.order.deals_bins:
            return times, 0
        units = self.order.row(epoch)
        ends = np.cumsum([len(unit) for unit in units])
        every = np.array([sample for unit in units for sample in unit])
        by_unit = np.split(times[every], ends[:-1])
        whole = all(np.all(unit == unit[0]) for unit in by_unit)
        none = int(times.sum() - times[every].sum())
        return np.array([unit[0] for unit in by_unit]), none if whole else none + len(samples)
