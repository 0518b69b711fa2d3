"""What orders by class have in common: the members of each class, and where they are read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import invalid
from indexplan.once import once
from indexplan.orders.base import Draws, Float64, Int64, Order
from indexplan.orders.columns import INTEGERS, Column
from indexplan.orders.fields import kept
from indexplan.orders.streams import first_by_reading
from indexplan.seeds import CLASS_ROWS, MEMBERS, check_epoch
from indexplan.stores.tables import table_of

STREAM_STOP = 2**62  # reads of a run
CHUNK = 2**14  # reads that are computed at a time


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of a dataset by rising label, and the members of each: its samples, rising.

    Parameters
    ----------
    labels : numpy.ndarray
        int64, shape (num_classes,).
    starts, sizes : numpy.ndarray
        int64, shape (num_classes,): where each class starts in `members`, and how many it has.
    members : numpy.ndarray
        uint32, or int64 from 2**32 samples on, shape (num_samples,).
    """

    labels: Int64
    starts: Int64
    sizes: Int64
    members: NDArray[Any]

    def at_least(self, size: int) -> Classes:
        """Return the classes with at least `size` members."""
        kept = self.sizes >= size
        return Classes(self.labels[kept], self.starts[kept], self.sizes[kept], self.members)

    def numbers(self, labels: NDArray[Any]) -> Int64:
        """Return the class of each label, by its number; -1 if there is none."""
        found = np.searchsorted(self.labels, labels)
        known = self.labels[np.minimum(found, len(self.labels) - 1)] == labels
        return np.where(known, found, -1).astype(np.int64)

    def ranks(self, indices: Int64, classes: Int64) -> Int64:
        """Return which member of its class each sample is, found by bisection."""
        low = self.starts[classes]
        first, high = low, low + self.sizes[classes]
        for _ in range(int(self.sizes.max()).bit_length()):
            middle = (low + high) >> 1
            below = self.members[np.minimum(middle, len(self.members) - 1)] < indices
            inside = low < high
            low = np.where(below & inside, middle + 1, low)
            high = np.where(below | ~inside, high, middle)
        return low - first


def classes_of(labels: Column) -> Classes:
    """Return the classes of a column of labels; equal labels share one table."""

    def build() -> Classes:
        with labels.steady() as array:
            return _sorted(array)

    key = {"table": "classes", "labels": labels.to_dict()}
    return table_of(key, Classes, build, 4 * len(labels))


def range_of(labels: NDArray[Any]) -> tuple[int, int]:
    """Return the least label, and how many integers there are from it to the largest."""
    least = int(labels.min())
    return least, int(labels.max()) - least + 1


def far_apart(width: int, num: int) -> bool:
    """Return whether a table of all integers in the range would have far more than the samples."""
    return width > num + 2**16


def _sorted(labels: NDArray[Any]) -> Classes:
    """Sort samples by class; by counting if they are many and their labels close together."""
    num, (least, width) = len(labels), range_of(labels)
    if far_apart(width, num) or num <= kernels.sorting.FEW:
        keys = labels.astype(np.int64).view(np.uint64)
        keys -= np.uint64(least % 2**64)  # the distance from the least, even if past 2**63
        rising, members = kernels.sorting.sort_rows(keys.view(np.int64), width.bit_length())
        starts = np.flatnonzero(np.append(True, rising[1:] != rising[:-1]))
        values = labels[members[starts]].astype(np.int64)
        return Classes(values, starts, np.diff(starts, append=num), members)
    blocks = [slice(at, at + CHUNK) for at in range(0, num, CHUNK)]
    counts = np.zeros(width, np.int64)
    for block in blocks:
        kernels.classes.count_labels(labels[block].astype(np.int64), least, counts)
    values = np.flatnonzero(counts)
    sizes, number = counts[values], np.cumsum(counts > 0) - 1
    starts = np.cumsum(sizes) - sizes
    members = np.empty(num, np.uint32 if num <= 2**32 else np.int64)
    ends, places = starts.copy(), np.empty(CHUNK, np.int64)
    for block in blocks:
        some = number[labels[block].astype(np.int64) - least]
        kernels.classes.place_members(some, ends, places[: len(some)])
        members[places[: len(some)]] = np.arange(block.start, block.start + len(some))
    return Classes(values + least, starts, sizes, members)


