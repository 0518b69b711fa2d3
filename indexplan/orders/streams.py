"""The stream of an order, which is its epochs one after another, and what its intervals read.

Unit u of the stream is position u % n of epoch u // n, of n units.
"""

from __future__ import annotations

import numpy as np

from indexplan.errors import invalid
from indexplan.orders.base import MOST_READS, Int64, Order, first_of, too_many
from indexplan.orders.units import expand

MOST_EPOCHS = 2**20  # that one call looks through: some 20 seconds
MOST_READ = 2**22  # units that are read at a time where all reads would be too many to list


def _reads_in(
    order: Order, epoch: int, start: int, stop: int, indices: Int64
) -> tuple[Int64, Int64]:
    """Return an epoch's reads of samples inside [start, stop) of the stream: which, and unit."""
    n, begin = order.num_units(0), epoch * order.num_units(0)
    if n > MOST_READS and order.traits.reads == "any":  # else no epoch has so many
        reads = sum(order.tally(epoch, indices).tolist())
        low, high = max(start - begin, 0), min(stop - begin, n)
        if reads > MOST_READS and high - low <= MOST_READ:
            which, positions = _by_reading(order, epoch, low, high, indices)
            return which, positions + begin
        if reads > MOST_READS:
            raise too_many(reads)
    which, positions = order.find(epoch, indices)
    where = positions + (begin - start)  # relative to start, as units may reach 2**63
    here = (where >= 0) & (where < stop - start)
    return which[here], where[here] + start


def _by_reading(
    order: Order, epoch: int, low: int, high: int, indices: Int64
) -> tuple[Int64, Int64]:
    """Return the reads of samples at positions [low, high) by reading all of them, in order.

    The reads of the first sample come first, then those of the second, and so on.
    """
    units = order.deal(epoch, np.array([low], np.int64), np.array([high], np.int64))
    positions = np.repeat(np.arange(low, high), units.sizes)
    by_number = np.argsort(units.samples, kind="stable")
    read = units.samples[by_number]
    begins, ends = (np.searchsorted(read, indices, side) for side in ("left", "right"))
    which = np.repeat(np.arange(len(indices)), ends - begins)
    return which, positions[by_number[expand(begins, ends)]]


def first_by_reading(order: Order, epoch: int, indices: Int64) -> Int64:
    """Return where an epoch first reads samples that it reads often, by reading until found."""
    first, left = np.full(len(indices), -1, np.int64), np.arange(len(indices))
    low, size, num_units = 0, 2**10, order.num_units(epoch)
    while len(left) and low < num_units:
        high = min(low + size, num_units)
        which, positions = _by_reading(order, epoch, low, high, indices[left])
        first[left] = first_of(which, positions, len(left))
        left, low, size = left[first[left] < 0], high, min(2 * size, MOST_READ)
    return first


def epochs_of(order: Order, start: int, stop: int) -> range:
    """Return the epochs that contain units [start, stop)."""
    n = order.num_units(0)
    return range(start // n, (stop - 1) // n + 1) if start < stop else range(0)


def not_too_many(epochs: range) -> range:
    """Return epochs to look through one by one; raise `IndexPlanError` if there are too many."""
    if len(epochs) > MOST_EPOCHS:
        what = "the epochs of an order inside another to look through"
        raise invalid(what, f"at most {MOST_EPOCHS}", len(epochs), "use smaller epochs")
    return epochs


def reads_between(
    order: Order, start: int, stop: int, indices: Int64, most: int | None = None
) -> tuple[Int64, Int64]:
    """Return reads of samples by units [start, stop), as `Order.find` does: which, and unit."""
    which, units = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    n, left = order.num_units(0), np.arange(len(indices))
    counts = np.zeros(len(indices), np.int64)
    epochs = epochs_of(order, start, stop)
    if most is None and len(indices):
        not_too_many(epochs)
    for number, epoch in enumerate(epochs):
        if number and not len(left):  # of no samples, only whether the order can tell
            break
        if number == MOST_EPOCHS:
            not_too_many(epochs)  # which they are not
        if most is None or epoch * n < start:  # reads before start do not count
            of, where = _reads_in(order, epoch, start, stop, indices[left])
        else:
            of, where = order.find(epoch, indices[left], most)
            here = where < stop - epoch * n
            of, where = of[here], where[here] + epoch * n
        which.append(left[of])
        units.append(where)
        if most is not None:
            counts += np.bincount(left[of], minlength=len(indices))
            left = np.flatnonzero(counts < most)
    return np.concatenate(which), np.concatenate(units)


def count_between(order: Order, start: int, stop: int, indices: Int64) -> Int64:
    """Return how often units [start, stop) read each sample."""
    counts, n = np.zeros(len(indices), np.int64), order.num_units(0)
    epochs = epochs_of(order, start, stop)
    if not len(indices):  # only find out whether the order can tell
        epochs = epochs[:1]
    if order.traits.reads == "once" and len(epochs) > 2:  # the inner epochs are whole
        counts += len(epochs) - 2
        epochs = range(epochs[0], epochs[-1] + 1, len(epochs) - 1)
    for epoch in not_too_many(epochs):
        if start <= epoch * n and (epoch + 1) * n <= stop:
            counts += order.tally(epoch, indices)
        else:
            which, _ = _reads_in(order, epoch, start, stop, indices)
            counts += np.bincount(which, minlength=len(indices))
    return counts
