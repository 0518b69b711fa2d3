"""Layers that leave units out of some epochs, and keep the sequence of the others."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from indexplan.once import Latest, once
from indexplan.orders.base import Float64, Int64, Order, Why
from indexplan.orders.cursors import Saved, place_of
from indexplan.orders.extents import GapsExtent
from indexplan.orders.groups import Place
from indexplan.orders.layers import Layer, Run
from indexplan.orders.units import expand

KEPT = 2  # epochs whose sections are kept: under "carry" a step reads from two
MOST_AIMED = 2**10  # sections whose shares are added up


class Sections(NamedTuple):
    """What an epoch reads: sections of the inner order's positions, one after another.

    Section i has the positions from `starts[i]` on, and is read at [bounds[i], bounds[i + 1]).
    """

    starts: Int64  # (sections,)
    bounds: Int64  # (sections + 1,), from 0 to the number of units that are dealt

    @classmethod
    def without(cls, gaps: Int64, num_units: int) -> Sections:
        """Return the sections between these rising positions of an epoch's units."""
        starts, bounds = np.zeros(len(gaps) + 1, np.int64), np.zeros(len(gaps) + 2, np.int64)
        starts[1:] = gaps + 1
        bounds[1:-1] = gaps - np.arange(len(gaps))
        bounds[-1] = num_units - len(gaps)
        return cls(starts, bounds)

    def runs(self, lows: Int64, highs: Int64) -> tuple[Int64, Int64]:
        """Return the positions inside of some runs, as runs."""
        if len(lows) == 1 and lows[0] < highs[0]:  # mostly in one section
            which = self.bounds.searchsorted(lows[0], "right") - 1
            if highs[0] <= self.bounds[which + 1]:
                shift = self.starts[which] - self.bounds[which]
                return lows + shift, highs + shift
        some = highs > lows
        if not some.all():
            lows, highs = lows[some], highs[some]
        first = self.bounds.searchsorted(lows, "right") - 1
        last = self.bounds.searchsorted(highs, "left") - 1
        shift = self.starts[first] - self.bounds[first]
        if (first == last).all():
            return lows + shift, highs + shift
        which, sizes = expand(first, last + 1), last - first + 1
        shift = self.starts[which] - self.bounds[which]
        begins = np.maximum(np.repeat(lows, sizes), self.bounds[which])
        ends = np.minimum(np.repeat(highs, sizes), self.bounds[which + 1])
        return begins + shift, ends + shift

    def inside(self, position: int) -> int:
        """Return the inner position of the unit that is read at a position."""
        which = int(self.bounds.searchsorted(position, "right")) - 1
        return int(self.starts[which] - self.bounds[which]) + position

    def dealt(self, positions: Int64) -> Int64:
        """Return where these inner positions are read; -1 where they are left out."""
        which = self.starts.searchsorted(positions, "right") - 1
        found = self.bounds[which] + positions - self.starts[which]
        left_out = (which < 0) | (found >= self.bounds[which + 1])
        return np.where(left_out, -1, found)


