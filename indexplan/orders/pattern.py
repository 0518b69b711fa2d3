"""The source and unit that are read at each place of one phase of weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.orders.base import Int64
from indexplan.orders.shuffle import UInt32

Int32 = NDArray[np.int32]
BLOCK = 2**16  # slots of a block, or a period if that has more


class Pattern:
    """The slots of a phase, in blocks that have the same tree and different coins.

    Parameters
    ----------
    shares : tuple of int
        Units of each source in a period.
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
        self._shares = each * max(1, BLOCK // sum(shares))
        leaves = each.argsort(kind="stable")[shares.count(0) :]
        self._nodes = np.empty((len(leaves) - 1, kernels.tree.COLUMNS), np.int64)
        self._ups = np.empty(len(leaves) - 1 + len(each), np.int64)
        self._top = 0 if len(leaves) > 1 else ~int(leaves[0])
        self.reach: int = kernels.tree.plant(self._shares, leaves, self._nodes, self._ups)

    def count(self, base: Int64, place: int) -> Int64:
        """Return how many units of each source come before a place, and `base`; int64 (k,)."""
        out: Int64 = base.copy()
        kernels.mixture.count_before(
            place, self._phase, self._key, self._shares, self._nodes, self._top, out
        )
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
        tree = self._shares, self._nodes, self._top
        kernels.mixture.deal(
            shift, self._phase, self._key, base, *tree, starts, stops, sources, numbers
        )

    def find(self, source: int, base: int, numbers: Int64) -> Int64:
        """Return the places of some units of a source, which has `base` units before the phase."""
        out = np.empty(len(numbers), np.int64)
        tree = self._shares, self._nodes, self._ups
        kernels.mixture.find(self._phase, self._key, source, base, *tree, numbers, out)
        return out
