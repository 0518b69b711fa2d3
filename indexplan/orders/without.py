"""An order without some samples from a place of the run on: without-v1."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import counted, integer, wrong
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import INTEGERS, Column, Numbers
from indexplan.orders.cursors import Saved, place_of
from indexplan.orders.extents import GapsExtent
from indexplan.orders.fields import nested, one_of
from indexplan.orders.gaps import KEPT, Gaps, Sections
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand
from indexplan.seeds import EPOCH_STOP, check_epoch

CUTS = ("piece", "unit")
LOOKED_AT = 64  # units in which one is sought that stays
NONE = np.empty(0, np.int64)


class LeftOut(NamedTuple):
    """What an epoch leaves out after some groups of samples.

    Attributes
    ----------
    lows : numpy.ndarray
        int64: of each group, the inner position from which its samples are left out.
    gaps : numpy.ndarray
        int64: the inner positions of units that are not read, rising.
    reads : numpy.ndarray
        int64: the inner position of each read that is left out, rising; none are kept where units
        that stay keep all their samples.
    """

    lows: Int64
    gaps: Int64
    reads: Int64


@register
@dataclass(frozen=True, eq=False)
class Without(Gaps):
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
    samples: Column
    since: tuple[tuple[int, int, int], ...] = ()
    cut: str = field(default="piece", metadata=one_of(CUTS, "leave it out for piece"))

    if TYPE_CHECKING:  # the arguments; the fields above are what is kept of them

        def __init__(
            self, order: Order, samples: Numbers, since: Saved | None = None, cut: str = "piece"
        ) -> None: ...

    algorithm = "without-v1"
    _plain = ("since",)

    def __post_init__(self) -> None:
        super().__post_init__()
        for each in (self.order, *(inside for inside, _ in nested(self.order))):
            if each.algorithm == "token-windows-v1":
                rule = "one whose samples are what it reads; TokenWindows names first tokens"
                raise wrong("order", rule, each.algorithm, "read documents in DocumentWindows")
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
        group, array = (*place, len(own)), own
        groups: tuple[tuple[int, int, int], ...] = ()
        if isinstance(order, Without):  # in a chain, each group of samples costs its own part only
            groups = order.since
            if order.cut != self.cut:
                rule = f"{order.cut}, that of the samples that were excluded earlier"
                raise wrong("cut", rule, self.cut, "pass the same")
            if place < (last := groups[-1][:2]):
                rule = f"at or past epoch {last[0]}, position {last[1]}, that of earlier samples"
                got = f"epoch {place[0]}, position {place[1]}"
                raise wrong("since", rule, got, "exclude the samples in the order of their places")
            again = own[_among(order._rising, own)]  # noqa: SLF001 (of one too)
            if len(again):
                cure = "leave it out, np.setdiff1d(samples, order.samples.array)"
                raise wrong("samples", "not excluded already", int(again[0]), cure)
            array = np.concatenate([order.samples.array.astype(np.int64), own])
            vars(self).update(
                _groups=[*order._groups, (*place, own)],  # noqa: SLF001 (of one too)
                _rising=_merged(order._rising, own),  # noqa: SLF001 (of one too)
                _rows=[*order._rows, list(group)],  # noqa: SLF001 (of one too)
                _epochs=[*order._epochs, place[0]],  # noqa: SLF001 (of one too)
                _totals=[*order._totals, order._totals[-1] + len(own)],  # noqa: SLF001 (of one too)
                _known=dict(order._known),  # noqa: SLF001 (of one too)
                _num_left={each: num for each, num in order._num_left.items() if each < place[0]},  # noqa: SLF001 (of one too)
                _had={**order._had, len(order.samples): order.samples.to_dict()},  # noqa: SLF001 (of one too)
            )
            order = order.order
        vars(self).update(since=(*groups, group), samples=Column(array), order=order, _depth=1)
        self._look_inside()

    @once
    def _rows(self) -> list[list[int]]:
        """The groups as JSON types."""
        return [list(group) for group in self.since]

    @once
    def _form(self) -> dict[str, Any]:
        fields = {"samples": self.samples.to_dict(), "since": self._rows, "cut": self.cut}
        return {"algorithm": self.algorithm, "order": self.order._form, **fields}  # noqa: SLF001

    def _check_kept(self, samples: Column, since: Any) -> None:
        """Check the groups of samples that `since` counts, each (epoch, position, count)."""
        cure = "write specs with to_json"
        if isinstance(self.order, Without):
            raise wrong("order", "the one inside all exclusions", self.order.algorithm, cure)
        groups, total = [], 0
        for group in since:
            if not isinstance(group, list | tuple) or len(group) != 3:
                raise wrong("a group in since", "epoch, position and count", group, cure)
            epoch = integer("since's epoch", group[0], 0, EPOCH_STOP, cure)
            position = integer("since's position", group[1], 0, 2**63, cure)
            count = integer("since's count", group[2], 1, len(samples) - total + 1, cure)
            groups.append((epoch, position, count))
            _check_samples(samples.array[total : total + count], self.num_samples)
            total += count
        if groups != sorted(groups, key=lambda group: group[:2]):
            raise wrong("since", "rising from group to group", since, cure)
        rising = np.sort(samples.array)
        if total != len(samples) or (rising[1:] == rising[:-1]).any():
            rule = f"{total} different ones, as many as since counts"
            raise wrong("samples", rule, len(samples), cure)
        vars(self).update(since=tuple(groups), samples=samples)

    def _check_left(self) -> None:
        """Raise `IndexPlanError` if an epoch would have nothing left."""
        if len(self.samples) == self.num_samples:
            raise _nothing_left(len(self.samples))
        if self._closed or self._lacks:  # of an epoch that is over; each epoch looks itself
            return
        epoch = min(self.since[-1][0] + 1, EPOCH_STOP - 1)
        first = np.zeros(1, np.int64)
        units = self.order.deal(epoch, first, np.minimum(self.order.num_units(epoch), [LOOKED_AT]))
        gone = np.append(0, np.cumsum(_among(self._rising, units.samples)))[units.offsets]
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

    @once
    def _closed(self) -> bool:
        """Whether each excluded sample removes one unit from every epoch."""
        return self.order.traits.reads == "once" and not self.order.traits.deals_bins

    @once
    def _groups(self) -> list[tuple[int, int, Int64]]:
        """The samples in groups: the epoch and position since when, and which samples, rising."""
        ends = np.cumsum([count for _, _, count in self.since])
        parts = np.split(self.samples.array.astype(np.int64), ends[:-1])
        self.samples.check_file(gone=True)
        return [(*each[:2], part) for each, part in zip(self.since, parts, strict=True)]

    @once
    def _rising(self) -> Int64:
        """All excluded samples, sorted."""
        return np.sort(np.concatenate([samples for _, _, samples in self._groups]))

    @once
    def _whose(self) -> Int64:
        """The number of the group of each excluded sample, by rising sample."""
        every = np.concatenate([samples for _, _, samples in self._groups])
        return np.searchsorted(self._totals, np.argsort(every), "right") - 1

    @once
    def _epochs(self) -> list[int]:
        """The epoch of each group."""
        return [epoch for epoch, _, _ in self.since]

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in the epoch."""
        epoch = check_epoch(epoch)
        first, last = bisect_left(self._epochs, epoch), bisect_right(self._epochs, epoch)
        if self._closed and not any(position for _, position, _ in self.since[first:last]):
            return self.order.num_units(epoch) - self._totals[last]
        if epoch not in self._num_left:
            self._num_left[epoch] = super().num_units(epoch)
        return self._num_left[epoch]

    @once
    def _totals(self) -> list[int]:
        """How many samples the groups before each one have, and all of them."""
        return list(accumulate((count for _, _, count in self.since), initial=0))

    @once
    def _num_left(self) -> dict[int, int]:
        """The units that are left in the epochs that were looked at."""
        return {}

    def _sections_of(self, epoch: int) -> Sections | None:
        gaps = self._left_out(epoch).gaps
        if not len(gaps):
            return None
        num_units = self.order.num_units(epoch)
        if len(gaps) == num_units:
            raise _nothing_left(len(self.samples))
        return Sections.without(gaps, num_units)

    @once
    def _known(self) -> dict[int, LeftOut]:
        """What the latest epochs leave out, after all groups or the first of them."""
        return {}

    def _left_out(self, epoch: int) -> LeftOut:
        """Return what an epoch leaves out."""
        known: dict[int, LeftOut] = self._known
        num = bisect_right(self._epochs, epoch)  # groups that apply
        found = known.get(epoch)
        if found is None:
            found = LeftOut(NONE, NONE, NONE)
            if before := bisect_left(self._epochs, epoch):  # groups of earlier epochs, all at once
                samples = self._rising
                if before < len(self.since):
                    samples = np.sort(np.concatenate([each[2] for each in self._groups[:before]]))
                found = self._after(found, epoch, before, 0, samples)
        for number in range(len(found.lows), num):
            of, since, samples = self._groups[number]
            found = self._after(found, epoch, number + 1, since if of == epoch else 0, samples)
        if known.get(epoch) is not found:
            for other in list(known)[: max(0, len(known) + 1 - KEPT)]:
                known.pop(other, None)  # another thread may have been here
            known[epoch] = found
        return found

    def _after(
        self, before: LeftOut, epoch: int, num_groups: int, since: int, samples: Int64
    ) -> LeftOut:
        """Return what an epoch leaves out with one more group, from a position on."""
        gaps, low = before.gaps, since  # a position after the gaps of the groups before
        if len(gaps) and since:
            num_units = self.order.num_units(epoch)
            shift = bisect_right(range(len(gaps)), since, key=lambda i: int(gaps[i]) - i)
            low = since + shift if since < num_units - len(gaps) else num_units
        found = np.sort(self.order.find(epoch, samples)[1])
        found = found[found.searchsorted(low) :]
        more, reads = found, NONE
        if self._shortened:
            reads = _merged(before.reads, found)
        if self.order.deals_bins:
            more = self._emptied(epoch, reads, _different(found))
            more = more[~_among(gaps, more)]
        lows = np.append(before.lows, np.full(num_groups - len(before.lows), low))
        return LeftOut(lows, _merged(gaps, more), reads)

    def _emptied(self, epoch: int, reads: Int64, positions: Int64) -> Int64:
        """Return which of these positions have nothing left when some reads are left out."""
        if self.cut == "unit" or not len(positions):
            return positions
        counts = reads.searchsorted(positions, "right") - reads.searchsorted(positions)
        offsets = self.order._offsets(epoch, positions, positions + 1)  # noqa: SLF001
        empty: Int64 = positions[counts == np.diff(offsets)]
        return empty

    @once
    def _shortened(self) -> bool:
        """Whether units that stay may lose samples."""
        return self.cut == "piece" and self.order.deals_bins

    def _gone(self, epoch: int, samples: Int64, positions: Int64) -> NDArray[np.bool_]:
        """Return which samples of the units at these inner positions leave their bins."""
        excluded = self._rising
        at = np.minimum(excluded.searchsorted(samples), len(excluded) - 1)
        gone: NDArray[np.bool_] = excluded[at] == samples
        if epoch <= self.since[-1][0]:  # later ones leave out all from their start on
            lows = self._left_out(epoch).lows
            never = np.full(len(self.since) - len(lows), np.iinfo(np.int64).max)
            gone &= positions >= np.append(lows, never)[self._whose[at]]
        return gone

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        """Return the units at some runs of positions, without the excluded samples."""
        if not self._shortened:
            return super().deal(epoch, starts, stops)
        ((_, lows, highs),) = self.inside(epoch, starts, stops)
        units = self.order.deal(epoch, lows, highs)
        positions = np.repeat(expand(lows, highs), units.sizes)
        gone = self._gone(epoch, units.samples, positions)
        if not gone.any():
            return units
        left = np.cumsum(np.concatenate([np.zeros(1, np.int64), ~gone]))
        sizes = np.diff(left[units.offsets])
        spans = None if units.spans is None else units.spans[~gone]
        return Units(units.samples[~gone], sizes, spans)

    def _dealt(self, epoch: int, samples: Int64, positions: Int64) -> Int64:
        dealt = super()._dealt(epoch, samples, positions)
        if not self._shortened or epoch < self.since[0][0]:
            return dealt
        return np.where(self._gone(epoch, samples, positions), -1, dealt)

    @property
    def _gaps(self) -> WithoutExtent:
        return WithoutExtent(self, self._sections, self._num_taken_out)

    def _num_taken_out(self, epoch: int) -> int:
        """Return how many samples this layer removes from bins that an epoch still reads."""
        if not self._shortened:
            return 0
        found = self._left_out(epoch)
        return int((~_among(found.gaps, found.reads)).sum())

    def _why(self, epoch: int, index: int, position: int) -> str:
        samples, words = np.array([index], np.int64), "excluded: "
        if not self._gone(epoch, samples, np.array([position]))[0]:  # another one in its unit is
            samples = self.order._take(epoch, np.array([position]), np.array([position + 1]))  # noqa: SLF001
            samples = samples[self._gone(epoch, samples, np.full_like(samples, position))]
            words = f"excluded: its unit holds sample {samples[0]}, "
        since = next(group for group in self._groups if samples[0] in group[2])
        return f"{words}not read from epoch {since[0]}, position {since[1]:,} on"

    # What a run may continue with.

    @property
    def _since(self) -> list[tuple[int, int]]:
        return [group[:2] for group in self.since]

    def _num_had(self, saved: Mapping[str, Any]) -> int:
        since, mine = saved.get("since"), self._rows
        if (
            not isinstance(since, list)
            or since != mine[: len(since)]
            or saved.get("cut") != self.cut
        ):
            return 0
        num = self._totals[len(since)]
        same = self._had.get(num)
        if same is None:
            column = self.samples if num == len(self.samples) else Column(self.samples.array[:num])
            same = self._had[num] = column.to_dict()
        return len(since) if saved.get("samples") == same else 0

    @once
    def _had(self) -> dict[int, dict[str, Any]]:
        """The identities of the first so many samples, as far as they are known."""
        return {}


