"""Global batches of one group each: batched-v1 makes bins of them, flat-v1 hands out their samples.

A mixture of orders inside `Batched` draws a source for each bin; `Flat` around it deals the bins'
samples, so that ranks can share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from indexplan.errors import IndexPlanError, invalid
from indexplan.once import latest, once
from indexplan.orders.base import Float64, Int64, Order
from indexplan.orders.fields import whole
from indexplan.orders.groups import Place
from indexplan.orders.layers import Layer
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand
from indexplan.seeds import check_epoch

AT_ONCE = 2**20  # samples of bins that are dealt at a time, where only some are asked for


@register
@dataclass(frozen=True, eq=False)
class Batched(Layer):
    """Reads another order in bins of a fixed number of successive samples.

    For global batches of one source: put a `Mixture` of these inside `Flat`.

    Parameters
    ----------
    order : Order
        The order to read, of single samples; all epochs have a multiple of `size` samples.
    size : int
        Samples in a bin, 1 <= size < 2**31.

    Raises
    ------
    IndexPlanError
        If size is out of range, or the inner order deals bins, has copies of `Repeat`, or epochs
        that no whole number of bins fills.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.Batched(ip.Sequential(6), 3)
    >>> order.take(0, 1, 2), order.num_units(0)
    (array([3, 4, 5]), 2)
    """

    order: Order
    size: int = field(metadata=whole(1, 2**31, "pass how many samples a bin has"))

    algorithm = "batched-v1"
    _keeps_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        inner = self.order
        if inner.deals_bins or not inner.constant_num_units or inner.ip_num_copies > 1:
            rule = "needs an order of single samples, equally many in every epoch, without copies"
            cure = "put Repeat around Batched, leave samples out by Subset, or leave Batched out"
            raise IndexPlanError("Batched", rule, inner.algorithm, cure)
        num = inner.num_units(0)
        if num % self.size:
            rule = f"a multiple of {self.size} samples"
            cure = f"pass Epochs(order, {max(num - num % self.size, self.size)})"
            raise invalid("an epoch inside Batched", rule, num, cure)

    @property
    def traits(self) -> Traits:
        """The inner order's, but units are bins."""
        return replace(self.order.traits, deals_bins=True)

    @property
    def ip_bin_size(self) -> int:
        return self.size

    def num_units(self, epoch: int) -> int:
        """Return the number of bins."""
        return self.order.num_units(epoch) // self.size

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> list[tuple[int, Int64, Int64]]:
        """Return the runs of the samples that are in some runs of bins."""
        return [(epoch, starts * self.size, stops * self.size)]

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner position at which a bin starts."""
        return epoch, position * self.size

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        samples = self.order.ip_take(epoch, starts * self.size, stops * self.size)
        return Units(samples, np.full(len(samples) // self.size, self.size))

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        return np.arange(int((stops - starts).sum()) + 1) * self.size

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64] | None:
        return self.order.ip_counted(self.reach(*start), self.reach(*stop))

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, positions = self.order.find(epoch, indices, most)
        return which, positions // self.size

    def tally(self, epoch: int, indices: Int64) -> Int64:
        return self.order.tally(epoch, indices)


@register
@dataclass(frozen=True, eq=False)
class Flat(Layer):
    """Hands out the samples of equal bins as single units, so that a bin is a global batch.

    With `Grouped(groups, batch_size=G)` inside, all ranks read samples of one group in each step;
    with a `Mixture` of `Batched` orders of G samples, of one source. `LengthGrouped` and
    `ClassBatches` can be inside too. The plan's global batch must have G units, or a divisor of
    that.

    Parameters
    ----------
    order : Order
        An order of bins that have equally many samples. If a group's samples do not fill its last
        bin, an epoch leaves out that bin, and each epoch leaves out different samples.

    Raises
    ------
    IndexPlanError
        If the inner order's bins may differ in size, or none is full.

    Notes
    -----
    Position p is sample p % G of the inner order's full bin p // G. Reading part of
    a bin takes as long as reading the whole bin.

    Examples
    --------
    >>> import indexplan as ip
    >>> tasks = {"en": ip.Shuffle(40, seed=1), "de": ip.Shuffle(20, seed=2)}
    >>> batches = {name: ip.Batched(order, 10) for name, order in tasks.items()}
    >>> order = ip.Flat(ip.Mixture(batches, {"en": 2, "de": 1}))
    >>> plan = ip.Plan(order, world_size=2, batch_size=5)
    >>> for step in range(3):
    ...     batch = [plan.batch(epoch=0, step=step, rank=rank) for rank in (0, 1)]
    ...     print([order.group_of(part).tolist() for part in batch])
    [[1, 1, 1, 1, 1], [1, 1, 1, 1, 1]]
    [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]
    """

    order: Order

    algorithm = "flat-v1"
    _keeps_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.order.ip_bin_size is None:
            rule = "needs an order whose bins have equally many samples"
            cure = "pass Batched(order, size), Grouped with one batch_size, or a Mixture of these"
            raise IndexPlanError("Flat", rule, self.order.algorithm, cure)

    @once
    def _size(self) -> int:
        """The samples in a bin."""
        return self.order.ip_bin_size or 1

    @property
    def traits(self) -> Traits:
        """The inner order's, but units are samples, of which short bins leave out some."""
        inner = self.order.traits
        left_out = inner.reads == "once" and len(self._short(0)) > 0
        reads = "at most once" if left_out else inner.reads
        return replace(inner, deals_bins=False, reads=reads)

    @property
    def ip_global_batch(self) -> int:
        return self._size

    @property
    def ip_bin_size(self) -> None:
        return None

    @latest(4)
    def _short(self, epoch: int) -> Int64:
        """Return the positions of the bins inside that are not full, rising."""
        return self.order.ip_short_bins(epoch)

    def _bins(self, epoch: int, numbers: Int64) -> Int64:
        """Return the positions inside of full bins, counted from 0."""
        short = self._short(epoch)
        return numbers + np.searchsorted(short - np.arange(len(short)), numbers, "right")

    def num_units(self, epoch: int) -> int:
        """Return the number of samples in full bins."""
        epoch = check_epoch(epoch)
        num = (self.order.num_units(epoch) - len(self._short(epoch))) * self._size
        if not num:
            rule = f"at least one bin of {self._size} samples"
            raise invalid("an epoch inside Flat", rule, "none", "use smaller bins")
        return num

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner position behind the last bin that has begun."""
        bins = np.array([-(-position // self._size) - 1])
        return epoch, int(self._bins(epoch, bins)[0]) + 1 if position else 0

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        size, done = self._size, 0
        some = stops > starts
        firsts, lasts = starts[some] // size, (stops[some] - 1) // size + 1
        offsets = starts[some] - firsts * size
        each = stops[some] - starts[some]
        held = np.cumsum((lasts - firsts) * size)
        if not len(held):
            return
        # runs whose bins have at most so many samples, or a single run
        cuts = [0, *(np.flatnonzero(np.diff(held // AT_ONCE)) + 1).tolist(), len(held)]
        for low, high in pairwise(cuts):
            bins = self._bins(epoch, expand(firsts[low:high], lasts[low:high]))
            dealt = self.order.deal(epoch, bins, bins + 1).samples
            at = held[low:high] - (held[low] - (lasts[low] - firsts[low]) * size)
            at += offsets[low:high] - (lasts[low:high] - firsts[low:high]) * size
            until = done + int(each[low:high].sum())
            out[done:until] = dealt[expand(at, at + each[low:high])]
            done = until

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, bins = self.order.find(epoch, indices, most)
        short = self._short(epoch)
        before = np.searchsorted(short, bins)
        full = short[np.minimum(before, len(short) - 1)] != bins if len(short) else bins >= 0
        pairs = np.unique(np.stack([which, bins - before], axis=1)[full], axis=0)
        found = [np.empty((0, 2), np.int64)]
        step = max(1, AT_ONCE // self._size)
        for start in range(0, len(pairs), step):
            some = pairs[start : start + step]
            inside = self._bins(epoch, some[:, 1])
            samples = self.order.deal(epoch, inside, inside + 1).samples.reshape(len(some), -1)
            pair, slot = np.nonzero(samples == indices[some[:, 0], None])
            found.append(np.stack([some[pair, 0], some[pair, 1] * self._size + slot], axis=1))
        both = np.concatenate(found)
        return both[:, 0], both[:, 1]

    def tally(self, epoch: int, indices: Int64) -> Int64:
        if len(self._short(epoch)):
            return Order.tally(self, epoch, indices)
        return self.order.tally(epoch, indices)

    @property
    def ip_num_copies(self) -> int:
        return self.order.ip_num_copies

    def ip_copies(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if self.ip_num_copies == 1:
            return super().ip_copies(epoch, starts, stops)
        bins = self._bins(epoch, expand(starts, stops) // self._size)
        return self.order.ip_copies(epoch, bins, bins + 1)

    @property
    def shares_of(self) -> str:
        """What is counted: samples."""
        return "samples"

    @property
    def ip_group_sizes(self) -> Int64 | None:
        sizes = self.order.ip_group_sizes
        return None if sizes is None else sizes * self._size

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64] | None:
        if start[1] % self._size or stop[1] % self._size or len(self._short(0)):
            return None
        inside = [(epoch, position // self._size) for epoch, position in (start, stop)]
        counted = self.order.ip_counted(*inside)
        if counted is None or self.order.shares_of == "samples":
            return counted
        return counted[0] * self._size, counted[1] * self._size

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share of the bins that are read, weighted by what is read of each."""
        short, num = self._short(epoch), self.order.num_units(epoch)
        if len(short):  # of groups whose shares are the same everywhere
            left_out = self.group(self.order.deal(epoch, short, short + 1).samples)
            counts = np.bincount(left_out, minlength=len(self.group_names))
            whole = self.order.aim(epoch, 0, num) * self.num_samples - counts
            shares: Float64 = whole / whole.sum()
            return shares
        size = self._size
        first, last = start // size, (stop - 1) // size
        if first == last:
            return self.order.aim(epoch, first, first + 1)
        parts = [(first + 1) * size - start, size, stop - last * size]
        cuts = [first, first + 1, last, last + 1]
        each = zip(parts, cuts, cuts[1:], strict=False)
        return self._mean_shares((times, epoch, low, high) for times, low, high in each)
