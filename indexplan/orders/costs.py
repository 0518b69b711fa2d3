"""The cost of units: the sums of their samples' costs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from indexplan.orders.columns import Column
from indexplan.orders.units import Units

Int64 = NDArray[np.int64]


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