def _labels(values: Any) -> Column:
    labels = Column.of(values, INTEGERS, "labels")
    if not len(labels):
        cure = "pass the class of each sample, an integer"
        raise invalid("labels", "at least one integer", "none", cure)
    return labels


LABELS = kept(_labels)


class ByClass(Order):
    """An order that reads the members of each class in rounds, a few at a time: a tuple.

    The tuples of a class, and the members in them, are numbered over the whole run: tuple q holds
    the numbers [q * size, (q + 1) * size). A round has `_periods` numbers.
    """

    labels: Column
    epoch_size: int | None
    seed: int

    _size: int
    """Members of a class that a tuple holds."""

    _unit_size: int
    """Samples in a unit."""

    @property
    def ip_table_bytes(self) -> int:
        return (4 if self.num_samples <= 2**32 else 8) * self.num_samples

    @property
    def ip_draws(self) -> Draws:
        """What determines the draws: batches and balanced classes share their key words."""
        return (("classes", self.num_samples, self.seed),)

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self)["num_samples"] = len(self.labels)

    @once
    def _table(self) -> Classes:
        return classes_of(self.labels)

    @property
    def _row_key(self) -> NDArray[np.uint32]:
        return self._key_words(CLASS_ROWS, 0, 2)

    @property
    def _member_key(self) -> NDArray[np.uint32]:
        return self._key_words(MEMBERS, 0, 2)

    @once
    def _periods(self) -> Int64:
        """Members of each class in a round: as many as fill whole tuples, or all if too few."""
        sizes = self._table.sizes
        return np.where(sizes >= self._size, sizes - sizes % self._size, sizes)

    @abstractmethod
    def _deal(self, units: Int64) -> Iterator[tuple[slice, Int64, Int64]]:
        """Yield the tuples of some units of the stream at a time.

        That is: which samples they are, the class of each tuple, and its number.
        """

    @abstractmethod
    def _tuples_before(self, unit: int, classes: Int64) -> Int64:
        """Return how many tuples of each of some classes come before a unit of the stream."""

    @abstractmethod
    def _units_of(self, classes: Int64, tuples: Int64) -> Int64:
        """Return the unit of the stream that holds each of some tuples of classes."""

    @property
    @abstractmethod
    def _rising(self) -> bool:
        """Whether a class's later tuples are in later units."""

    def num_units(self, epoch: int) -> int:
        """Return the epoch size."""
        self._begin(check_epoch(epoch))  # raises if there is no such epoch
        return self.epoch_size or 0

    def _begin(self, epoch: int) -> int:
        """Return the unit of the stream at which an epoch begins; raise if it is past the end."""
        size = self.epoch_size or 0
        if (epoch + 1) * size > (most := STREAM_STOP // self._unit_size):
            rule = f"below {most // size}, where the order's stream ends"
            raise invalid("epoch", rule, epoch, "use smaller epochs")
        return epoch * size

    def _members_of(self, classes: Int64, numbers: Int64, out: Int64) -> None:
        """Write the samples that classes have at some numbers."""
        table = self._table
        kernels.classes.class_members(
            self._size, table.sizes, self._member_key, classes, numbers, out
        )
        out += table.starts[classes]
        out[:] = table.members[out]

    def _numbers_in(self, classes: Int64, ranks: Int64, turns: Int64) -> Int64:
        """Return the number of each member in a round; -1 if the round leaves it out."""
        out = np.empty(len(classes), np.int64)
        key = self._member_key
        kernels.classes.member_numbers(
            self._size, self._table.sizes, key, classes, ranks, turns, out
        )
        return out

    def _asked(self, epoch: int, indices: Int64) -> tuple[Int64, ...]:
        """Return which samples have a class, and for each its class, its rank there, low and high.

        The epoch reads the numbers [low, high) of the class.
        """
        table, begin = self._table, self._begin(epoch)
        classes = self._classes_of(indices)
        asked = np.flatnonzero(classes >= 0)
        classes = classes[asked]
        kinds, kind = np.unique(classes, return_inverse=True)
        low, high = (
            self._tuples_before(unit, kinds)[kind.ravel()] * self._size
            for unit in (begin, begin + (self.epoch_size or 0))
        )
        return asked, classes, table.ranks(indices[asked], classes), low, high

    def _groups_read(self, epoch: int, start: int, stop: int) -> Int64:
        out = np.empty((stop - start) * self._unit_size, np.int64)
        for some, classes, _ in self._deal(np.arange(start, stop) + self._begin(epoch)):
            out[some] = np.repeat(classes, self._size)
        return out

    def _classes_of(self, indices: Int64) -> Int64:
        """Return the class of each sample; -1 if it is never read."""
        labels = self.labels.array[indices]
        self.labels.check_file()  # else labels may differ from those that the classes were made of
        return self._table.numbers(labels)

    def tally(self, epoch: int, indices: Int64) -> Int64:
        asked, classes, ranks, low, high = self._asked(epoch, indices)
        counts = np.zeros(len(indices), np.int64)
        period, sizes = self._periods[classes], self._table.sizes[classes]
        first, last = low // period, (high - 1) // period
        over = sizes - period

        def left_out(turns: Int64) -> Int64:  # before these rounds
            before: Int64 = (turns * over - ranks + sizes - 1) // sizes
            return before

        between = np.maximum(last - first - 1, 0)  # rounds that lie in the epoch as a whole
        counts[asked] = between - np.where(between > 0, left_out(last) - left_out(first + 1), 0)
        for turns, some in ((first, high > low), (last, (high > low) & (last > first))):
            number = self._numbers_in(classes[some], ranks[some], turns[some])
            here = (number >= low[some]) & (number < high[some])
            counts[asked[some]] += here
        return counts

    def _reads(self, epoch: int, indices: Int64, most: int) -> Iterator[tuple[Int64, Int64]]:
        """Yield the reads in each class's first `most` rounds: (which of the indices, position)."""
        asked, classes, ranks, low, high = self._asked(epoch, indices)
        period, begin = self._periods[classes], self._begin(epoch)
        first = low // period
        num = np.where(high > low, np.minimum((high - 1) // period - first + 1, most), 0)
        ends = np.cumsum(num)
        for start in range(0, int(ends[-1]) if len(ends) else 0, CHUNK):
            read = np.arange(start, min(start + CHUNK, int(ends[-1])))
            k = np.searchsorted(ends, read, "right")
            turns = first[k] + read - (ends[k] - num[k])
            number = self._numbers_in(classes[k], ranks[k], turns)
            here = (number >= low[k]) & (number < high[k])
            k = k[here]
            units = self._units_of(classes[k], number[here] // self._size)
            yield asked[k], units - begin

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        # If later numbers are read later, the first read of a sample is in the first three rounds
        # of its class: the first may have read it before the epoch, and the second may leave it
        # out.
        empty, rounds = np.empty(0, np.int64), np.iinfo(np.int64).max
        asked, reads = np.arange(len(indices)), [(empty, empty)]
        if most == 1 and self._rising:
            rounds = 3
        elif most == 1:  # to search for a sample that is read often is faster than to list it
            often = self.tally(epoch, indices) > isqrt(self.epoch_size or 0)
            reads.append((asked[often], first_by_reading(self, epoch, indices[often])))
            asked = np.flatnonzero(~often)
        for which, positions in self._reads(epoch, indices[asked], rounds):
            reads.append((asked[which], positions))
        which, positions = (np.concatenate(each) for each in zip(*reads, strict=True))
        return which, positions

    @once
    def group_names(self) -> tuple[str, ...]:
        """The labels of the classes that are read, as text."""
        return tuple(map(str, self._table.labels.tolist()))

    def group(self, indices: Int64) -> Int64:
        return self._classes_of(indices)

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        num = len(self._table.labels)
        return np.full(num, 1 / num)
