"""An order without some samples from a place of the run on: without-v1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import counted, integer, wrong
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import INTEGERS, Column, Numbers
from indexplan.orders.cursors import Saved, place_of
from indexplan.orders.extents import GapsExtent
from indexplan.orders.gaps import Gaps, Sections
from indexplan.orders.nesting import nested
from indexplan.orders.registry import register
from indexplan.orders.runs import expand
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units
from indexplan.seeds import EPOCH_STOP, check_epoch

CUTS = ("piece", "unit")


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
    except those left out.

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
    cut: str = "piece"

    if TYPE_CHECKING:  # the arguments; the fields above are what is kept of them

        def __init__(
            self, order: Order, samples: Numbers, since: Saved | None = None, cut: str = "piece"
        ) -> None: ...

    algorithm = "without-v1"

    def __post_init__(self) -> None:
        self._look_inside()
        if not isinstance(self.cut, str) or self.cut not in CUTS:
            raise wrong("cut", f"one of {', '.join(CUTS)}", self.cut, "leave it out for piece")
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
        array = np.sort(samples.array.astype(np.int64))
        samples.check_file()
        _check_samples(array, order.num_samples)
        groups: tuple[tuple[int, int, int], ...] = ()
        if isinstance(order, Without):
            groups = order.since
            if order.cut != self.cut:
                rule = f"{order.cut}, that of the samples that were excluded earlier"
                raise wrong("cut", rule, self.cut, "pass the same")
            if place < (last := groups[-1][:2]):
                rule = f"at or past epoch {last[0]}, position {last[1]}, that of earlier samples"
                got = f"epoch {place[0]}, position {place[1]}"
                raise wrong("since", rule, got, "exclude the samples in the order of their places")
            again = np.intersect1d(array, order.samples.array)
            if len(again):
                cure = "leave it out, np.setdiff1d(samples, order.samples.array)"
                raise wrong("samples", "not excluded already", int(again[0]), cure)
            array = np.concatenate([order.samples.array.astype(np.int64), array])
            order = order.order
        object.__setattr__(self, "since", (*groups, (*place, len(samples))))
        object.__setattr__(self, "samples", Column(array))
        object.__setattr__(self, "order", order)
        object.__setattr__(self, "_depth", 1)
        self._look_inside()

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
        object.__setattr__(self, "since", tuple(groups))
        object.__setattr__(self, "samples", samples)

    def _check_left(self) -> None:
        """Raise `IndexPlanError` if an epoch would have nothing left."""
        if len(self.samples) == self.num_samples:
            raise _nothing_left(len(self.samples))
        if not self._closed and not self._lacks:  # else it may be over; each epoch looks itself
            self.num_units(min(self.since[-1][0] + 1, EPOCH_STOP - 1))

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

    def _in_force(self, epoch: int) -> list[tuple[int, Int64]]:
        """Return what an epoch leaves out: groups of samples, and the position in it since when."""
        first, last = self.since[0][0], self.since[-1][0]
        if epoch < first:
            return []
        if epoch > last:
            return [(0, self._rising)]
        return [
            (position if since == epoch else 0, samples)
            for since, position, samples in self._groups
            if since <= epoch
        ]

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in the epoch."""
        epoch = check_epoch(epoch)
        if self._closed and epoch > self.since[-1][0]:
            return self.order.num_units(epoch) - len(self.samples)
        return super().num_units(epoch)

    def _sections_of(self, epoch: int) -> Sections | None:
        gaps, _ = self._left_out(epoch)
        if not len(gaps):
            return None
        num_units = self.order.num_units(epoch)
        if len(gaps) == num_units:
            raise _nothing_left(len(self.samples))
        return Sections.without(gaps, num_units)

    def _left_out(self, epoch: int) -> tuple[Int64, list[tuple[int, Int64]]]:
        """Return the gaps of an epoch, and its groups with the inner positions since when."""
        found: list[tuple[int, Int64]] = []
        gaps = reads = np.empty(0, np.int64)
        num_units = self.order.num_units(epoch)
        for since, samples in self._in_force(epoch):
            low = since  # a position after the gaps of the groups before
            if len(gaps) and since:
                sections = Sections.without(gaps, num_units)
                last = sections.bounds[-1]
                low = sections.inside(since) if since < last else num_units
            found.append((low, samples))
            more = self.order.find(epoch, samples)[1]
            reads = np.concatenate([reads, more[more >= low] if low else more])
            gaps = self._emptied(epoch, reads)
        return gaps, found

    def _emptied(self, epoch: int, reads: Int64) -> Int64:
        """Return the positions with nothing left when some of their reads are left out."""
        rising = np.sort(reads)
        if not self.order.deals_bins:
            return rising
        positions, counts = np.unique(rising, return_counts=True)
        if self.cut == "unit" or not len(positions):
            return positions
        offsets = self.order._offsets(epoch, positions, positions + 1)  # noqa: SLF001
        empty: Int64 = positions[counts == np.diff(offsets)]
        return empty

    @once
    def _shortened(self) -> bool:
        """Whether units that stay may lose samples."""
        return self.cut == "piece" and self.order.deals_bins

    def _gone(self, epoch: int, samples: Int64, positions: Int64) -> Int64:
        """Return which samples of the units at these inner positions leave their bins."""
        gone = np.zeros(len(samples), bool)
        for low, excluded in self._left_out_of(epoch):
            at = np.minimum(excluded.searchsorted(samples), len(excluded) - 1)
            gone |= (excluded[at] == samples) & (positions >= low)
        return gone

    def _left_out_of(self, epoch: int) -> list[tuple[int, Int64]]:
        """Return the groups that apply, with inner positions; few epochs need a search."""
        if not self.since[0][0] <= epoch <= self.since[-1][0]:
            return self._in_force(epoch)
        kept: dict[int, list[tuple[int, Int64]]] = self._kept_groups
        if epoch not in kept:
            kept[epoch] = self._left_out(epoch)[1]
        return kept[epoch]

    @once
    def _kept_groups(self) -> dict[int, list[tuple[int, Int64]]]:
        return {}

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
        gaps, groups = self._left_out(epoch)
        reads = ((low, self.order.find(epoch, samples)[1]) for low, samples in groups)
        return sum(int((~np.isin(places[places >= low], gaps)).sum()) for low, places in reads)

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
        since, mine = saved.get("since"), [list(each) for each in self.since]
        if (
            not isinstance(since, list)
            or since != mine[: len(since)]
            or saved.get("cut") != self.cut
        ):
            return 0
        num = sum(count for _, _, count in self.since[: len(since)])
        same = self.samples if num == len(self.samples) else Column(self.samples.array[:num])
        return len(since) if saved.get("samples") == same.to_dict() else 0


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

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> tuple[int, int]:
        skipped, excluded = self.inside.missing(epoch, parts, start, stop)
        inside = [self.inside.edge(epoch, parts, part) for part in (start, stop)]
        mine = [self.edge(epoch, parts, part) for part in (start, stop)]
        return skipped, excluded + (inside[1] - inside[0]) - (mine[1] - mine[0])

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
