"""Orders that wrap one other order: a layer reads its runs elsewhere, or renames its samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from indexplan.errors import invalid
from indexplan.orders.base import Draws, Float64, Int64, Order, Why
from indexplan.orders.columns import Column
from indexplan.orders.fields import nest
from indexplan.orders.groups import Place
from indexplan.orders.sources import num_sources
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, joined

AT_ONCE = 2**20  # samples that are renamed at a time
Run: TypeAlias = tuple[int, Int64, Int64]  # epoch, starts, stops


class Layer(Order):
    """Wraps the order in its field `order`; the base of `Subset`, `Epochs` and `Repeat`.

    If your layer reads the inner order's units at other positions, write `inside`. If it renames
    samples, write `renamed`. In both cases, write `find`, which undoes this, and `num_units` and
    `traits` where they differ. Everything else comes from the inner order. docs/orders.md has an
    example.

    A run may continue under a layer with equal fields if its inner order may continue. But a layer
    that writes `inside` reads at other positions, so it only continues runs of an equal order,
    unless it writes `reach` too.

    Examples
    --------
    >>> import indexplan as ip
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, eq=False)
    ... class Doubled(ip.Layer):  # of a dataset that holds each sample twice, in two versions
    ...     order: ip.Order
    ...     algorithm = "doubled-v1"
    ...
    ...     def renamed(self, samples):
    ...         return samples * 2
    >>> Doubled(ip.Sequential(5)).take(0, 0, 5)
    array([0, 2, 4, 6, 8])
    """

    order: Order

    _keeps_numbers = False  # of samples, where the order inside gets more: a layer cannot know it

    def __post_init__(self) -> None:
        super().__post_init__()
        self._look_inside()

    def _look_inside(self) -> None:
        """Check the inner order, and take over its `num_samples`."""
        if not isinstance(self.order, Order):
            raise invalid("order", "an Order", self.order, "pass indexplan.Shuffle(len(dataset))")
        vars(self)["num_samples"] = self.order.num_samples
        nest(self, [self.order])

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> Iterable[Run]:
        """Return which runs of the inner order are read at these runs: a hook.

        Parameters
        ----------
        epoch, starts, stops
            As for `Order.fill`.

        Returns
        -------
        iterable of (epoch, starts, stops)
            All units of the given runs, in the sequence of reading; by default, the same runs.
        """
        return [(epoch, starts, stops)]

    def renamed(self, samples: Int64) -> Int64:
        """Return this order's indices of some samples of the inner order: a hook.

        Parameters
        ----------
        samples : numpy.ndarray
            int64, shape (samples,). Do not write to it, because the inner order may keep it.

        Returns
        -------
        numpy.ndarray
            Integers of the same shape; by default `samples`.
        """
        return samples

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner (epoch, position) up to which everything has been read: a hook.

        Parameters
        ----------
        epoch, position : int
            What this order reads next.
        """
        return epoch, position

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Write the samples at some runs of positions to `out`, as `Order.fill` does."""
        runs, done = list(self.inside(epoch, starts, stops)), 0
        for inner, lows, highs in runs:
            until = len(out) if len(runs) == 1 else done + int((highs - lows).sum())
            self.order.fill(inner, lows, highs, out[done:until])
            done = until
        if self._renames:
            out[:] = self.renamed(out)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        """Return the units at some runs of positions, as `Order.deal` does."""
        if not self.traits.deals_bins:
            return super().deal(epoch, starts, stops)
        parts = [self.order.deal(*run) for run in self.inside(epoch, starts, stops)]
        units = joined(parts, cut=self.traits.cuts_samples)
        if not self._renames:
            return units
        return units._replace(samples=np.asarray(self.renamed(units.samples), np.int64))

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        """Return where an epoch reads some samples, as `Order.find` does."""
        if self._moves or self._renames:  # then only the layer knows the way back
            return super().find(epoch, indices, most)
        return self.order.find(epoch, indices, most)

    def tally(self, epoch: int, indices: Int64) -> Int64:
        """Return how often an epoch reads some samples, as `Order.tally` does."""
        if type(self).find is not Layer.find or self._moves or self._renames:
            return super().tally(epoch, indices)
        return self.order.tally(epoch, indices)

    def num_units(self, epoch: int) -> int:
        """Return the inner order's number of units."""
        return self.order.num_units(epoch)

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if not self.traits.deals_bins or type(self).deal is not Layer.deal:
            return super().ip_offsets(epoch, starts, stops)
        runs = self.inside(epoch, starts, stops)
        parts = [self.order.ip_offsets(*run) for run in runs]
        if len(parts) == 1:
            return parts[0]
        return np.cumsum(np.concatenate([np.zeros(1, np.int64), *map(np.diff, parts)]))

    @property
    def ip_num_copies(self) -> int:
        kind = type(self)
        own = (kind.fill, kind.deal) != (Layer.fill, Layer.deal)
        if own and kind.inside is Layer.inside:
            return 1  # nobody knows which units are read
        return self.order.ip_num_copies

    def ip_copies(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if self.ip_num_copies == 1:
            return super().ip_copies(epoch, starts, stops)
        runs = self.inside(epoch, starts, stops)
        parts = [self.order.ip_copies(*run) for run in runs]
        return np.concatenate([np.empty(0, np.int64), *parts])

    @property
    def _moves(self) -> bool:
        """Whether units may be read at positions that differ from those inside."""
        kind = type(self)
        own = (kind.inside, kind.fill, kind.deal, kind.num_units)
        return own != (Layer.inside, Layer.fill, Layer.deal, Layer.num_units)

    @property
    def _renames(self) -> bool:
        """Whether samples may have indices that differ from those inside."""
        return type(self).renamed is not Layer.renamed

    @property
    def traits(self) -> Traits:
        """What the inner order promises."""
        return self.order.traits

    @property
    def stream_key(self) -> int:
        """The inner order's `stream_key`."""
        return self.order.stream_key

    @property
    def ip_draws(self) -> Draws:
        """What the inner order draws."""
        return self.order.ip_draws

    @property
    def ip_global_batch(self) -> int:
        return 1 if self._moves else self.order.ip_global_batch

    @property
    def ip_bin_size(self) -> int | None:
        own = type(self).deal is not Layer.deal or len(self.order.ip_short_bins(0))
        return None if own else self.order.ip_bin_size

    @property
    def ip_gaps(self) -> object | None:
        return None if self._moves else self.order.ip_gaps

    def ip_told(self, epoch: int, index: int) -> list[tuple[int, str]]:
        if self._moves or (self._renames and self.ip_gaps is None):
            return super().ip_told(epoch, index)
        inside = (self.order.ip_told(epoch, number) for number in self._numbers(index))
        return [each for told in inside for each in told]

    def _numbers(self, index: int) -> list[int]:
        """Return what the inner order calls a sample, at units that may be left out too."""
        if not self._renames:
            return [index]
        found: list[int] = []  # only the layer knows the way back, and only to what is read
        for start in range(0, self.order.num_samples, AT_ONCE):
            some = np.arange(start, min(start + AT_ONCE, self.order.num_samples))
            found += some[np.asarray(self.renamed(some)) == index].tolist()
        return found

    @property
    def ip_same_reads(self) -> bool:
        same = not self._moves and self.order.ip_same_reads
        return super().ip_same_reads or same

    @property
    def group_names(self) -> tuple[str, ...]:
        """The inner order's `group_names`."""
        return self.order.group_names

    @property
    def shares_of(self) -> str:
        """The inner order's `shares_of`."""
        return self.order.shares_of

    @property
    def ip_group_sizes(self) -> Int64 | None:
        return None if self._renames else self.order.ip_group_sizes

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64] | None:
        return None if self._moves or self._renames else self.order.ip_counted(start, stop)

    @property
    def shard_sizes(self) -> Column | None:
        """Samples in each shard, if the inner order knows of shards; else None."""
        return self.order.shard_sizes

    def group(self, indices: Int64) -> Int64:
        """Return the group of each sample in the inner order."""
        return super().group(indices) if self._renames else self.order.group(indices)

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share of what is read inside, run by run."""
        runs = self.inside(epoch, np.array([start], np.int64), np.array([stop], np.int64))
        return self._mean_shares(
            (1, inner, low, high)
            for inner, lows, highs in runs
            for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        )

    def _mean_shares(self, intervals: Iterable[tuple[int, int, int, int]]) -> Float64:
        """Return each group's share over intervals inside: (times read, epoch, start, stop)."""
        total, units = np.zeros(len(self.group_names)), 0
        for times, epoch, start, stop in intervals:
            if num := times * (stop - start):
                total += num * self.order.aim(epoch, start, stop)
                units += num
        return total / units

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        """Return why the inner order differs before the place where its reads ended.

        A layer that reads units at other positions must return that place from `reach`.
        """
        mine, inside = self.ip_form, saved.get("order")
        if {**saved, "order": None} != {**mine, "order": None}:
            return ()
        why = self._apart_inside(inside, epoch, position)
        # it may have read units that lie behind the given position inside
        unknown = self._moves and type(self).reach is Layer.reach
        if why is None and not self._keeps_numbers:
            unknown = unknown or num_sources(inside) != num_sources(mine["order"])
        return () if why is None and unknown else why

    def _apart_inside(self, inside: Any, epoch: int, position: int) -> Why | None:
        """Return why the inner order does not continue the saved one's inner order."""
        if not isinstance(inside, Mapping):
            return ()
        if inside == self.order.ip_form:
            return None
        place = self.reach(epoch, position)
        if self.order.continues(inside, *place):
            return None
        return self.order.ip_apart(inside, *place) or ()
