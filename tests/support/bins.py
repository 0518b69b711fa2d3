"""Orders for tests only: uneven bins, of which a partition counts units; and one that repeats."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import Traits, Units, expand

Int64 = NDArray[np.int64]


def at(positions: Int64) -> tuple[Int64, Int64]:
    """Return the reads of samples of which each has one position, or -1, as `find` does."""
    which = np.flatnonzero(positions >= 0)
    return which, positions[which]


@lru_cache(maxsize=64)
def cut(num_samples: int, sizes: tuple[int, ...]) -> list[range]:
    """Return consecutive samples in bins of these sizes, over and over; the last may be short."""
    bins, start = [], 0
    while start < num_samples:
        stop = min(start + sizes[len(bins) % len(sizes)], num_samples)
        bins.append(range(start, stop))
        start = stop
    return bins


@ip.register
@dataclass(frozen=True, eq=False)
class Bins(ip.Order):
    """Bins of 1, 2, 3, 1, 2, 3, ... consecutive samples, dealt one bin further on in each epoch."""

    num_samples: int

    algorithm = "test-bins-v1"
    traits = Traits(deals_bins=True)

    def row(self, epoch: int) -> list[range]:
        """Return the bins of an epoch, in the order in which they are dealt."""
        bins = cut(self.num_samples, (1, 2, 3))
        first = epoch % len(bins)
        return bins[first:] + bins[:first]

    def num_units(self, epoch: int) -> int:
        """Return the number of bins."""
        return len(self.row(epoch))

    def _dealt(self, epoch: int, starts: Int64, stops: Int64) -> list[range]:
        row = self.row(epoch)
        return [row[position] for position in expand(starts, stops).tolist()]

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        dealt = self._dealt(epoch, starts, stops)
        samples = [sample for unit in dealt for sample in unit]
        return Units(np.array(samples, np.int64), np.array([len(u) for u in dealt], np.int64))

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        row = self.row(epoch)
        position = {sample: i for i, unit in enumerate(row) for sample in unit}
        return at(np.array([position.get(index, -1) for index in indices.tolist()], np.int64))


@ip.register
@dataclass(frozen=True, eq=False)
class ChangingBins(Bins):
    """Bins whose number changes with the epoch; odd epochs leave the last sample out."""

    algorithm = "test-changing-bins-v1"
    traits = Traits(deals_bins=True, constant_num_units=False, reads="at most once")

    @property
    def stream_key(self) -> int:
        """Return what augmentation seeds are hashed from, without a seed of its own."""
        return 70 + self.num_samples

    def row(self, epoch: int) -> list[range]:
        """Return the bins of an epoch, in the order in which they are dealt."""
        if epoch % 2:
            return cut(max(self.num_samples - 1, 1), (3, 1))[::-1]
        return cut(self.num_samples, (1, 2, 3))


@ip.register
@dataclass(frozen=True, eq=False)
class Shrinking(ChangingBins):
    """Bins of two, of which each epoch past the second has one less."""

    algorithm = "test-shrinking-bins-v1"

    def row(self, epoch: int) -> list[range]:
        """Return the bins of an epoch, in the order in which they are dealt."""
        return cut(max(self.num_samples - 2 * max(epoch - 1, 0), 1), (2,))


@ip.register
@dataclass(frozen=True, eq=False)
class Pieces(Bins):
    """Bins of pieces: of sample s at position p the tokens [p, p + s + 1)."""

    algorithm = "test-pieces-v1"
    traits = Traits(deals_bins=True, cuts_samples=True)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        positions = expand(starts, stops).tolist()
        dealt = zip(positions, self._dealt(epoch, starts, stops), strict=True)
        spans = [(p, p + sample + 1) for p, unit in dealt for sample in unit]
        units = super().deal(epoch, starts, stops)
        return units._replace(spans=np.array(spans, np.int64).reshape(-1, 2))


@ip.register
@dataclass(frozen=True, eq=False)
class Drawn(ip.Order):
    """Single samples, drawn with replacement: some twice, some never, and by a seed."""

    num_samples: int
    seed: int = 0

    algorithm = "test-drawn-v1"
    traits = Traits(reads="any")

    def row(self, epoch: int) -> Int64:
        """Return the samples of an epoch, in the order in which they are dealt."""
        rng = np.random.default_rng([self.seed, epoch])
        return rng.integers(self.num_samples, size=self.num_samples)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = self.row(epoch)[expand(starts, stops)]

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = np.nonzero(indices[:, None] == self.row(epoch))
        return which, positions


def bin_orders(*kinds: type[Bins]) -> st.SearchStrategy[Bins]:
    """Return a strategy for orders of bins."""
    kind = st.sampled_from(kinds or (Bins, ChangingBins))
    return st.builds(lambda kind, n: kind(n), kind, st.integers(1, 150))
