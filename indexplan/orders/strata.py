"""Bins of samples that may stand in for each other: what orders by length and by group share.

Samples of one stratum are cut into bins by places, which is worked out once from the column alone
(`Template`); in each epoch a shuffle of its own says which of them stands at which place. So the
number of bins, and their sizes, are the same in every epoch, and any bin costs what it holds.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.canonical import canonical_json
from indexplan.errors import wrong
from indexplan.once import once
from indexplan.orders.base import Int64, Order, Traits
from indexplan.orders.columns import BLOCK, INTEGERS, Column
from indexplan.seeds import BINS, STRATA, check_epoch, key_words

MOST_SAMPLES = 2**32  # of which rows hold four bytes each
LONGEST = 2**40
MOST_STRATA = 2**16
SIZE_STOP = 2**31  # of bins
DIGIT = 16  # bits that samples are sorted by at a time, which NumPy does in linear time

UInt32 = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Template:
    """Which samples may stand where, in every epoch: strata, and how each is cut into bins.

    Attributes
    ----------
    rows : numpy.ndarray
        uint32, shape (n,): all samples, by their keys, and where those are equal by their numbers.
    keys, places : numpy.ndarray
        int64, shapes (d,) and (d + 1,): the keys that there are, and where in `rows` the samples
        of each start, and the end.
    firsts, bins : numpy.ndarray
        int64, shape (num_strata + 1,): the first place and the first bin of each stratum; the ends.
    sizes : numpy.ndarray
        int64, shape (num_strata,): samples in a bin of each; its last bin has what is left.
    """

    rows: UInt32
    keys: Int64
    places: Int64
    firsts: Int64
    bins: Int64
    sizes: Int64


class Strata(Order):
    """An order of bins, each of samples of one stratum.

    A kind of it says by which keys samples are sorted, and how the sorted row is cut into strata.
    """

    seed: int

    traits = Traits(deals_bins=True)

    @property
    @abc.abstractmethod
    def _column(self) -> Column:
        """What the strata are made of."""

    @abc.abstractmethod
    def _keys(self, values: Int64) -> Int64:
        """Return the keys, from 0 up, of samples with some numbers in the column."""

    @abc.abstractmethod
    def _cut(self, keys: Int64, places: Int64) -> tuple[Sequence[int], Sequence[int]]:
        """Return where strata start, and the end, and the samples of a bin of each."""

    @once
    def _template(self) -> Template:
        """Where bins are cut, which all orders share that differ in their seed alone."""
        from indexplan.kernels.tables import table_of  # which imports numba

        fields = {name: value for name, value in self.to_dict().items() if name != "seed"}

        def build() -> Template:
            rows, keys, places = _sorted(self._keys(self._column.array.astype(np.int64)))
            edges, each = self._cut(keys, places)
            self._column.check_file()
            firsts = np.array(edges, np.int64)
            sizes = np.minimum(np.array(each, np.int64), np.diff(firsts))
            num_bins = -(-np.diff(firsts) // sizes)
            return Template(rows, keys, places, firsts, np.append(0, np.cumsum(num_bins)), sizes)

        return table_of(canonical_json(fields), build)

    def num_units(self, epoch: int) -> int:  # noqa: ARG002 (it is the same for all)
        """Return the number of bins."""
        return int(self._template.bins[-1])

    def _words(self, epoch: int) -> NDArray[np.uint32]:
        """Return the key words of the order of an epoch's bins."""
        from indexplan.kernels.feistel import num_rounds

        return key_words(self.seed, BINS, epoch, 2 * num_rounds(self.num_units(epoch)))

    def _dealt(self, epoch: int, starts: Int64, stops: Int64) -> tuple[Int64, Int64]:
        """Return the bins at some runs of positions, and where each starts among their samples."""
        from indexplan.kernels import permutation, strata

        template = self._template
        numbers = np.empty(int((stops - starts).sum()), np.int64)
        permutation.permute_runs(self.num_units(epoch), self._words(epoch), starts, stops, numbers)
        offsets = np.empty(len(numbers) + 1, np.int64)
        strata.cut_bins(numbers, template.bins, template.firsts, template.sizes, offsets)
        return numbers, offsets

    def _offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return self._dealt(epoch, starts, stops)[1]

    def _fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        self._draw(epoch, *self._dealt(epoch, starts, stops), out)

    def _take(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        numbers, offsets = self._dealt(epoch, starts, stops)  # once, for their size as well
        out = np.empty(int(offsets[-1]), np.int64)
        self._draw(epoch, numbers, offsets, out)
        return out

    def _draw(self, epoch: int, numbers: Int64, offsets: Int64, out: Int64) -> None:
        """Write the samples of some bins."""
        from indexplan.kernels.strata import fill_bins

        each, key = self._template, key_words(self.seed, STRATA, epoch, 2)
        fill_bins(numbers, offsets, key, each.bins, each.firsts, each.sizes, each.rows, out)

    def _numbers(self, samples: Int64) -> Int64:
        """Return what the column says of some samples."""
        numbers = self._column.array[samples].astype(np.int64)
        self._column.check_file(gone=True)  # else it may say something else than when bins were cut
        return numbers

    def _bins_of(self, epoch: int, samples: Int64) -> Int64:
        """Return the numbers of the bins that samples are in."""
        from indexplan.kernels.strata import find_bins

        each, key = self._template, key_words(self.seed, STRATA, epoch, 2)
        run = np.searchsorted(each.keys, self._keys(self._numbers(samples)))
        lows, highs = each.places[run], each.places[run + 1]
        out = np.empty(len(samples), np.int64)
        find_bins(samples, lows, highs, key, each.bins, each.firsts, each.sizes, each.rows, out)
        return out

    def _locate(self, epoch: int, indices: Int64) -> Int64:
        return self._positions(epoch, self._bins_of(epoch, indices))

    def _positions(self, epoch: int, numbers: Int64) -> Int64:
        """Return where some bins are dealt."""
        from indexplan.kernels.permutation import invert

        out = np.empty(len(numbers), np.int64)
        invert(self.num_units(epoch), self._words(epoch), numbers, out)
        return out


class ByLength(Strata):
    """An order whose strata are intervals of lengths, the longest first."""

    lengths: Column
    num_buckets: int

    @property
    def _column(self) -> Column:
        return self.lengths

    @once
    def _longest(self) -> int:
        """The longest length."""
        return int(self.lengths.array.max())

    def _keys(self, values: Int64) -> Int64:
        return self._longest - values

    @abc.abstractmethod
    def _size(self, longest: int) -> int:
        """Return the samples of a bin whose longest sample has a length."""

    def _cut(self, keys: Int64, places: Int64) -> tuple[Sequence[int], Sequence[int]]:
        num_samples, firsts, sizes = int(places[-1]), [0], []
        for edge in _edges(keys, places, self.num_buckets):
            start = firsts[-1]
            if edge > start:  # else the bucket before ends there, or later
                at = int(np.searchsorted(places, start, "right")) - 1
                sizes.append(self._size(self._longest - int(keys[at])))
                num_bins = -(-(edge - start) // sizes[-1])
                firsts.append(min(start + num_bins * sizes[-1], num_samples))
        return firsts, sizes

    def heaviest(self, epoch: int) -> int:
        """Return the position of the bin that costs most: its longest length times its samples.

        A run that reads it first finds out at once whether memory will do.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.

        Raises
        ------
        IndexPlanError
            If the epoch is out of range.
        """
        epoch, each = check_epoch(epoch), self._template
        # Of the bins of a stratum that are full, the one with its longest sample costs most; that
        # may be in the one that is not full, which as many others may be in as there is room for.
        left = int((each.firsts[-1] - each.firsts[-2]) % each.sizes[-1])
        last = np.arange(each.firsts[-2] + 1, min(each.firsts[-2] + left + 1, each.firsts[-1]))
        samples = each.rows[np.append(each.firsts[:-1], last)].astype(np.int64)
        numbers = self._bins_of(epoch, samples)
        stratum = np.searchsorted(each.bins, numbers, "right") - 1
        ahead = (numbers - each.bins[stratum]) * each.sizes[stratum]
        counts = np.minimum(each.sizes[stratum], np.diff(each.firsts)[stratum] - ahead)
        lengths = self._numbers(samples).tolist()
        costs = [length * count for length, count in zip(lengths, counts.tolist(), strict=True)]
        return int(self._positions(epoch, numbers[[costs.index(max(costs))]])[0])


def _sorted(keys: Int64) -> tuple[UInt32, Int64, Int64]:
    """Return samples by their keys, which keys there are, and where those of each start."""
    rows = np.argsort((keys & (2**DIGIT - 1)).astype(np.uint16), kind="stable")
    most = int(keys.max())
    for shift in range(DIGIT, most.bit_length(), DIGIT):
        digits = (keys[rows] >> shift & (2**DIGIT - 1)).astype(np.uint16)
        rows = rows[np.argsort(digits, kind="stable")]
    samples, keys = rows.astype(np.uint32), keys[rows]
    del rows  # of twice the size
    ends = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    places = np.concatenate([[0], ends, [len(keys)]])
    return samples, keys[places[:-1]], places


def _edges(keys: Int64, places: Int64, num_buckets: int) -> list[int]:
    """Return where buckets should end, so that padding is least: at equal sums of square roots.

    In integers, which no machine rounds in its own way. Sums stay below 2**53: by Cauchy and
    Schwarz they are at most 2**16 times the root of all samples times all gaps.
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
    """Return a column of an integer for each sample, from `start` to `last`.

    Raises
    ------
    IndexPlanError
        If it is empty or too long, or a number is something else: names the first such sample.
    """
    column = Column.of(values, INTEGERS)
    if not 1 <= len(column) <= MOST_SAMPLES:
        rule = f"from 1 to {MOST_SAMPLES} numbers"
        raise wrong(f"{what}s", rule, len(column), f"pass the {what} of each sample")
    for begin in range(0, len(column), BLOCK):
        block = column.array[begin : begin + BLOCK]
        if block.min() < start or block.max() > last:
            at = begin + int(np.argmax((block < start) | (block > last)))
            rule = f"an integer from {start} to {last}"
            raise wrong(f"the {what} of sample {at}", rule, int(column.array[at]), cure)
    return column


def lengths_of(values: Any) -> Column:
    """Return a column of lengths, or raise `IndexPlanError`."""
    cure = "leave out what is empty, or count in larger units"
    return integers_of("length", values, 1, LONGEST, cure)
