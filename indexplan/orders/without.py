"""An order without some samples from a place of the run on: without-v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from indexplan.errors import integer, invalid
from indexplan.once import once
from indexplan.orders.arguments import place_of
from indexplan.orders.base import Float64, Int64, Order, Why
from indexplan.orders.columns import INTEGERS, Column, Kept
from indexplan.orders.extents import GapsExtent
from indexplan.orders.fields import nested, one_of
from indexplan.orders.groups import Place
from indexplan.orders.layers import Layer, Run
from indexplan.orders.left_out import LeftOut, among, nothing_left
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand
from indexplan.seeds import EPOCH_STOP

CUTS = ("piece", "unit")
LOOKED_AT = 64  # units in which one is sought that stays
MOST_AIMED = 2**10  # sections whose shares are added up


@register
@dataclass(frozen=True, eq=False)
class Without(Layer):
    """Stops reading some samples at a place of the run; all others keep their sequence.

    For samples that a run may no longer read: opt-outs, poisoned files, unlearning. Everything that
    was read before that place stays as it was, so you can resume a run with it from its checkpoint.
    You couldn't with `Subset`, because it changes the whole shuffle.

    Parameters
    ----------
    order : Order
        The order to read. If it is a `Without` too, the new one also excludes its samples.
    samples : Column, array_like of int, or path
        The samples to exclude, each once.
    since : Cursor, optional
        Where they stop being read: a cursor of a plan with `order`, not before the cursor of
        samples that were excluded earlier. By default, the start of the run.
    cut : {"piece", "unit"}, default "piece"
        What happens in bins. "piece": only the sample is removed from its bin, or its parts from
        their windows, which get shorter. "unit": the whole unit is not read. A bin that becomes
        empty is not read either.

    Raises
    ------
    IndexPlanError
        If a sample is outside the dataset, given twice or already excluded; if none or all are
        given; if `since` is not a cursor of that order, or is before an earlier one; if `cut`
        differs from that of samples excluded earlier; or if the order is of windows of tokens,
        whose samples are first tokens.

    Notes
    -----
    The sorted positions of the excluded samples in an epoch are its gaps. Position p is inner
    position p + (number of gaps at or before that). Sub-epochs have the same units as inside,
    except those left out. Each further `Without` around it takes time in proportion to all samples
    that are excluded by then, so exclude many at once.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.Shuffle(10, seed=3)
    >>> order.take(0, 0, 10)
    array([6, 8, 2, 9, 5, 3, 0, 1, 7, 4])
    >>> cursor = ip.Plan(order, world_size=1, batch_size=4).cursor(epoch=0, step=1)
    >>> ip.Without(order, [8, 3, 7], since=cursor).take(0, 0, 8)
    array([6, 8, 2, 9, 5, 0, 1, 4])
    """

    order: Order
    samples: Kept
    since: Any = ()  # a cursor, of which it keeps groups: epoch, position and number of samples
    cut: str = field(default="piece", metadata=one_of(CUTS, "leave it out for piece"))

    algorithm = "without-v1"
    _plain = ("since",)
    _keeps_numbers = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in (self.order, *(inside for inside, _ in nested(self.order))):
            if each.algorithm == "token-windows-v1":
                rule = "one whose samples are what it reads; TokenWindows names first tokens"
                raise invalid("order", rule, each.algorithm, "read documents in DocumentWindows")
        samples = Column.of(self.samples, INTEGERS, "samples")
        if isinstance(self.since, list | tuple) and self.since:  # as they are kept, and in JSON
            self._check_kept(samples, self.since)
        else:
            self._add(samples, None if isinstance(self.since, list | tuple) else self.since)
        self._check_left()

    def _add(self, samples: Column, since: Any) -> None:
        """Add a group of samples to those that the inner order leaves out, if it leaves out any."""
        order = self.order
        place = (0, 0) if since is None else place_of(order, since, "since")
        own = np.sort(samples.array.astype(np.int64))
        samples.check_file()
        _check_samples(own, order.num_samples)
        if isinstance(order, Without):  # in a chain, each group of samples costs its own part only
            if order.cut != self.cut:
                rule = f"{order.cut}, that of the samples that were excluded earlier"
                raise invalid("cut", rule, self.cut, "pass the same")
            if place < (last := order.since[-1][:2]):
                rule = f"at or past epoch {last[0]}, position {last[1]}, that of earlier samples"
                got = f"epoch {place[0]}, position {place[1]}"
                raise invalid(
                    "since", rule, got, "exclude the samples in the order of their places"
                )
            again = own[among(order.left_out.rising, own)]
            if len(again):
                cure = "leave it out, np.setdiff1d(samples, order.samples.array)"
                raise invalid("samples", "not excluded already", int(again[0]), cure)
            left_out = order.left_out.with_group(place, own)
        else:
            group, whole = (*place, len(own)), self.cut == "unit"
            left_out = LeftOut(order, (group,), Column(own), whole)
        kept = {"order": left_out.order, "since": left_out.since, "samples": left_out.samples}
        vars(self).update(kept, left_out=left_out, _depth=1)
        self._look_inside()

    @once
    def left_out(self) -> LeftOut:
        """What each epoch leaves out, for the layer and its extent."""
        return LeftOut(self.order, self.since, self.samples, self.cut == "unit")

    def _check_kept(self, samples: Column, since: Any) -> None:
        """Check the groups of samples that `since` counts, each (epoch, position, count)."""
        cure = "write specs with to_json"
        if isinstance(self.order, Without):
            raise invalid("order", "the one inside all exclusions", self.order.algorithm, cure)
        groups, total = [], 0
        for group in since:
            if not isinstance(group, list | tuple) or len(group) != 3:
                raise invalid("a group in since", "epoch, position and count", group, cure)
            epoch = integer("since's epoch", group[0], 0, EPOCH_STOP, cure)
            position = integer("since's position", group[1], 0, 2**63, cure)
            count = integer("since's count", group[2], 1, len(samples) - total + 1, cure)
            groups.append((epoch, position, count))
            _check_samples(samples.array[total : total + count], self.num_samples)
            total += count
        if groups != sorted(groups, key=lambda group: group[:2]):
            raise invalid("since", "rising from group to group", since, cure)
        rising = np.sort(samples.array)
        if total != len(samples) or (rising[1:] == rising[:-1]).any():
            rule = f"{total} different ones, as many as since counts"
            raise invalid("samples", rule, len(samples), cure)
        vars(self).update(since=tuple(groups), samples=samples)

    def _check_left(self) -> None:
        """Raise `IndexPlanError` if an epoch would have nothing left."""
        if len(self.samples) == self.num_samples:
            raise nothing_left(len(self.samples))
        if self.left_out.is_closed:
            return
        epoch = min(self.since[-1][0] + 1, EPOCH_STOP - 1)
        first = np.zeros(1, np.int64)
        units = self.order.deal(epoch, first, np.minimum(self.order.num_units(epoch), [LOOKED_AT]))
        gone = np.append(0, np.cumsum(among(self.left_out.rising, units.samples)))[units.offsets]
        num_gone = np.diff(gone)
        stays = num_gone == 0 if self.cut == "unit" else num_gone < np.maximum(units.sizes, 1)
        if not stays.any():
            self.num_units(epoch)

    @once
    def traits(self) -> Traits:
        """The inner order's, but samples may be left out, so that epochs differ in units."""
        inner = self.order.traits
        reads = "at most once" if inner.reads == "once" else inner.reads
        return replace(inner, reads=reads, constant_num_units=False)

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in the epoch."""
        return self.left_out.num_units(epoch)

    def inside(self, epoch: int, starts: Int64, stops: Int64) -> list[Run]:
        """Return the sections of some runs."""
        sections = self.left_out.sections(epoch)
        return [
            (epoch, starts, stops) if sections is None else (epoch, *sections.runs(starts, stops))
        ]

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return the inner place after the last unit that was read."""
        sections = self.left_out.sections(epoch) if position else None
        if sections is None:
            return epoch, position
        return epoch, sections.inside(min(position, int(sections.bounds[-1])) - 1) + 1

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return each group's share inside, over the sections, or over their whole span if many."""
        sections = self.left_out.sections(epoch)
        if sections is None:
            return self.order.aim(epoch, start, stop)
        lows, highs = sections.runs(np.array([start]), np.array([stop]))
        if len(lows) > MOST_AIMED:  # small gaps in a long interval
            return self.order.aim(epoch, int(lows.min()), int(highs.max()))
        return self._mean_shares(
            (1, epoch, low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)
        )

    def ip_counted(self, start: Place, stop: Place) -> tuple[Int64, Float64] | None:
        """Return what the sections read: one count for each, so a thousand of them take 0.1 s."""
        if (nothing := self.order.ip_counted((0, 0), (0, 0))) is None:
            return None
        read, wanted = nothing
        for epoch in range(start[0], stop[0] + 1):
            low = start[1] if epoch == start[0] else 0
            high = stop[1] if epoch == stop[0] else self.num_units(epoch)
            for inner, lows, highs in self.inside(epoch, np.array([low]), np.array([high])):
                for begin, end in zip(lows.tolist(), highs.tolist(), strict=True):
                    some = self.order.ip_counted((inner, begin), (inner, end)) or nothing
                    read, wanted = read + some[0], wanted + some[1]
        return read, wanted

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        # the first reads of a sample that is read often may be left out
        most = None if self.order.traits.reads == "any" else most
        which, positions = self.order.find(epoch, indices, most)
        positions = self._dealt(epoch, indices[which], positions)
        read = positions >= 0
        return (which, positions) if read.all() else (which[read], positions[read])

    def _dealt(self, epoch: int, samples: Int64, positions: Int64) -> Int64:
        """Return where samples at inner positions are read; -1 where they are left out."""
        sections = self.left_out.sections(epoch)
        dealt = positions if sections is None else sections.dealt(positions)
        if not self.left_out.shortens or epoch < self.since[0][0]:
            return dealt
        return np.where(self.left_out.gone(epoch, samples, positions), -1, dealt)

    def ip_told(self, epoch: int, index: int) -> list[tuple[int, str]]:
        inside = self.order.ip_told(epoch, index)
        read = np.array([position for position, why in inside if not why], np.int64)
        dealt = self._dealt(epoch, np.full_like(read, index), read).tolist()
        return [
            *(
                (now, "" if now >= 0 else self.left_out.why(epoch, index, at))
                for at, now in zip(read.tolist(), dealt, strict=True)
            ),
            *(each for each in inside if each[1]),
        ]

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        """Return the units at some runs of positions, without the excluded samples."""
        if not self.left_out.shortens:
            return super().deal(epoch, starts, stops)
        ((_, lows, highs),) = self.inside(epoch, starts, stops)
        units = self.order.deal(epoch, lows, highs)
        positions = np.repeat(expand(lows, highs), units.sizes)
        gone = self.left_out.gone(epoch, units.samples, positions)
        if not gone.any():
            return units
        left = np.cumsum(np.concatenate([np.zeros(1, np.int64), ~gone]))
        sizes = np.diff(left[units.offsets])
        spans = None if units.spans is None else units.spans[~gone]
        return Units(units.samples[~gone], sizes, spans)

    @property
    def ip_gaps(self) -> GapsExtent:
        return GapsExtent(self, self.left_out)

    @property
    def ip_same_reads(self) -> bool:
        return self.order.ip_same_reads

    def with_phase(
        self,
        place: Any,
        weights: Mapping[str, Any],
        *,
        sources: Mapping[str, Order] | Sequence[tuple[str, Order]] | None = None,
        planned: str | None = None,
    ) -> Without:
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
        mixture: Any = getattr(self.order, "source", self.order)  # of a plan that was loaded
        if not hasattr(mixture, "with_phase"):
            cure = "put a Mixture there: weights are those of its sources"
            raise invalid("the order inside", "a Mixture", mixture.algorithm, cure)
        epoch, position = self.reach(*place_of(self, place, "place"))
        unit = epoch * mixture.epoch_size + position
        changed = mixture.with_phase(unit, weights, sources=sources, planned=planned)
        return replace(self, order=changed)

    # What a run may continue with.

    def _num_had(self, saved: Mapping[str, Any]) -> int:
        """Return how many of its groups a saved order of this class had."""
        since, mine = saved.get("since"), self.ip_form["since"]
        if (
            not isinstance(since, list)
            or since != mine[: len(since)]
            or saved.get("cut") != self.cut
        ):
            return 0
        return len(since) if saved.get("samples") == self.left_out.form_of(len(since)) else 0

    def _before(self, saved: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
        """Yield how many of these groups a saved order may have had, and around what order."""
        if saved.get("algorithm") == self.algorithm and (num := self._num_had(saved)):
            yield num, saved.get("order")
        yield 0, saved

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        """Return which group began before a place, or why the inner order differs before it."""
        whys = [self._apart_after(num, each, epoch, position) for num, each in self._before(saved)]
        return None if None in whys else whys[0]

    def _apart_after(self, num: int, inside: Any, epoch: int, position: int) -> Why | None:
        """Return the same of a saved order that had the first `num` groups, around one inside."""
        at = min((group[:2] for group in self.since[num:]), default=(epoch, position))
        if (epoch, position) > at:
            rule = f"at or before epoch {at[0]}, position {at[1]}, since which units are left out"
            cure = "use an earlier cursor, or one of this plan, or leave out only what follows it"
            return rule, f"epoch {epoch}, position {position}", cure
        return self._apart_inside(inside, epoch, position)


def _check_samples(rising: Int64, num_samples: int) -> None:
    """Raise `IndexPlanError` unless these are some samples, each once, in rising order."""
    cure = "pass the numbers of the samples to exclude, np.flatnonzero(mask) of a mask"
    if not len(rising):
        raise invalid("samples", "at least one sample", "none", cure)
    low, high = int(rising[0]), int(rising[-1])
    if low < 0 or high >= num_samples:
        rule = f"numbers of samples, from 0 to {num_samples - 1}"
        raise invalid("samples", rule, low if low < 0 else high, cure)
    bad = np.flatnonzero(rising[1:] <= rising[:-1])
    if len(bad):
        got = int(rising[bad[0]])
        raise invalid("samples", "different", f"{got} twice", "pass np.unique(samples)")