class Gaps(Layer):
    """A layer that leaves units out: the base of `Without`.

    A subclass writes `_sections_of`, and returns from `_gaps` how long epochs and sub-epochs then
    are, which the partition asks for.
    """

    _keeps_numbers = True

    @once
    def _is_json(self) -> bool:
        return self.order._is_json  # noqa: SLF001 (of an order too)

    @abc.abstractmethod
    def _sections_of(self, epoch: int) -> Sections | None:
        """Return what an epoch reads; None if that is the same as inside."""

    @property
    @abc.abstractmethod
    def _gaps(self) -> GapsExtent:
        """How long epochs and sub-epochs are without what this layer leaves out."""

    @property
    @abc.abstractmethod
    def _since(self) -> list[tuple[int, int]]:
        """Where each change that this layer makes starts: epoch and position."""

    @abc.abstractmethod
    def _num_had(self, saved: Mapping[str, Any]) -> int:
        """Return how many of these changes a saved order of this class had."""

    def _before(self, saved: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
        """Yield how many of these changes a saved order may have had, and around what order."""
        if saved.get("algorithm") == self.algorithm and (num := self._num_had(saved)):
            yield num, saved.get("order")
        yield 0, saved

    def _apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        """Return which change began before a place, or why the inner order differs before it."""
        whys = [self._apart_after(num, each, epoch, position) for num, each in self._before(saved)]
        return None if None in whys else whys[0]

    def _apart_after(self, num: int, inside: Any, epoch: int, position: int) -> Why | None:
        """Return the same of a saved order that had the first `num` changes, around one inside."""
        at = min(self._since[num:], default=(epoch, position))
        if (epoch, position) > at:
            rule = f"at or before epoch {at[0]}, position {at[1]}, since which units are left out"
            cure = "use an earlier cursor, or one of this plan, or leave out only what follows it"
            return rule, f"epoch {epoch}, position {position}", cure
        return self._apart_inside(inside, epoch, position)

    def _with_past(self, saved: Mapping[str, Any], epoch: int, position: int) -> Order | None:
        if self.continues(saved, epoch, position):
            return self
        found = (
            self._with_inner_past(inside, saved, epoch, position)
            for _, inside in self._before(saved)
        )
        return next((each for each in found if each is not None), None)

    def with_phase(
        self,
        place: Saved,
        weights: Mapping[str, Any],
        *,
        sources: Mapping[str, Order] | Sequence[tuple[str, Order]] | None = None,
        planned: str | None = None,
    ) -> Gaps:
        """Return this order with other weights, or more sources, for its mixture from a cursor on.

        Parameters
        ----------
        place : Cursor
            Where the weights begin: a cursor of a plan with this order.
        weights, sources, planned
            As for `Mixture.with_phase`.

        Raises
        ------
        IndexPlanError
            If the inner order is not a mixture, or as `Mixture.with_phase` does.

        Examples
        --------
        >>> import indexplan as ip
        >>> mixture = ip.Mixture({"web": ip.Shuffle(700, seed=1)}, {"web": 1})
        >>> plan = ip.Plan(ip.Without(mixture, [8, 3]), world_size=2, batch_size=5)
        >>> cursor, new = plan.cursor(epoch=0, step=4), {"books": ip.Shuffle(300, seed=3)}
        >>> order = plan.order.with_phase(cursor, {"web": 2, "books": 1}, sources=new)
        >>> order.num_samples, plan.replace(order=order).resume(cursor).steps(epoch=0)
        (1000, range(4, 70))
        """
        where = place_of(self, place, "place")
        return self._with_phase(where, weights, sources=sources, planned=planned)

    def _with_phase(self, where: tuple[int, int], weights: Any, **options: Any) -> Gaps:
        inside = self.reach(*where)
        changed = self.order._with_phase(inside, weights, **options)  # noqa: SLF001 (of an order)
        return self._around(changed)

    @property
    def _same_reads(self) -> bool:
        return self.order._same_reads  # noqa: SLF001 (of an order too)

    def _sections(self, epoch: int) -> Sections | None:
        """Return what `_sections_of` does, and keep it for the latest epochs."""
        return self._kept.get_or_make(epoch, self._sections_of)

    @once
    def _kept(self) -> Latest[int, Sections | None]:
        return Latest(KEPT)

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in the epoch."""
        sections = self._sections(epoch)
        return self.order.num_units(epoch) if sections is None else int(sections.bounds[-1])

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> list[Run]:
        """Return the sections of some runs."""
        sections = self._sections(epoch)
        return [
            (epoch, starts, stops) if sections is None else (epoch, *sections.runs(starts, stops))
        ]

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner place after the last unit that was read."""
        sections = self._sections(epoch) if position else None
        if sections is None:
            return epoch, position
        return epoch, sections.inside(min(position, int(sections.bounds[-1])) - 1) + 1

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share inside, over the sections, or over their whole span if many."""
        sections = self._sections(epoch)
        if sections is None:
            return self.order.aim(epoch, start, stop)
        lows, highs = sections.runs(np.array([start]), np.array([stop]))
        if len(lows) > MOST_AIMED:  # small gaps in a long interval
            return self.order.aim(epoch, int(lows.min()), int(highs.max()))
        return self._mean_shares(
            (1, epoch, low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        )

    @property
    def _counts_groups(self) -> bool:
        return self.order._counts_groups  # noqa: SLF001 (of an order too)

    def _read_between(self, start: Place, stop: Place) -> tuple[Int64, Float64]:
        """Return what the sections read: one count for each, so a thousand of them take 0.1 s."""
        if not self._counts_groups:
            return super()._read_between(start, stop)
        num = len(self.group_names)
        read, wanted = np.zeros(num, np.int64), np.zeros(num)
        for epoch in range(start[0], stop[0] + 1):
            low = start[1] if epoch == start[0] else 0
            high = stop[1] if epoch == stop[0] else self.num_units(epoch)
            for inner, lows, highs in self.inside(epoch, np.array([low]), np.array([high])):
                for begin, end in zip(lows.tolist(), highs.tolist(), strict=True):
                    some = self.order._read_between((inner, begin), (inner, end))  # noqa: SLF001
                    read, wanted = read + some[0], wanted + some[1]
        return read, wanted

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        # the first reads of a sample that is read often may be left out
        which, positions = self.order.find(epoch, indices, None if self._repeats else most)
        positions = self._dealt(epoch, indices[which], positions)
        read = positions >= 0
        return (which, positions) if read.all() else (which[read], positions[read])

    def _dealt(self, epoch: int, samples: Int64, positions: Int64) -> Int64:
        """Return where samples at inner positions are read; -1 where they are left out."""
        sections = self._sections(epoch)
        return positions if sections is None else sections.dealt(positions)

    @abc.abstractmethod
    def _why(self, epoch: int, index: int, position: int) -> str:
        """Return why a sample's unit at an inner position is left out, in words."""

    def _told(self, epoch: int, index: int) -> list[tuple[int, str]]:
        inside = self.order._told(epoch, index)  # noqa: SLF001 (of an order too)
        read = np.array([position for position, why in inside if not why], np.int64)
        dealt = self._dealt(epoch, np.full_like(read, index), read).tolist()
        return [
            *(
                (now, "" if now >= 0 else self._why(epoch, index, at))
                for at, now in zip(read.tolist(), dealt, strict=True)
            ),
            *(each for each in inside if each[1]),
        ]

    @property
    def _repeats(self) -> bool:
        return self.order.traits.reads == "any"
