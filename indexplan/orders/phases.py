"""The source and unit that a mixture reads at each place of its stream, and these by source."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.once import latest, once
from indexplan.orders.base import Float64, Int64, Order
from indexplan.orders.shares import SharesFrom
from indexplan.orders.shuffle import UInt32
from indexplan.orders.units import expand

Int32 = NDArray[np.int32]
PLACE_STOP = 2**63
PLAIN = 128  # nodes of a process's first trees, if alike: in plain Python, in 60 ms, uncompiled
NEAR, MOST = 8, 32  # places, and 1 for each node: these take less in one run than one of them alone


class Pattern:
    """The slots of a phase, which a tree deals to the sources.

    Parameters
    ----------
    shares : tuple of int
        The share of each source, in lowest terms; less than 2**62 together.
    phase : int
        The phase's number, below 2**12.
    key : uint32 (2,)
        The Philox key of the coins.

    Attributes
    ----------
    reach : int
        The largest distance of a source from its share, in 2**-32 units.
    """

    def __init__(self, shares: tuple[int, ...], phase: int, key: UInt32) -> None:
        self._phase, self._key = phase, key
        each = np.array(shares, np.int64)
        leaves = each.argsort(kind="stable")[shares.count(0) :]
        num = len(leaves) - 1
        self._nodes = np.empty((num, kernels.tree.COLUMNS), np.int64)
        self._ratios = np.empty((num, kernels.tree.RATIOS))
        self._ups = np.empty(num + len(each), np.int64)
        self._top = 0 if num else ~int(leaves[0])
        plant = kernels.tree.plant
        given = each, leaves, self._nodes, self._ratios, self._ups
        self.reach: int = plant.plain_at_first(PLAIN // max(1, num), *given)

    def count(self, base: Int64, place: int) -> Int64:
        """Return how many units of each source come before a place, and `base`; int64 (k,)."""
        out: Int64 = base.copy()
        tree = self._nodes, self._ratios, self._top
        kernels.mixture.count_before(place, self._phase, self._key, *tree, out)
        return out

    def deal(
        self,
        shift: int,
        base: Int64,
        starts: Int64,
        stops: Int64,
        sources: Int32,
        numbers: Int64,
    ) -> None:
        """Write the sources and units at runs of places, each counted from -shift."""
        low, high = int(starts.min()), int(stops.max())
        if len(starts) > 1 and high - low <= min(NEAR + len(self._nodes), MOST) * len(sources):
            deals = np.empty(high - low, np.int32), np.empty(high - low, np.int64)
            self.deal(shift, base, np.array([low]), np.array([high]), *deals)
            places = expand(starts, stops) - low
            sources[:], numbers[:] = deals[0][places], deals[1][places]
            return
        tree = self._nodes, self._ratios, self._top
        kernels.mixture.deal(
            shift, self._phase, self._key, base, *tree, starts, stops, sources, numbers
        )

    def find(self, source: int, base: int, numbers: Int64) -> Int64:
        """Return the places of some units of a source, which has `base` units before the phase."""
        out = np.empty(len(numbers), np.int64)
        tree = self._nodes, self._ratios, self._ups
        kernels.mixture.find(self._phase, self._key, source, base, *tree, numbers, out)
        return out


class Phases:
    """The phases of weights of a mixture: where each begins, and its shares.

    Parameters
    ----------
    phases : tuple of (place, shares)
        Rising from 0.
    key : uint32 (2,)
        The Philox key of all coins.
    """

    def __init__(self, phases: tuple[SharesFrom, ...], key: UInt32) -> None:
        self.phases = phases
        self.places = [place for place, _ in phases]
        self.key = key

    @once
    def _bases(self) -> dict[int, Int64]:
        """The known results of `_base`: for phase 0, and up to the last phase that was needed."""
        return {0: np.zeros(len(self.phases[0][1]), np.int64)}

    def _base(self, number: int) -> Int64:
        """Return how many units of each source come before a phase; int64 (k,).

        With thousands of phases, each takes the time of a tree, and a run needs only the next few.
        """
        bases = self._bases
        for before in range(len(bases) - 1, number):  # threads may do the same at once
            length = self.places[before + 1] - self.places[before]
            bases[before + 1] = self._count(before, bases[before], length)
        return bases[number]

    def _bases_of(self, source: int, most: int) -> list[int]:
        """Return how many units of a source come before each phase, until that exceeds `most`."""
        bases = [0]
        while bases[-1] <= most and len(bases) < len(self.phases):
            bases.append(int(self._base(len(bases))[source]))
        return bases

    def _count(self, number: int, base: Int64, place: int) -> Int64:
        """Return how many units of each source come before a place of a phase."""
        shares = self.phases[number][1]
        times, rest = divmod(place, sum(shares))
        if not rest:  # then no tree is needed
            return base + times * np.array(shares, np.int64)
        return self.pattern(number).count(base, place)

    @latest(1)
    def pattern(self, number: int) -> Pattern:
        """Return the pattern of a phase."""
        return Pattern(self.phases[number][1], number, self.key)

    def phase_at(self, place: int) -> int:
        """Return the number of the phase that a place belongs to."""
        return bisect_right(self.places, place) - 1

    def count(self, place: int) -> Int64:
        """Return how many units of each source come before a place of the stream; int64 (k,)."""
        number = self.phase_at(place)
        return self._count(number, self._base(number), place - self.places[number])

    def deal(self, begin: int, starts: Int64, stops: Int64) -> tuple[Int32, Int64]:
        """Return the sources and units read at runs of positions, counted from place `begin`."""
        total = int((stops - starts).sum())
        sources, numbers = np.empty(total, np.int32), np.empty(total, np.int64)
        if not total:
            return sources, numbers
        if len(self.phases) == 1:
            self._deal(0, begin, starts, stops, sources, numbers)
            return sources, numbers
        some = stops > starts
        starts, stops = starts[some], stops[some]
        done = 0
        for number, lows, highs in self._cut(begin, starts, stops):
            until = done + int((highs - lows).sum())
            self._deal(number, begin, lows, highs, sources[done:until], numbers[done:until])
            done = until
        return sources, numbers

    def _deal(
        self, number: int, begin: int, starts: Int64, stops: Int64, sources: Int32, numbers: Int64
    ) -> None:
        base, shift = self._base(number), begin - self.places[number]
        self.pattern(number).deal(shift, base, starts, stops, sources, numbers)

    def _cut(self, begin: int, starts: Int64, stops: Int64) -> list[tuple[int, Int64, Int64]]:
        """Cut non-empty runs where phases begin: (phase, starts, stops), in turn."""
        least, most = begin + int(starts.min()), begin + int(stops.max()) - 1
        low, high = self.phase_at(least), self.phase_at(most)
        if low == high:
            return [(low, starts, stops)]
        edges = np.array([place - begin for place in self.places[low + 1 : high + 1]], np.int64)
        first, last = (np.searchsorted(edges, at, "right") for at in (starts, stops - 1))
        phase, sizes = expand(first, last + 1), last - first + 1
        lows = np.maximum(np.repeat(starts, sizes), np.append(0, edges)[phase])
        highs = np.minimum(np.repeat(stops, sizes), np.append(edges, stops.max())[phase])
        ends = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist(), len(phase)]
        return [(low + int(phase[a]), lows[a:b], highs[a:b]) for a, b in pairwise(ends)]

    def find(self, source: int, numbers: Int64) -> Int64:
        """Return the places, int64, where some units of a source are read; all of them must be."""
        bases = np.array(self._bases_of(source, int(numbers.max(initial=0))))
        phase = np.searchsorted(bases, numbers, "right") - 1
        places = np.empty(len(numbers), np.int64)
        for number in np.unique(phase).tolist():
            some = np.flatnonzero(phase == number)
            found = self.pattern(number).find(source, int(bases[number]), numbers[some])
            places[some] = found + self.places[number]
        return places

    def place_of(self, source: int, number: int) -> int | None:
        """Return the place at which a unit of a source is read; None if not before 2**63 - 1."""
        read = self._bases_of(source, number)[-1] > number  # before the last phase that is needed
        if not read and number >= self.count(PLACE_STOP - 1)[source]:
            return None
        return int(self.find(source, np.array([number], np.int64))[0])

    def shares(self, start: int, stop: int) -> Float64:
        """Return the share of each source in places [start, stop), as the weights say."""
        first, last = self.phase_at(start), self.phase_at(stop - 1)
        ends = [start, *self.places[first + 1 : last + 1], stop]
        total = np.zeros(len(self.phases[0][1]))
        for (low, high), (_, shares) in zip(pairwise(ends), self.phases[first:], strict=False):
            total += (high - low) * (np.array(shares) / sum(shares))
        return total / (stop - start)

    def reads(self, epoch_size: int, sizes: list[int]) -> str:
        """Return how often an epoch reads each unit of the sources: a value of `Traits.reads`."""
        reads = "once"
        for place, shares in self.phases:
            times, rest = divmod(epoch_size, sum(shares))
            if rest or place % epoch_size:
                return "any"
            counts = [times * share for share in shares]
            if counts != sizes:
                reads = "at most once"
                before = self.count(place).tolist()
                for count, size, done in zip(counts, sizes, before, strict=True):
                    if count and (size % count or done % count):
                        return "any"
        return reads


class Sorted(NamedTuple):
    """Units of a mixture, sorted by source.

    sources : int32 (num,)
        The source of each unit, in order of reading.
    begins : int64 (k + 1,)
        Where the units of each source begin among all, and where the last ones end.
    parts : int64 (k + 1,)
        Source j reads the epochs [parts[j], parts[j + 1]) of `epochs`.
    epochs, cuts : int64
        Epoch i reads the runs [cuts[i], cuts[i + 1]).
    starts, stops : int64
        The runs of positions.
    """

    sources: Int32
    begins: Int64
    parts: Int64
    epochs: Int64
    cuts: Int64
    starts: Int64
    stops: Int64

    @classmethod
    def of(cls, sources: Int32, numbers: Int64, sizes: Int64) -> Sorted:
        """Return units by source, from the source of each and its number in the source's stream."""
        num, k = len(sources), len(sizes)
        begins, parts = np.empty(k + 1, np.int64), np.empty(k + 1, np.int64)
        epochs, cuts, starts, stops = (np.empty(num + 1, np.int64) for _ in range(4))
        kernels.by_source.by_source(
            sources, numbers, sizes, begins, parts, epochs, cuts, starts, stops
        )
        return cls(sources, begins, parts, epochs, cuts, starts, stops)

    def of_source(self, j: int) -> Iterator[tuple[int, slice, Int64, Int64]]:
        """Yield each epoch that a source reads, where its units are among all, and its runs."""
        (first, last), (done, end) = self.parts[j : j + 2].tolist(), self.begins[j : j + 2].tolist()
        for i in range(first, last):
            runs = slice(self.cuts[i], self.cuts[i + 1])
            starts, stops = self.starts[runs], self.stops[runs]
            until = end if i + 1 == last else done + int((stops - starts).sum())
            yield int(self.epochs[i]), slice(done, until), starts, stops
            done = until

    def rows(self, whose: tuple[Order, ...]) -> list[tuple[Any, ...]]:
        """Return what to draw: the source, its number and epoch, starts and stops of its runs."""
        rows = []
        of = np.repeat(np.arange(len(whose)), np.diff(self.parts)).tolist()
        edges = pairwise(self.cuts[: len(of) + 1].tolist())
        for j, epoch, (a, b) in zip(of, self.epochs[: len(of)].tolist(), edges, strict=True):
            starts, stops = self.starts[a:b], self.stops[a:b]
            rows.append((whose[j], j, epoch, starts, stops))
        return rows