class WithoutExtent(GapsExtent):
    """How long epochs and sub-epochs are without some samples."""

    def __init__(
        self,
        order: Without,
        sections: Callable[[int], Sections | None],
        own_taken_out: Callable[[int], int],
    ) -> None:
        super().__init__(order, order.order)
        self._inner, self._since = order.order, order.since
        self._sections, self._own_taken_out = sections, own_taken_out

    @property
    def own_changing(self) -> set[int] | None:
        if self._inner.traits.deals_bins or not self._inner._same_reads:  # noqa: SLF001
            return None
        epochs = {epoch for epoch, _, _ in self._since}
        return epochs | {epoch + 1 for epoch in epochs if epoch + 1 < EPOCH_STOP}

    def edge(self, epoch: int, parts: int, part: int) -> int:
        if part in (0, parts):  # without a search
            return self.units(epoch) if part else 0
        edge, sections = self.inside.edge(epoch, parts, part), self._sections(epoch)
        if sections is None:
            return edge
        which = int(sections.starts.searchsorted(edge, "right")) - 1
        dealt = int(sections.bounds[which]) + edge - int(sections.starts[which])
        return min(dealt, int(sections.bounds[which + 1]))

    def parts_of(self, epoch: int, parts: int, positions: Int64) -> Int64:
        if parts == 1:
            return np.zeros_like(positions)
        sections = self._sections(epoch)
        if sections is not None:
            which = sections.bounds.searchsorted(positions, "right") - 1
            which = np.minimum(which, len(sections.starts) - 1)
            positions = positions + sections.starts[which] - sections.bounds[which]
        return self.inside.parts_of(epoch, parts, positions)

    def changes(self, epoch: int, parts: int) -> set[int]:
        if parts == 1:
            return {0, 1}
        changes, sections = self.inside.changes(epoch, parts), self._sections(epoch)
        if sections is None:
            return changes
        held = np.unique(self.inside.parts_of(epoch, parts, sections.starts[1:] - 1)).tolist()
        return changes | set(held) | {part + 1 for part in held}

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> int:
        excluded = self.inside.missing(epoch, parts, start, stop)
        inside = [self.inside.edge(epoch, parts, part) for part in (start, stop)]
        mine = [self.edge(epoch, parts, part) for part in (start, stop)]
        return excluded + (inside[1] - inside[0]) - (mine[1] - mine[0])

    def num_taken_out(self, epoch: int) -> int:
        """Return how many samples an epoch removes from bins, by the layers inside too."""
        return self.inside.num_taken_out(epoch) + self._own_taken_out(epoch)


