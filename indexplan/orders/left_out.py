"""What `Without` leaves out: its groups of samples, and the units and reads of each epoch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import counted, invalid
from indexplan.once import Latest, latest, once
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import Column
from indexplan.orders.units import expand
from indexplan.seeds import check_epoch

KEPT = 2  # epochs of which it is known what they leave out: under "carry" a step reads from two
NONE = np.empty(0, np.int64)


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


class OfEpoch(NamedTuple):
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


NOTHING = OfEpoch(NONE, NONE, NONE)


class LeftOut:
    """The samples that are left out of an order, in groups, each from a place of the run on.

    Parameters
    ----------
    order : Order
        The order that would read them.
    since : tuple of (int, int, int)
        Of each group, its place, epoch and position, and how many samples it has; places rise.
    samples : Column
        The samples of the first group, rising, then those of the second, and so on.
    whole : bool
        Whether a bin that holds one of them is left out as a whole.
    """

    def __init__(
        self, order: Order, since: tuple[tuple[int, int, int], ...], samples: Column, whole: bool
    ) -> None:
        self.order, self.since, self.samples, self.whole = order, since, samples, whole
        self.epochs = [epoch for epoch, _, _ in since]
        # how many samples the groups before each one have, and all of them
        self.totals = list(accumulate((count for _, _, count in since), initial=0))
        self.known = Latest[int, OfEpoch](KEPT)  # after all groups, or the first of them
        self._num_left: dict[int, int] = {}  # units in the epochs that were looked at
        self._forms: dict[int, dict[str, Any]] = {}  # of the first so many samples

    def with_group(self, place: tuple[int, int], own: Int64) -> LeftOut:
        """Return this with one more group, which takes over what is known of the others."""
        samples = Column(np.concatenate([self.samples.array.astype(np.int64), own]))
        self.samples.check_file(gone=True)
        more = LeftOut(self.order, (*self.since, (*place, len(own))), samples, self.whole)
        vars(more).update(
            groups=[*self.groups, (*place, own)],
            rising=merged(self.rising, own),
            _num_left={each: num for each, num in self._num_left.items() if each < place[0]},
            _forms={**self._forms, len(self.samples): self.samples.to_dict()},
        )
        more.known.update(self.known)
        return more

    @once
    def groups(self) -> list[tuple[int, int, Int64]]:
        """The samples in groups: the epoch and position since when, and which samples, rising."""
        parts = np.split(self.samples.array.astype(np.int64), self.totals[1:-1])
        self.samples.check_file(gone=True)
        return [(*each[:2], part) for each, part in zip(self.since, parts, strict=True)]

    @once
    def rising(self) -> Int64:
        """All excluded samples, sorted."""
        return np.sort(np.concatenate([samples for _, _, samples in self.groups]))

    @once
    def whose(self) -> Int64:
        """The number of the group of each excluded sample, by rising sample."""
        every = np.concatenate([samples for _, _, samples in self.groups])
        return np.searchsorted(self.totals, np.argsort(every), "right") - 1

    def form_of(self, num_groups: int) -> dict[str, Any]:
        """Return the identity of the samples of the first groups."""
        num = self.totals[num_groups]
        if (form := self._forms.get(num)) is None:
            column = self.samples if num == len(self.samples) else Column(self.samples.array[:num])
            self.samples.check_file(gone=True)
            form = self._forms[num] = column.to_dict()
        return form

    @once
    def is_closed(self) -> bool:
        """Whether each excluded sample removes one unit from every epoch."""
        return self.order.traits.reads == "once" and not self.order.traits.deals_bins

    @once
    def shortens(self) -> bool:
        """Whether units that stay may lose samples."""
        return not self.whole and self.order.deals_bins

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in an epoch."""
        epoch = check_epoch(epoch)
        first, last = bisect_left(self.epochs, epoch), bisect_right(self.epochs, epoch)
        if self.is_closed and not any(position for _, position, _ in self.since[first:last]):
            return self.order.num_units(epoch) - self.totals[last]
        if epoch not in self._num_left:
            sections = self.sections(epoch)
            units = self.order.num_units(epoch) if sections is None else int(sections.bounds[-1])
            self._num_left[epoch] = units
        return self._num_left[epoch]

    @latest(KEPT)
    def sections(self, epoch: int) -> Sections | None:
        """Return what an epoch reads; None if that is the same as inside."""
        gaps = self.of(epoch).gaps
        if not len(gaps):
            return None
        num_units = self.order.num_units(epoch)
        if len(gaps) == num_units:
            raise nothing_left(len(self.samples))
        return Sections.without(gaps, num_units)

    def of(self, epoch: int) -> OfEpoch:
        """Return what an epoch leaves out."""
        num = bisect_right(self.epochs, epoch)  # groups that apply
        found = self.known.get(epoch, NOTHING)
        if len(found.lows) == num:
            return found
        before = bisect_left(self.epochs, epoch)
        if before and not len(found.lows):  # groups of earlier epochs, all at once
            samples = self.rising
            if before < len(self.since):
                samples = np.sort(np.concatenate([each[2] for each in self.groups[:before]]))
            found = self._after(found, epoch, before, 0, samples)
        for number in range(len(found.lows), num):
            of, since, samples = self.groups[number]
            found = self._after(found, epoch, number + 1, since if of == epoch else 0, samples)
        self.known.keep(epoch, found)
        return found

    def _after(
        self, before: OfEpoch, epoch: int, num_groups: int, since: int, samples: Int64
    ) -> OfEpoch:
        """Return what an epoch leaves out with one more group, from a position on."""
        gaps, low = before.gaps, since  # a position after the gaps of the groups before
        # The unit that is read at `since` is inside behind each gap i with gaps[i] - i <= since.
        if len(gaps) and since:
            num_units = self.order.num_units(epoch)
            shift = bisect_right(range(len(gaps)), since, key=lambda i: int(gaps[i]) - i)
            low = since + shift if since < num_units - len(gaps) else num_units
        found = np.sort(self.order.find(epoch, samples)[1])
        found = found[found.searchsorted(low) :]
        more, reads = found, NONE
        if self.shortens:
            reads = merged(before.reads, found)
        if self.order.deals_bins:
            more = self._emptied(epoch, reads, different(found))
            more = more[~among(gaps, more)]
        lows = np.append(before.lows, np.full(num_groups - len(before.lows), low))
        return OfEpoch(lows, merged(gaps, more), reads)

    def _emptied(self, epoch: int, reads: Int64, positions: Int64) -> Int64:
        """Return which of these positions have nothing left when some reads are left out."""
        if self.whole or not len(positions):
            return positions
        counts = reads.searchsorted(positions, "right") - reads.searchsorted(positions)
        offsets = self.order.ip_offsets(epoch, positions, positions + 1)
        empty: Int64 = positions[counts == np.diff(offsets)]
        return empty

    def gone(self, epoch: int, samples: Int64, positions: Int64) -> NDArray[np.bool_]:
        """Return which samples of the units at these inner positions leave their bins."""
        excluded = self.rising
        at = np.minimum(excluded.searchsorted(samples), len(excluded) - 1)
        gone: NDArray[np.bool_] = excluded[at] == samples
        if epoch <= self.since[-1][0]:  # later ones leave out all from their start on
            lows = self.of(epoch).lows
            never = np.full(len(self.since) - len(lows), np.iinfo(np.int64).max)
            gone &= positions >= np.append(lows, never)[self.whose[at]]
        return gone

    def num_taken_out(self, epoch: int) -> int:
        """Return how many samples are removed from bins that an epoch still reads."""
        if not self.shortens:
            return 0
        found = self.of(epoch)
        return int((~among(found.gaps, found.reads)).sum())

    def why(self, epoch: int, index: int, position: int) -> str:
        """Return why a sample's unit at an inner position is left out, in words."""
        samples, words = np.array([index], np.int64), "excluded: "
        if not self.gone(epoch, samples, np.array([position]))[0]:  # another one in its unit is
            samples = self.order.ip_take(epoch, np.array([position]), np.array([position + 1]))
            samples = samples[self.gone(epoch, samples, np.full_like(samples, position))]
            words = f"excluded: its unit holds sample {samples[0]}, "
        since = next(group for group in self.groups if samples[0] in group[2])
        return f"{words}not read from epoch {since[0]}, position {since[1]:,} on"


def nothing_left(num: int) -> Exception:
    """Return the error that an epoch would have nothing left."""
    got, cure = counted(num, "excluded sample"), "leave some samples in, or end the run"
    return invalid("Without", "left with a unit in each epoch", got, cure)


def among(rising: Int64, values: Int64) -> NDArray[np.bool_]:
    """Return which values are in a sorted array."""
    if not len(rising):
        return np.zeros(len(values), bool)
    found: NDArray[np.bool_] = (
        rising[np.minimum(rising.searchsorted(values), len(rising) - 1)] == values
    )
    return found


def merged(rising: Int64, more: Int64) -> Int64:
    """Return two sorted arrays as one; the first may be long, but is not sorted again."""
    if not len(rising):
        return more
    return np.insert(rising, rising.searchsorted(more), more)


def different(rising: Int64) -> Int64:
    """Return the different numbers of a sorted array."""
    return rising[np.append(True, rising[1:] != rising[:-1])] if len(rising) else rising
