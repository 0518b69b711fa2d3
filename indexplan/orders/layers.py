"""What orders around one other order have in common: a layer maps its runs to that order's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from indexplan.errors import wrong
from indexplan.orders.base import DEEPEST, Draws, Float64, Int64, Order, check_saved
from indexplan.orders.columns import Column


class Layer(Order):
    """An order around the order in its field `order`, whose samples and seed it shares."""

    order: Order

    def _look_inside(self) -> None:
        """Check the order inside, and take over its `num_samples`."""
        if not isinstance(self.order, Order):
            raise wrong("order", "an Order", self.order, "pass indexplan.Shuffle(len(dataset))")
        object.__setattr__(self, "num_samples", self.order.num_samples)
        nest(self, [self.order])

    @property
    def stream_key(self) -> int:
        """The `stream_key` of the order inside."""
        return self.order.stream_key

    @property
    def _draws(self) -> Draws:
        """What the order inside draws."""
        return self.order._draws  # noqa: SLF001 (of an order too)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The `group_names` of the order inside."""
        return self.order.group_names

    @property
    def shares_of(self) -> str:
        """The `shares_of` of the order inside."""
        return self.order.shares_of

    @property
    def shard_sizes(self) -> Column | None:
        """Samples in each shard, if the order inside knows of shards; else None."""
        return self.order.shard_sizes

    def _group_of(self, indices: Int64) -> Int64:
        return self.order._group_of(indices)  # noqa: SLF001 (of an order too)

    def _group_shares(self, epoch: int, start: int, stop: int) -> Float64:
        return self.order._group_shares(epoch, start, stop)  # noqa: SLF001

    def _mean_shares(self, pieces: Iterable[tuple[int, int, int, int]]) -> Float64:
        """Return each group's share over intervals inside: (times read, epoch, start, stop)."""
        total, units = np.zeros(len(self.group_names)), 0
        for times, epoch, start, stop in pieces:
            if num := times * (stop - start):
                total += num * self.order._group_shares(epoch, start, stop)  # noqa: SLF001
                units += num
        return total / units

    def _read_until(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the epoch and position inside before which all that was read so far lies."""
        return epoch, position

    def continues(self, saved: Mapping[str, Any], epoch: int, position: int) -> bool:
        """Return whether a run that was saved under the order `saved` may continue with this one.

        It may if the layers are equal, and the order inside may continue where its reads ended.

        Parameters
        ----------
        saved : mapping
            The dict form of the order that the run was saved under.
        epoch, position : int
            The first epoch and position that are left to read, each from 0 to 2**63 - 1.

        Raises
        ------
        IndexPlanError
            If `saved` is not a mapping, or a number is not an integer in that range.
        """
        check_saved(saved, epoch, position)
        mine, inside = self.to_dict(), saved.get("order")
        if saved == mine or not isinstance(inside, Mapping):
            return saved == mine
        same = {**saved, "order": None} == {**mine, "order": None}
        return same and self.order.continues(inside, *self._read_until(epoch, position))


def nest(order: Order, inside: Sequence[Order]) -> None:
    """Note how deeply orders are nested, and raise if that is deeper than plans in JSON may be."""
    depths = [getattr(each, "_depth", 1) for each in inside]
    depth = max(getattr(order, "_depth", 1), 1 + max(depths))
    if depth > DEEPEST:
        rule = f"inside at most {DEEPEST - 1} others"
        deepest = inside[depths.index(max(depths))]
        raise wrong("an order", rule, deepest.algorithm, "nest them less")
    object.__setattr__(order, "_depth", depth)


def sorted_reads(samples: Int64, positions: Int64, count: int) -> tuple[Int64, Int64]:
    """Return reads as `locate_all` does: the positions sorted by sample, and offsets.

    Parameters
    ----------
    samples, positions : numpy.ndarray
        int64, shape (reads,): which of the requested samples is read, and where; in any order.
    count : int
        Samples that were requested.
    """
    ends = np.cumsum(np.bincount(samples, minlength=count))
    by_sample = np.lexsort((positions, samples))
    return positions[by_sample], np.concatenate([np.zeros(1, np.int64), ends]).astype(np.int64)
