"""Groups of samples, such as classes or sources, whose shares an order controls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.errors import IndexPlanError, counted, integer, invalid
from indexplan.orders.arguments import check_indices
from indexplan.seeds import check_epoch

if TYPE_CHECKING:
    from indexplan.orders.units import Units

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
Place = tuple[int, int]  # an epoch, and a position in it

NAMED = "written, as the order names groups"
BLOCK, BINS = 2**20, 2**12  # units drawn at a time; fewer if they are bins, of many samples each


class HasGroups:
    """The part of an order that handles groups: their names, their members and their shares."""

    algorithm: str
    num_samples: int

    if TYPE_CHECKING:  # what an order has besides

        @property
        def deals_bins(self) -> bool: ...

        def num_units(self, epoch: int) -> int: ...

        def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units: ...

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the groups whose shares the order controls, such as classes; or ()."""
        return ()

    @property
    def shares_of(self) -> str:
        """What `group_shares` counts: "samples", or "units" if the order's weights count units.

        Examples
        --------
        >>> import indexplan as ip
        >>> sources = {"a": ip.Shuffle(10), "b": ip.Shuffle(20)}
        >>> bins = {name: ip.TokenBudget([5] * 20, 20, seed=i) for i, name in enumerate(sources)}
        >>> [ip.Mixture(each, {"a": 1, "b": 1}).shares_of for each in (sources, bins)]
        ['samples', 'units']
        """
        return "samples"

    def group(self, indices: Int64) -> Int64:
        """Return the group of each valid index, flat; -1 if it has none. A hook."""
        raise unwritten(self, "group", NAMED)

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share of a valid, non-empty interval of positions. A hook.

        float64, shape (groups,): fractions that sum to 1.
        """
        raise unwritten(self, "aim", NAMED)

    def _groups_read(self, epoch: int, start: int, stop: int) -> Int64:
        """Return the group of each sample in a valid interval; -1 if it has none.

        If `shares_of` is "units", return the group of each unit. An order that knows the groups
        without drawing the samples may override this.
        """
        units = self.deal(epoch, np.array([start]), np.array([stop]))
        if self.shares_of == "samples":
            return self.group(units.samples)
        groups, offsets = np.full(stop - start, -1), units.offsets
        filled = units.sizes > 0
        groups[filled] = self.group(units.samples[offsets[:-1][filled]])
        return groups

    @property
    def ip_group_sizes(self) -> Int64 | None:
        """How many of what `shares_of` counts an epoch of each group has; None if unknown."""
        return None

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64] | None:
        """Return how much of each group is read between two places, and how much its share is.

        int64 and float64, shape (groups,). The places are valid, the second not before the first.
        None if the units would have to be drawn to tell, as `ip_drawn` does.
        """
        return None

    def ip_drawn(self, start: Place, stop: Place) -> tuple[Int64, Float64]:
        """Return the same by drawing the units between the places."""
        num = len(self.group_names)
        read, wanted = np.zeros(num, np.int64), np.zeros(num)
        block = BINS if self.deals_bins else BLOCK
        for epoch in range(start[0], stop[0] + 1):
            low = start[1] if epoch == start[0] else 0
            high = stop[1] if epoch == stop[0] else self.num_units(epoch)
            for begin in range(low, high, block):
                until = min(begin + block, high)
                groups = self._groups_read(epoch, begin, until)
                read += np.bincount(groups[groups >= 0], minlength=num)
                wanted += self.aim(epoch, begin, until) * len(groups)
        return read, wanted

    @property
    def _no_groups(self) -> IndexPlanError:
        cure = "ask an order whose group_names are not empty"
        return invalid("an order", "one with groups, such as a Mixture", self.algorithm, cure)

    def group_of(self, indices: ArrayLike) -> Int64:
        """Return the group of each of some samples, such as its source in a `Mixture`.

        Parameters
        ----------
        indices : array_like of int
            Samples, 0 <= index < num_samples.

        Returns
        -------
        numpy.ndarray
            int64, the shape of `indices`: the number of the sample's group in `group_names`; -1 if
            the sample has none.

        Raises
        ------
        IndexPlanError
            If the order has no groups, or an index is out of range.
        """
        if not self.group_names:
            raise self._no_groups
        array = check_indices(indices, self.num_samples)
        return self.group(array.ravel()).reshape(array.shape)

    def group_shares(self, epoch: int, start: int, stop: int) -> Float64:
        """Return the share of each group that the order aims at over some positions of an epoch.

        Parameters
        ----------
        epoch : int
            0 <= epoch < 2**32.
        start, stop : int
            The positions [start, stop), at least one.

        Returns
        -------
        numpy.ndarray
            float64, shape (groups,): fractions of the samples, or of the units if `shares_of` is
            "units"; they sum to 1.

        Raises
        ------
        IndexPlanError
            If the order has no groups, the epoch is out of range, or the interval is empty or
            leaves [0, num_units).
        """
        epoch = check_epoch(epoch)
        if not self.group_names:
            raise self._no_groups
        num_units = self.num_units(epoch)
        cure = f"name some of the epoch's {counted(num_units, 'unit')}"
        start = integer("start", start, 0, num_units, cure)
        stop = integer("stop", stop, start + 1, num_units + 1, cure)
        return self.aim(epoch, start, stop)


def unwritten(order: object, hook: str, rule: str) -> IndexPlanError:
    """Return the error that a class of orders lacks a hook."""
    return invalid(f"{hook} of {type(order).__name__}", rule, None, "see docs/orders.md")
