"""The source and unit that are read at each place of one phase of weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.orders.base import Int64
from indexplan.orders.shuffle import UInt32

Int32 = NDArray[np.int32]


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
        self.reach: int = kernels.tree.plant(each, leaves, self._nodes, self._ratios, self._ups)

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
