"""The stream of an order, which is its epochs one after another: what an interval of it reads.

Unit u of the stream is position u % n of epoch u // n, of n units.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from indexplan.errors import IndexPlanError, wrong
from indexplan.orders.base import MOST_READS, Int64, Order, too_many
from indexplan.orders.sequential import expand
from indexplan.seeds import EPOCH_STOP

MOST_EPOCHS = 2**20  # that one call looks through: some 20 seconds
MOST_READ = 2**22  # units that are read at a time where all reads would be too many to list


def _reads_in(
    order: Order, epoch: int, start: int, stop: int, indices: Int64
) -> tuple[Int64, Int64]:
    """Return an epoch's reads of samples inside [start, stop) of the stream, and offsets."""
    n, begin = order.num_units(0), epoch * order.num_units(0)
    if n > MOST_READS and order.traits.reads == "any":  # else no epoch has so many
        reads = sum(order._count(epoch, indices).tolist())  # noqa: SLF001 (of an order too)
        low, high = max(start - begin, 0), min(stop - begin, n)
        if reads > MOST_READS and high - low <= MOST_READ:
            positions, offsets = _by_reading(order, epoch, low, high, indices)
            return positions + begin, offsets
        if reads > MOST_READS:
            raise too_many(reads)
    positions, offsets = order._locate_all(epoch, indices)  # noqa: SLF001
    where = positions + (begin - start)  # relative to start, as units may reach 2**63
    here = (where >= 0) & (where < stop - start)
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(here)])
    return where[here] + start, kept[offsets]


def _by_reading(
    order: Order, epoch: int, low: int, high: int, indices: Int64
) -> tuple[Int64, Int64]:
    """Return the positions in [low, high) that read samples, and offsets, by reading them all."""
    runs = np.array([low], np.int64), np.array([high], np.int64)
    sizes = np.diff(order._offsets(epoch, *runs))  # noqa: SLF001
    read, positions = order._take(epoch, *runs), np.repeat(np.arange(low, high), sizes)  # noqa: SLF001
    by_sample = np.argsort(read, kind="stable")
    begins, ends = (np.searchsorted(read[by_sample], indices, side) for side in ("left", "right"))
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(ends - begins)])
    return positions[by_sample[expand(begins, ends)]], offsets


def first_by_reading(order: Order, epoch: int, indices: Int64) -> Int64:
    """Return where an epoch first reads samples, of which it reads each often, by reading on."""
    first, left = np.full(len(indices), -1, np.int64), np.arange(len(indices))
    low, size, num_units = 0, 2**10, order.num_units(epoch)
    while len(left) and low < num_units:
        high = min(low + size, num_units)
        positions, offsets = _by_reading(order, epoch, low, high, indices[left])
        found = offsets[1:] > offsets[:-1]
        first[left[found]] = positions[offsets[:-1][found]]
        left, low, size = left[~found], high, min(2 * size, MOST_READ)
    return first


def epochs_of(order: Order, start: int, stop: int) -> range:
    """Return the epochs in which units [start, stop) lie."""
    n = order.num_units(0)
    return range(start // n, (stop - 1) // n + 1) if start < stop else range(0)


def few(epochs: range) -> range:
    """Return epochs to look through one by one; raise `IndexPlanError` if they are too many."""
    if len(epochs) > MOST_EPOCHS:
        what = "the epochs of an order inside another to look through"
        raise wrong(what, f"at most {MOST_EPOCHS}", len(epochs), "use smaller epochs")
    return epochs


def reads_between(order: Order, start: int, stop: int, indices: Int64) -> tuple[Int64, Int64]:
    """Return all reads of samples by units [start, stop): which sample, and which unit."""
    which, units = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    epochs = epochs_of(order, start, stop)
    if not len(indices):  # only find out whether the order can tell
        epochs = epochs[:1]
    for epoch in few(epochs):
        where, offsets = _reads_in(order, epoch, start, stop, indices)
        which.append(np.repeat(np.arange(len(indices)), np.diff(offsets)))
        units.append(where)
    return np.concatenate(which), np.concatenate(units)


def first_between(order: Order, start: int, stop: int, indices: Int64) -> Int64:
    """Return the first of units [start, stop) that reads each sample; -1 where none does."""
    first, n = np.full(len(indices), -1, np.int64), order.num_units(0)
    epochs = epochs_of(order, start, stop)
    for number, epoch in enumerate(epochs):
        left = np.flatnonzero(first < 0)
        if not len(left):
            break
        if number == MOST_EPOCHS:
            few(epochs)  # which they are not
        if epoch * n < start:  # reads before start do not count
            units, offsets = _reads_in(order, epoch, start, stop, indices[left])
            found = offsets[1:] > offsets[:-1]
            first[left[found]] = units[offsets[:-1][found]]
            continue
        where = order._locate(epoch, indices[left])  # noqa: SLF001
        found = (where >= 0) & (where < stop - epoch * n)
        first[left[found]] = where[found] + epoch * n
    return first


def count_between(order: Order, start: int, stop: int, indices: Int64) -> Int64:
    """Return how often units [start, stop) read each sample."""
    counts, n = np.zeros(len(indices), np.int64), order.num_units(0)
    epochs = epochs_of(order, start, stop)
    if not len(indices):  # only find out whether the order can tell
        epochs = epochs[:1]
    if order.traits.reads == "once" and len(epochs) > 2:  # the inner epochs are whole
        counts += len(epochs) - 2
        epochs = range(epochs[0], epochs[-1] + 1, len(epochs) - 1)
    for epoch in few(epochs):
        if start <= epoch * n and (epoch + 1) * n <= stop:
            counts += order._count(epoch, indices)  # noqa: SLF001
        else:
            counts += np.diff(_reads_in(order, epoch, start, stop, indices)[1])
    return counts


def num_epochs(order: Order) -> int:
    """Return how many epochs of an order can be read: of later ones `num_units` raises."""
    if type(order).num_units is Order.num_units or _is_read(order, EPOCH_STOP - 1):
        return EPOCH_STOP
    return bisect_left(range(EPOCH_STOP), True, key=lambda epoch: not _is_read(order, epoch))


def _is_read(order: Order, epoch: int) -> bool:
    try:
        order.num_units(epoch)
    except IndexPlanError:
        return False
    return True
