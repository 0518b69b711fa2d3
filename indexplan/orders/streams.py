"""The endless stream of an order, its epochs one after another: what an interval of it reads.

Unit u of the stream is position u % n of epoch u // n, of n units.
"""

from __future__ import annotations

import numpy as np

from indexplan.orders.base import Int64, Order


def _reads_in(
    order: Order, epoch: int, start: int, stop: int, indices: Int64
) -> tuple[Int64, Int64]:
    """Return an epoch's reads of samples that lie in [start, stop) of the stream, and offsets."""
    positions, offsets = order._locate_all(epoch, indices)  # noqa: SLF001 (of an order too)
    where = positions + (epoch * order.num_units(0) - start)  # as units may reach 2**63
    here = (where >= 0) & (where < stop - start)
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(here)])
    return where[here] + start, kept[offsets]


def _epochs(order: Order, start: int, stop: int) -> range:
    """Return the epochs that units [start, stop) lie in."""
    n = order.num_units(0)
    return range(start // n, (stop - 1) // n + 1) if start < stop else range(0)


def reads_between(order: Order, start: int, stop: int, indices: Int64) -> tuple[Int64, Int64]:
    """Return all reads of samples by units [start, stop): which sample, and which unit."""
    which, units = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for epoch in _epochs(order, start, stop):
        where, offsets = _reads_in(order, epoch, start, stop, indices)
        which.append(np.repeat(np.arange(len(indices)), np.diff(offsets)))
        units.append(where)
    return np.concatenate(which), np.concatenate(units)


def first_between(order: Order, start: int, stop: int, indices: Int64) -> Int64:
    """Return the first of units [start, stop) that reads each sample; -1 where none does."""
    first = np.full(len(indices), -1, np.int64)
    for epoch in _epochs(order, start, stop):
        left = np.flatnonzero(first < 0)
        if not len(left):
            break
        units, offsets = _reads_in(order, epoch, start, stop, indices[left])
        found = offsets[1:] > offsets[:-1]
        first[left[found]] = units[offsets[:-1][found]]
    return first


def count_between(order: Order, start: int, stop: int, indices: Int64) -> Int64:
    """Return how often units [start, stop) read each sample."""
    counts = np.zeros(len(indices), np.int64)
    epochs = _epochs(order, start, stop)
    if order.traits.reads == "once" and len(epochs) > 2:  # those between are whole
        counts += len(epochs) - 2
        epochs = range(epochs[0], epochs[-1] + 1, len(epochs) - 1)
    for epoch in epochs:
        counts += np.diff(_reads_in(order, epoch, start, stop, indices)[1])
    return counts
