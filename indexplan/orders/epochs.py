"""Epochs whose size differs from the dataset's: epochs-v1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from indexplan.errors import IndexPlanError, invalid
from indexplan.once import once
from indexplan.orders.base import Float64, Int64, Order
from indexplan.orders.fields import whole
from indexplan.orders.groups import Place
from indexplan.orders.layers import Layer, Run
from indexplan.orders.registry import register
from indexplan.orders.streams import count_between, epochs_of, not_too_many, reads_between
from indexplan.orders.traits import Traits
from indexplan.orders.units import expand
from indexplan.seeds import EPOCH_STOP, check_epoch

PLACE_STOP = 2**63


@register
@dataclass(frozen=True, eq=False)
class Epochs(Layer):
    """Reads another order in epochs of any size; each begins where the previous one ended.

    For epochs of 10,000 steps regardless of the dataset's size, or of a tenth of the dataset. No
    sample is repeated before all have been read, if the order inside reads each once an epoch.

    Parameters
    ----------
    order : Order
        The order to read, epoch after epoch. All of its epochs must have the same number of units.
    epoch_size : int
        Units in an epoch, 1 <= epoch_size < 2**63.

    Raises
    ------
    IndexPlanError
        If epoch_size is out of range, the inner order's epochs differ in units, or a single epoch
        is longer than all epochs of the inner order. When an epoch is read, if the epochs up to its
        end have more than 2**63 - 1 units, or it would need epoch 2**32 of the inner order.

    Notes
    -----
    The epochs of the inner order, of n units each, follow one another in a stream. Position p of
    epoch e is unit u = e * epoch_size + p of it, which is position u % n of inner epoch u // n.
    If each of these reads every sample once, the counts of two samples differ by at most 2 over any
    part of the stream, and by at most 1 over a part from its start.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.Epochs(ip.Sequential(5), epoch_size=3)
    >>> [order.take(epoch, 0, 3).tolist() for epoch in range(3)]
    [[0, 1, 2], [3, 4, 0], [1, 2, 3]]
    """

    order: Order
    epoch_size: int = field(metadata=whole(1, PLACE_STOP, "pass how many units an epoch has"))

    algorithm = "epochs-v1"
    _keeps_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.order.constant_num_units:
            rule = "needs an order with the same number of units in every epoch"
            cure = "use that order without Epochs"
            raise IndexPlanError("Epochs", rule, self.order.algorithm, cure)
        if self.epoch_size > (most := self._num_places):
            rule = f"at most {most}, the units of all epochs of its order"
            raise invalid("epoch_size", rule, self.epoch_size, "use a smaller one")

    @once
    def traits(self) -> Traits:
        """The inner order's, but samples may repeat where an epoch spans several inner epochs."""
        inner = self.order.traits
        reads = inner.reads
        if self.epoch_size != self._period:
            once_at_most = self._period % self.epoch_size == 0 and reads != "any"
            reads = "at most once" if once_at_most else "any"
        return replace(inner, reads=reads)

    @once
    def _period(self) -> int:
        return self.order.num_units(0)

    @property
    def _num_places(self) -> int:
        """The length of the stream, in units."""
        return min(PLACE_STOP - 1, EPOCH_STOP * self._period)

    def num_units(self, epoch: int) -> int:
        """Return the epoch size."""
        end = self._begin(check_epoch(epoch)) + self.epoch_size  # raises if there is no such epoch
        self.order.num_units((end - 1) // self._period)  # raises if that cannot be read
        return self.epoch_size

    def _begin(self, epoch: int) -> int:
        """Return the unit of the stream at which an epoch begins; raise if it is past the end."""
        begin = epoch * self.epoch_size
        if begin + self.epoch_size > self._num_places:
            end = self._num_places // self.epoch_size
            rule = f"below {end}, where the stream of its order ends"
            raise invalid("epoch", rule, epoch, "use smaller epochs")
        return begin

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner epoch and position that the stream has reached."""
        return divmod(epoch * self.epoch_size + position, self._period)

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share over the inner epochs that an interval crosses."""
        begin = self._begin(epoch)
        not_too_many(epochs_of(self.order, start + begin, stop + begin))  # as runs are listed
        return super().aim(epoch, start, stop)

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64] | None:
        return self.order.ip_counted(self.reach(*start), self.reach(*stop))

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> Iterator[Run]:
        """Yield the runs in the order inside, one epoch of it after another."""
        n, begin = self._period, self._begin(epoch)
        some = stops > starts
        starts, stops = starts[some] + begin, stops[some] + begin
        first, last = starts // n, (stops - 1) // n
        if not len(first):
            return
        epochs, sizes = expand(first, last + 1), last - first + 1
        low = np.maximum(np.repeat(starts, sizes) - epochs * n, 0)
        high = np.minimum(np.repeat(stops, sizes) - epochs * n, n)
        cuts = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(epochs)]
        for a, b in pairwise(cuts):
            yield int(epochs[a]), low[a:b], high[a:b]

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        begin = self._begin(epoch)
        which, units = reads_between(self.order, begin, begin + self.epoch_size, indices, most)
        return which, units - begin

    def tally(self, epoch: int, indices: Int64) -> Int64:
        begin = self._begin(epoch)
        return count_between(self.order, begin, begin + self.epoch_size, indices)