def _check_samples(rising: Int64, num_samples: int) -> None:
    """Raise `IndexPlanError` unless these are some samples, each once, in rising order."""
    cure = "pass the numbers of the samples to exclude, np.flatnonzero(mask) of a mask"
    if not len(rising):
        raise wrong("samples", "at least one sample", "none", cure)
    low, high = int(rising[0]), int(rising[-1])
    if low < 0 or high >= num_samples:
        rule = f"numbers of samples, from 0 to {num_samples - 1}"
        raise wrong("samples", rule, low if low < 0 else high, cure)
    bad = np.flatnonzero(rising[1:] <= rising[:-1])
    if len(bad):
        got = int(rising[bad[0]])
        raise wrong("samples", "different", f"{got} twice", "pass np.unique(samples)")


def _nothing_left(num: int) -> Exception:
    got, cure = counted(num, "excluded sample"), "leave some samples in, or end the run"
    return wrong("Without", "left with a unit in each epoch", got, cure)


def _among(rising: Int64, values: Int64) -> NDArray[np.bool_]:
    """Return which values are in a sorted array."""
    if not len(rising):
        return np.zeros(len(values), bool)
    found: NDArray[np.bool_] = (
        rising[np.minimum(rising.searchsorted(values), len(rising) - 1)] == values
    )
    return found


def _merged(rising: Int64, more: Int64) -> Int64:
    """Return two sorted arrays as one; the first may be long, but is not sorted again."""
    if not len(rising):
        return more
    return np.insert(rising, rising.searchsorted(more), more)


def _different(rising: Int64) -> Int64:
    """Return the different numbers of a sorted array."""
    return rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising
