"""Bins of interchangeable samples: what orders by length and by group have in common.

A stratum consists of samples that are interchangeable. The places of strata that make a bin are
computed once, from the column alone (`Template`). In each epoch, a shuffle of each stratum puts its
samples at these places. So every epoch has the same number of bins, of the same sizes, and the cost
of drawing a bin depends only on what it holds.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import IndexPlanError, invalid
from indexplan.once import once
from indexplan.orders.base import Draws, Int64, Order
from indexplan.orders.columns import BLOCK, INTEGERS, Column
from indexplan.orders.fields import kept, whole
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand
from indexplan.seeds import BINS, STRATA
from indexplan.stores.tables import table_of

MOST_SAMPLES = 2**32  # their numbers are stored in four bytes each
LONGEST = 2**40
MOST_STRATA = 2**16
SIZE_STOP = 2**31  # of bins

UInt32 = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Template:
    """Which samples may be where in every epoch: the strata, and how bins are made from them.

    Bins that are made in the same way form a pattern, and have consecutive numbers. A move puts
    `many` samples of one stratum into each of some consecutive bins.

    Attributes
    ----------
    rows : numpy.ndarray
        uint32, shape (n,): all samples, sorted by stratum.
    keys, places : numpy.ndarray
        int64, shapes (d,) and (d + 1,): of the runs of `rows` in which samples rise, the largest
        key in each and its first place, and then n.
    firsts : numpy.ndarray
        int64, shape (num_strata + 1,): the first place of each stratum, and then n.
    moves : numpy.ndarray
        uint32, shape (num_moves + 1, 5): the first place of each move, its stratum, its first bin,
        `many`, and the move before it in these bins, or 0 if it is their first. Row 0 stands for no
        move. Places rise.
    bins : numpy.ndarray
        int64, shape (num_patterns + 1,): the first bin of each pattern, and the number of bins.
    lasts, sizes : numpy.ndarray
        int64, shape (num_patterns,): the last move of each pattern, and the samples in each bin.
    """

    rows: UInt32
    keys: Int64
    places: Int64
    firsts: Int64
    moves: UInt32
    bins: Int64
    lasts: Int64
    sizes: Int64


class Strata(Order):
    """An order whose bins are made from interchangeable samples.

    A subclass defines the keys to sort samples by, and how to make bins from the sorted samples.
    """

    seed: int

    traits = Traits(deals_bins=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self)["num_samples"] = len(self._column)

    @property
    def ip_table_bytes(self) -> int:
        return 4 * self.num_samples

    @property
    def ip_draws(self) -> Draws:
        """What determines the draws: all kinds of strata share their key words."""
        return (("strata", self.num_samples, self.seed),)

    @property
    @abc.abstractmethod
    def _column(self) -> Column:
        """The column that samples are sorted into strata by."""

    @abc.abstractmethod
    def _keys(self, values: Int64) -> Int64:
        """Return the keys, at least 0, of samples that have these numbers in the column."""

    @abc.abstractmethod
    def _made(self, rows: UInt32, keys: Int64, places: Int64) -> Template:
        """Return the template of sorted samples whose keys begin at these places."""

    @once
    def _template(self) -> Template:
        """How bins are made; orders that differ only in their seed share it."""
        fields = {name: value for name, value in self.to_dict().items() if name != "seed"}

        def build() -> Template:
            with self._column.steady():
                row = _sorted(*self._all_keys())
            return self._made(*row)

        key = {"table": "strata", **fields}
        return table_of(key, Template, build, self.ip_table_bytes)

    def _all_keys(self) -> tuple[NDArray[Any], int]:
        """Return the keys of all samples, as uint32 where they fit, and the largest one."""
        array = self._column.array
        starts = range(0, len(array), BLOCK)
        blocks = (array[start : start + BLOCK].astype(np.int64) for start in starts)
        most = max(int(self._keys(block).max()) for block in blocks)
        keys = np.empty(len(array), np.uint32 if most < 2**32 else np.int64)
        for start in starts:
            block = array[start : start + BLOCK].astype(np.int64)
            keys[start : start + BLOCK] = self._keys(block)
        return keys, most

    def num_units(self, epoch: int) -> int:
        """Return the number of bins."""
        return int(self._template.bins[-1])

    def ip_short_bins(self, epoch: int) -> Int64:
        if (size := self.ip_bin_size) is None:
            return super().ip_short_bins(epoch)
        t = self._template
        short = np.flatnonzero(t.sizes < size)
        bins = expand(t.bins[short], t.bins[short + 1])
        return np.sort(self._unshuffled(BINS, epoch, self.num_units(epoch), bins))

    def _bins_at(self, epoch: int, starts: Int64, stops: Int64) -> tuple[Int64, Int64]:
        """Return the bins at runs of positions, and where each starts and ends in their samples."""
        numbers = self._shuffled(BINS, epoch, self.num_units(epoch), starts, stops)
        offsets = np.empty(len(numbers) + 1, np.int64)
        kernels.strata.cut_bins(numbers, self._template.bins, self._template.sizes, offsets)
        return numbers, offsets

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return self._bins_at(epoch, starts, stops)[1]

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        numbers, offsets = self._bins_at(epoch, starts, stops)
        samples = np.empty(int(offsets[-1]), np.int64)
        t, key = self._template, self._key_words(STRATA, epoch, 2)
        kernels.strata.fill_bins(
            numbers, offsets, key, t.bins, t.lasts, t.moves, t.firsts, t.rows, samples
        )
        return Units(samples, np.diff(offsets))

    def _numbers(self, samples: Int64) -> Int64:
        """Return the column's numbers of some samples."""
        numbers = self._column.array[samples].astype(np.int64)
        self._column.check_file(gone=True)  # else numbers may differ from when bins were made
        return numbers

    def _bins_of(self, epoch: int, samples: Int64) -> Int64:
        """Return the number of the bin that each sample is in."""
        t, key = self._template, self._key_words(STRATA, epoch, 2)
        run = np.searchsorted(t.keys, self._keys(self._numbers(samples)))
        out = np.empty(len(samples), np.int64)
        lows, highs = t.places[run], t.places[run + 1]
        kernels.strata.find_bins(samples, lows, highs, key, t.moves, t.firsts, t.rows, out)
        return out

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        bins = self._bins_of(epoch, indices)
        return np.arange(len(indices)), self._unshuffled(BINS, epoch, self.num_units(epoch), bins)


class ByLength(Strata):
    """An order whose strata are intervals of lengths, the longest first."""

    lengths: Column

    @property
    def _column(self) -> Column:
        return self.lengths

    @once
    def _longest(self) -> int:
        """The longest length."""
        with self.lengths.steady(gone=True) as array:
            return int(array.max())

    def _keys(self, values: Int64) -> Int64:
        return self._longest - values


class Buckets(ByLength):
    """An order whose bins hold samples of one stratum each, so that there is little padding."""

    num_buckets: int

    @abc.abstractmethod
    def _size(self, longest: int) -> int:
        """Return how many samples a bin gets if its longest sample has this length."""

    def _made(self, rows: UInt32, keys: Int64, places: Int64) -> Template:
        return each_by_itself(rows, keys, places, *self._cut(keys, places))

    def _cut(self, keys: Int64, places: Int64) -> tuple[list[int], list[int]]:
        """Return where strata start and the last ends, and the samples in a bin of each."""
        num_samples, firsts, sizes = int(places[-1]), [0], []
        for edge in _edges(keys, places, self.num_buckets):
            start = firsts[-1]
            if edge > start:  # else the previous bucket ends there, or later
                at = int(np.searchsorted(places, start, "right")) - 1
                sizes.append(self._size(self._longest - int(keys[at])))
                num_bins = -(-(edge - start) // sizes[-1])
                firsts.append(min(start + num_bins * sizes[-1], num_samples))
        return firsts, sizes


def each_by_itself(
    rows: UInt32, keys: Int64, places: Int64, edges: Sequence[int], each: Sequence[int]
) -> Template:
    """Return a template whose strata end at these edges, each cut into bins of its own size."""
    firsts, sizes = np.array(edges, np.int64), np.array(each, np.int64)
    whole, left = np.divmod(np.diff(firsts), sizes)
    # for each stratum, all full bins, and then the one that is not full
    many = np.stack([sizes, left], axis=1).ravel()
    counts = np.stack([whole, left > 0], axis=1).ravel()
    many, counts = many[counts > 0], counts[counts > 0]
    bins = np.append(0, np.cumsum(counts))
    moves = np.zeros((len(bins), 5), np.uint32)
    moves[2:, 0] = np.cumsum(many * counts)[:-1]
    moves[1:, 1] = np.searchsorted(firsts, moves[1:, 0], "right") - 1
    moves[1:, 2], moves[1:, 3] = bins[:-1], many
    return Template(rows, keys, places, firsts, moves, bins, np.arange(1, len(bins)), many)


def _sorted(keys: NDArray[Any], most: int) -> tuple[UInt32, Int64, Int64]:
    """Return samples sorted by key, the different keys, and where each starts and the last ends."""
    rising, rows = kernels.sorting.sort_rows(keys, max(most.bit_length(), 1))
    starts = np.flatnonzero(rising[1:] != rising[:-1]) + 1
    places = np.concatenate([[0], starts, [len(rising)]])
    return rows.astype(np.uint32, copy=False), rising[places[:-1]].astype(np.int64), places


def _edges(keys: Int64, places: Int64, num_buckets: int) -> list[int]:
    """Return where buckets should end for the least padding: at equal sums of square roots.

    It uses integers, which all machines round alike. Sums stay below 2**53: by Cauchy and Schwarz
    they are at most 2**16 times the square root of all samples times all gaps.
    """
    counts, gaps = np.diff(places), np.append(np.diff(keys), 1)
    roots = np.empty(len(keys), np.int64)
    for start in range(0, len(keys), BLOCK):
        part = slice(start, start + BLOCK)
        pairs = zip(counts[part].tolist(), gaps[part].tolist(), strict=True)
        roots[part] = [isqrt(count * gap << 32) for count, gap in pairs]
    sums = np.cumsum(roots)
    total = int(sums[-1])
    wished = [-(-k * total // num_buckets) for k in range(1, num_buckets + 1)]
    edges: list[int] = places[np.searchsorted(sums, wished) + 1].tolist()
    return edges


def integers_of(what: str, values: Any, start: int, last: int, cure: str) -> Column:
    """Return a column with an integer from `start` to `last` for each sample.

    Raises
    ------
    IndexPlanError
        If it is empty or too long, or a number is out of range; the message names the first such
        sample.
    """
    column = Column.of(values, INTEGERS, f"{what}s")
    if not 1 <= len(column) <= MOST_SAMPLES:
        rule = f"from 1 to {MOST_SAMPLES} numbers"
        raise invalid(f"{what}s", rule, len(column), f"pass the {what} of each sample")
    for begin in range(0, len(column), BLOCK):
        block = column.array[begin : begin + BLOCK]
        if block.min() < start or block.max() > last:
            at = begin + int(np.argmax((block < start) | (block > last)))
            rule = f"an integer from {start} to {last}"
            raise invalid(f"the {what} of sample {at}", rule, int(column.array[at]), cure)
    return column


def lengths_of(values: Any) -> Column:
    """Return a column of lengths, or raise `IndexPlanError`."""
    cure = "leave out what is empty, or count in larger units"
    return integers_of("length", values, 1, LONGEST, cure)


LENGTHS = kept(lengths_of)
_NO_MOST = "leave it out, or pass how many samples a bin may have"
MAX_SAMPLES = whole(1, SIZE_STOP, _NO_MOST, optional=True)
NUM_BUCKETS = whole(1, MOST_STRATA + 1, "leave it out for 64")


def exact_sum(numbers: NDArray[Any]) -> int:
    """Return the exact sum of integers from 0 to 2**40, even if it is 2**63 or more."""
    parts = (numbers[start : start + BLOCK] for start in range(0, len(numbers), BLOCK))
    return sum(int(part.sum()) for part in parts)


def check_longest(what: str, most: int, lengths: Column, cure: str) -> None:
    """Raise `IndexPlanError`, naming the first such sample, if any length is above a bound."""
    with lengths.steady(gone=True) as array:
        longest = int(array.max())
        if most >= longest:
            return
        above = np.flatnonzero(array > most)
        longer = f"sample {above[0]} is longer"
        if len(above) > 1:
            longer = f"{len(above):,} samples are longer, the first of them sample {above[0]}"
        got = f"{most}, but {longer}"
        raise IndexPlanError(what, f"must be at least {longest}, the longest length", got, cure)
