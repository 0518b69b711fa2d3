"""Bins of samples that may stand in for each other: what orders by length and by group share.

Which places of which strata make a bin is worked out once, from the column alone (`Template`); in
each epoch a shuffle of each stratum says which of its samples stands at which place. So the number
of bins, and their sizes, are the same in every epoch, and any bin costs what it holds.
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
from indexplan.errors import IndexPlanError, integer, wrong
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import BLOCK, INTEGERS, Column
from indexplan.orders.traits import Traits
from indexplan.seeds import BINS, STRATA, check_epoch, key_words

MOST_SAMPLES = 2**32  # of which rows hold four bytes each
LONGEST = 2**40
MOST_STRATA = 2**16
SIZE_STOP = 2**31  # of bins

UInt32 = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Template:
    """Which samples may stand where, in every epoch: strata, and how bins are made of them.

    Bins that are made alike are a pattern, and have following numbers. A move puts `many` samples
    of one stratum into each of some following bins.

    Attributes
    ----------
    rows : numpy.ndarray
        uint32, shape (n,): all samples, by strata.
    keys, places : numpy.ndarray
        int64, shapes (d,) and (d + 1,): runs of `rows` in which samples rise: the largest key in
        each, and its first place; the end.
    firsts : numpy.ndarray
        int64, shape (num_strata + 1,): the first place of each stratum, and the end.
    moves : numpy.ndarray
        uint32, shape (num_moves + 1, 5): the first place of each move, its stratum, the first bin,
        `many`, and the move that these bins had had before; 0 for none, which row 0 stands for.
        Places rise.
    bins : numpy.ndarray
        int64, shape (num_patterns + 1,): the first bin of each pattern, and the end.
    lasts, sizes : numpy.ndarray
        int64, shape (num_patterns,): the last move of each, and the samples in a bin of it.
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
    """An order of bins that are made of samples that may stand in for each other.

    A kind of it says by which keys samples are sorted, and what is made of the sorted row.
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
    def _made(self, rows: UInt32, keys: Int64, places: Int64) -> Template:
        """Return the template of sorted samples, of which keys there are, and where each starts."""

    @once
    def _template(self) -> Template:
        """How bins are made, which all orders share that differ in their seed alone."""
        from indexplan.kernels.tables import table_of  # which imports numba

        fields = {name: value for name, value in self.to_dict().items() if name != "seed"}

        def build() -> Template:
            row = _sorted(self._keys(self._column.array.astype(np.int64)))
            self._column.check_file()
            return self._made(*row)

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
        from indexplan.kernels.permutation import permute_runs

        numbers = np.empty(int((stops - starts).sum()), np.int64)
        permute_runs(self.num_units(epoch), self._words(epoch), starts, stops, numbers)
        return numbers, self._ends(numbers)

    def _ends(self, numbers: Int64) -> Int64:
        """Return where some bins start among their samples, and the end."""
        from indexplan.kernels.strata import cut_bins

        offsets = np.empty(len(numbers) + 1, np.int64)
        cut_bins(numbers, self._template.bins, self._template.sizes, offsets)
        return offsets

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

        t, key = self._template, key_words(self.seed, STRATA, epoch, 2)
        fill_bins(numbers, offsets, key, t.bins, t.lasts, t.moves, t.firsts, t.rows, out)

    def _numbers(self, samples: Int64) -> Int64:
        """Return what the column says of some samples."""
        numbers = self._column.array[samples].astype(np.int64)
        self._column.check_file(gone=True)  # else it may say something else than when bins were cut
        return numbers

    def _bins_of(self, epoch: int, samples: Int64) -> Int64:
        """Return the numbers of the bins that samples are in."""
        from indexplan.kernels.strata import find_bins

        t, key = self._template, key_words(self.seed, STRATA, epoch, 2)
        run = np.searchsorted(t.keys, self._keys(self._numbers(samples)))
        out = np.empty(len(samples), np.int64)
        lows, highs = t.places[run], t.places[run + 1]
        find_bins(samples, lows, highs, key, t.moves, t.firsts, t.rows, out)
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

    @property
    def _column(self) -> Column:
        return self.lengths

    @once
    def _longest(self) -> int:
        """The longest length."""
        return int(self.lengths.array.max())

    def _keys(self, values: Int64) -> Int64:
        return self._longest - values


class Buckets(ByLength):
    """An order of bins of one stratum each, so that little is added by padding to the longest."""

    num_buckets: int

    @abc.abstractmethod
    def _size(self, longest: int) -> int:
        """Return the samples of a bin whose longest sample has a length."""

    def _made(self, rows: UInt32, keys: Int64, places: Int64) -> Template:
        return each_by_itself(rows, keys, places, *self._cut(keys, places))

    def _cut(self, keys: Int64, places: Int64) -> tuple[list[int], list[int]]:
        """Return where strata start, and the end, and the samples of a bin of each."""
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

        Read it first to find out at once whether memory suffices.

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
        first, stop = int(each.firsts[-2]), int(each.firsts[-1])
        left = int(each.sizes[-1]) if each.moves[-1, 0] > first else 0
        last = np.arange(first + 1, min(first + left + 1, stop))
        samples = each.rows[np.append(each.firsts[:-1], last)].astype(np.int64)
        numbers = self._bins_of(epoch, samples)
        counts = each.sizes[np.searchsorted(each.bins, numbers, "right") - 1].tolist()
        lengths = self._numbers(samples).tolist()
        costs = [length * count for length, count in zip(lengths, counts, strict=True)]
        return int(self._positions(epoch, numbers[[costs.index(max(costs))]])[0])


def each_by_itself(
    rows: UInt32, keys: Int64, places: Int64, edges: Sequence[int], each: Sequence[int]
) -> Template:
    """Return a template whose strata, between some edges, are cut into bins of so many each."""
    firsts, sizes = np.array(edges, np.int64), np.array(each, np.int64)
    whole, left = np.divmod(np.diff(firsts), sizes)
    # of each stratum all bins that are full, and then the one that is not
    many = np.stack([sizes, left], axis=1).ravel()
    counts = np.stack([whole, left > 0], axis=1).ravel()
    many, counts = many[counts > 0], counts[counts > 0]
    bins = np.append(0, np.cumsum(counts))
    moves = np.zeros((len(bins), 5), np.uint32)
    moves[2:, 0] = np.cumsum(many * counts)[:-1]
    moves[1:, 1] = np.searchsorted(firsts, moves[1:, 0], "right") - 1
    moves[1:, 2], moves[1:, 3] = bins[:-1], many
    return Template(rows, keys, places, firsts, moves, bins, np.arange(1, len(bins)), many)


def _sorted(keys: Int64) -> tuple[UInt32, Int64, Int64]:
    """Return samples by their keys, which keys there are, and where those of each start."""
    from indexplan.kernels.sorting import DIGIT, cut_runs, sort_by_digit

    rows, room = np.arange(len(keys), dtype=np.uint32), np.empty(len(keys), np.uint32)
    bits = int(keys.max()).bit_length()
    for shift in range(0, max(bits, 1), DIGIT):
        ends = sort_by_digit(keys, shift, rows, room)
        rows, room = room, rows
    # of one digit there is no need to look at each sample again
    places = np.union1d(0, ends) if bits <= DIGIT else cut_runs(keys, rows)
    return rows, keys[rows[places[:-1]]], places


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


def exact_sum(numbers: NDArray[Any]) -> int:
    """Return the sum of integers from 0 to 2**40, whatever it is."""
    parts = (numbers[start : start + BLOCK] for start in range(0, len(numbers), BLOCK))
    return sum(int(part.sum()) for part in parts)


def check_longest(what: str, most: int, lengths: Column, cure: str) -> None:
    """Raise `IndexPlanError`, which names the first such sample, if some are above a bound."""
    longest = int(lengths.array.max())
    if most < longest:
        above = np.flatnonzero(lengths.array > most)
        rule = f"{what} must be at least {longest}, the longest length"
        got = f"{most}, but {len(above)} samples are longer, sample {above[0]} the first"
        raise IndexPlanError(f"{rule}; got {got}; {cure}")


def check_max_samples(value: Any) -> int | None:
    """Return the samples that a bin has at most, None for any number, or raise an error."""
    cure = "leave it out, or pass how many samples a bin may have"
    return None if value is None else integer("max_samples", value, 1, SIZE_STOP, cure)
