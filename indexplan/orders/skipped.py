"""An order without some spans of positions, which a run skips or postpones: skipped-v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from indexplan.errors import integer, wrong
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.extents import GapsExtent
from indexplan.orders.gaps import Gaps, Sections
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.seeds import EPOCH_STOP, check_epoch

Span: TypeAlias = tuple[int, int, str]

THENS = ("drop", "later")
SPANS = "make it with plan.skip(start, stop)"


class Cut(NamedTuple):
    """An epoch after some skips.

    Attributes
    ----------
    sections : Sections
        What it reads: first what is read where it is inside, then what was put off.
    num_rising : int
        How many of them are read where they are inside.
    ends : tuple of (int, int)
        The inner positions of the first and the last unit of each skip; -1 where it was put off.
    """

    sections: Sections
    num_rising: int
    ends: tuple[tuple[int, int], ...]

    @classmethod
    def uncut(cls, num_units: int) -> Cut:
        """Return an epoch without skips."""
        return cls(Sections(np.zeros(1, np.int64), np.array([0, num_units], np.int64)), 1, ())

    def _split(self, at: int) -> tuple[int, Cut]:
        """Return which section begins at a position, and the epoch with one that does."""
        starts, bounds = self.sections
        which = int(bounds.searchsorted(at))
        if bounds[which] == at:
            return which, self
        inner = starts[which - 1] + at - bounds[which - 1]
        sections = Sections(np.insert(starts, which, inner), np.insert(bounds, which, at))
        return which, self._replace(
            sections=sections, num_rising=self.num_rising + (which <= self.num_rising)
        )

    def after(self, start: int, stop: int, then: str) -> Cut:
        """Return the epoch after one more skip, of the positions [start, stop)."""
        first, cut = self._split(start)
        last, cut = cut._split(stop)  # noqa: SLF001 (of one too)
        (starts, bounds), num = cut.sections, cut.num_rising
        final = starts[last - 1] + bounds[last] - bounds[last - 1] - 1
        ends = (int(starts[first]) if first < num else -1, int(final) if last <= num else -1)
        gone = slice(first, last)
        begins = [starts[:first], starts[last:]]
        edges = [bounds[: first + 1], bounds[last + 1 :] - (stop - start)]
        if then == "later":
            begins.append(starts[gone])
            edges.append(bounds[first + 1 : last + 1] + bounds[-1] - stop)
        sections = Sections(np.concatenate(begins), np.concatenate(edges))
        return Cut(sections, num - max(0, min(last, num) - first), (*self.ends, ends))

    def before(self, position: int) -> int:
        """Return how many of the units before an inner position are read where they are."""
        starts, bounds = self.sections.starts[: self.num_rising], self.sections.bounds
        which = int(starts.searchsorted(position, "right")) - 1
        if which < 0:
            return 0
        return min(int(bounds[which] + position - starts[which]), int(bounds[which + 1]))

    def inside(self, positions: Int64) -> Int64:
        """Return the inner positions of some units; -1 where they were put off, or past the end."""
        starts, bounds = self.sections
        which = bounds.searchsorted(positions, "right") - 1
        put_off = which >= self.num_rising
        which = np.minimum(which, len(starts) - 1)
        return np.where(put_off, -1, positions + starts[which] - bounds[which])


@register
@dataclass(frozen=True, eq=False)
class Skipped(Gaps):
    """Leaves spans of positions out of their epochs, or reads them at the end: see `Plan.skip`.

    Parameters
    ----------
    order : Order
        The order to read. If it is a `Skipped` too, the new one includes its spans.
    skips : sequence of (int, int, int, str)
        For each span, its epoch, its positions [start, stop), and "drop" or "later". The positions
        are counted after the earlier spans have been applied.

    Raises
    ------
    IndexPlanError
        If a span has other values, is empty, leaves the epoch or covers all of it; or if it is
        postponed, and fewer units follow than it has.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.types.Skipped(ip.Sequential(8), [(0, 1, 3, "drop"), (0, 2, 4, "later")])
    >>> order.take(0, 0, 6), order.take(1, 0, 3)
    (array([0, 3, 6, 7, 4, 5]), array([0, 1, 2]))
    """

    order: Order
    skips: tuple[tuple[int, int, int, str], ...]

    algorithm = "skipped-v1"
    _plain = ("skips",)

    def __post_init__(self) -> None:
        self._look_inside()
        if not isinstance(self.skips, list | tuple) or not self.skips:
            raise wrong("skips", "at least one span", self.skips, SPANS)
        order, spans = self.order, [_checked(each) for each in self.skips]
        skips, rows = tuple(spans), [list(span) for span in spans]
        left, cuts, by_epoch = dict[int, int](), dict[int, Cut](), dict[int, list[Span]]()
        if isinstance(order, Skipped):  # in a chain of skips, each costs its own part only
            skips, rows = (*order.skips, *skips), [*order._rows, *rows]  # noqa: SLF001 (of one too)
            left, cuts = dict(order._left), dict(order._cuts)  # noqa: SLF001 (of one too)
            by_epoch, order = dict(order._by_epoch), order.order  # noqa: SLF001 (of one too)
            object.__setattr__(self, "order", order)
            object.__setattr__(self, "_depth", 1)
            self._look_inside()
        object.__setattr__(self, "skips", skips)
        for epoch, start, stop, then in spans:
            num_units = left[epoch] if epoch in left else order.num_units(epoch)
            if stop > num_units:
                rule = f"inside [0, {num_units}), the positions of epoch {epoch}"
                raise wrong("a skipped span", rule, f"[{start}, {stop})", SPANS)
            left[epoch] = num_units - (stop - start) * (then == "drop")
            if not left[epoch]:
                cure = "leave some steps of it in"
                raise wrong("a skip", "left with a unit in each epoch", f"all of {epoch}", cure)
            if then == "later" and num_units - stop < stop - start:
                rule = f"followed by as many units in its epoch, {stop - start}, to be read later"
                raise wrong("a skip", rule, num_units - stop, 'drop them: then="drop"')
            by_epoch[epoch] = [*by_epoch.get(epoch, ()), (start, stop, then)]
        vars(self).update(_left=left, _by_epoch=by_epoch, _cuts=cuts, _rows=rows)

    @once
    def _rows(self) -> list[list[Any]]:
        """The spans as JSON types."""
        return [list(span) for span in self.skips]

    @once
    def _form(self) -> dict[str, Any]:
        return {"algorithm": self.algorithm, "order": self.order._form, "skips": self._rows}  # noqa: SLF001 (of one too)

    @once
    def _by_epoch(self) -> dict[int, list[Span]]:
        """The spans of each epoch that has some."""
        found: dict[int, list[Span]] = {}
        for epoch, start, stop, then in self.skips:
            found.setdefault(epoch, []).append((start, stop, then))
        return found

    @once
    def _left(self) -> dict[int, int]:
        """The units that are left in each epoch with spans."""
        return {
            epoch: self.order.num_units(epoch)
            - sum(stop - start for start, stop, then in spans if then == "drop")
            for epoch, spans in self._by_epoch.items()
        }

    @once
    def _cuts(self) -> dict[int, Cut]:
        """The epochs that were looked at, each after all its spans or the first of them."""
        return {}

    def _cut_of(self, epoch: int) -> Cut:
        """Return an epoch after its spans."""
        cut = self._cuts.get(epoch)
        if cut is None:
            cut = Cut.uncut(self.order.num_units(epoch))
        if left := self._in(epoch)[len(cut.ends) :]:
            for span in left:
                cut = cut.after(*span)
            self._cuts[epoch] = cut
        return cut

    @once
    def traits(self) -> Traits:
        """The inner order's, but epochs differ in units if some are dropped."""
        inner = self.order.traits
        if all(then == "later" for *_, then in self.skips):
            return inner
        reads = "at most once" if inner.reads == "once" else inner.reads
        return replace(inner, reads=reads, constant_num_units=False)

    def _in(self, epoch: int) -> list[Span]:
        """Return the spans of an epoch."""
        return self._by_epoch.get(epoch, [])

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in the epoch."""
        epoch = check_epoch(epoch)
        return self._left[epoch] if epoch in self._left else self.order.num_units(epoch)

    def _sections_of(self, epoch: int) -> Sections | None:
        return self._cut_of(epoch).sections if self._in(epoch) else None

    @once
    def _puts_off(self) -> bool:
        return any(then == "later" for *_, then in self.skips) or super()._puts_off

    @property
    def _gaps(self) -> SkippedExtent:
        return SkippedExtent(self)

    def reach(self, epoch: int, position: int) -> tuple[int, int]:
        """Return an inner epoch and position that nothing read so far is past."""
        sections = self._sections(epoch)
        if sections is None:
            return epoch, position
        starts, sizes = sections.starts, np.diff(sections.bounds)
        read = np.clip(position - sections.bounds[:-1], 0, sizes)
        return epoch, int((starts + read)[read > 0].max(initial=0))

    def _why(self, epoch: int, index: int, position: int) -> str:
        spans = [f"[{start}, {stop})" for start, stop, then in self._in(epoch) if then == "drop"]
        words = f"position{'s' * (len(spans) > 1)} {', then '.join(spans)} of epoch {epoch}"
        return f"skipped: the run leaves out {words}"

    # What a run may continue with.

    @property
    def _since(self) -> list[tuple[int, int]]:
        return [skip[:2] for skip in self.skips]

    def _num_had(self, saved: Mapping[str, Any]) -> int:
        spans, mine = saved.get("skips"), self._rows
        if not isinstance(spans, list) or spans != mine[: len(spans)]:
            return 0
        return len(spans)


class SkippedExtent(GapsExtent):
    """How long epochs and sub-epochs are without some spans. What is put off is in the last one."""

    def __init__(self, order: Skipped) -> None:
        super().__init__(order, order.order)
        self._skipped = order

    @property
    def own_changing(self) -> set[int]:
        epochs = {epoch for epoch, _, _, then in self._skipped.skips if then == "drop"}
        return epochs | {epoch + 1 for epoch in epochs if epoch + 1 < EPOCH_STOP}

    def edge(self, epoch: int, parts: int, part: int) -> int:
        if part in (0, parts):
            return self.units(epoch) if part else 0
        return self._cut(epoch).before(self.inside.edge(epoch, parts, part))

    def _cut(self, epoch: int) -> Cut:
        return self._skipped._cut_of(epoch)  # noqa: SLF001 (of its order)

    def parts_of(self, epoch: int, parts: int, positions: Int64) -> Int64:
        return self._parts_inside(epoch, parts, self._cut(epoch).inside(positions))

    def _parts_inside(self, epoch: int, parts: int, positions: Int64) -> Int64:
        """Return the sub-epochs that hold some inner positions; the last one where it is -1."""
        found = self.inside.parts_of(epoch, parts, np.maximum(positions, 0))
        return np.where(positions < 0, parts - 1, found)

    def changes(self, epoch: int, parts: int) -> set[int]:
        changes, ends = self.inside.changes(epoch, parts), self._cut(epoch).ends
        if not ends:
            return changes
        held = self._parts_inside(epoch, parts, np.array(ends, np.int64).ravel())
        return {*changes, *held.tolist(), *(held + 1).tolist(), parts - 1}

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> tuple[int, int]:
        skipped, excluded = self.inside.missing(epoch, parts, start, stop)
        num_units = self.inside.units(epoch)
        low, high = (self.inside.edge(epoch, parts, part) for part in (start, stop))
        for begin, end, then in self._skipped._in(epoch):  # noqa: SLF001 (of its order)
            if stop == parts:
                high = num_units
            if then == "drop":
                skipped += max(0, min(end, high) - max(begin, low))
                num_units -= end - begin
            low -= min(max(low - begin, 0), end - begin)
            high -= min(max(high - begin, 0), end - begin)
        return skipped, excluded


def _checked(span: Any) -> tuple[int, int, int, str]:
    """Return a span as it is kept."""
    if not isinstance(span, list | tuple) or len(span) != 4:
        raise wrong("a skipped span", "epoch, start, stop and then", span, SPANS)
    epoch = integer("a skipped span's epoch", span[0], 0, EPOCH_STOP, SPANS)
    start = integer("a skipped span's start", span[1], 0, 2**63 - 1, SPANS)
    stop = integer("a skipped span's stop", span[2], start + 1, 2**63, SPANS)
    return epoch, start, stop, check_then(span[3])


def check_then(then: Any) -> str:
    """Return `then`, what happens to skipped units, or raise `IndexPlanError`."""
    if not isinstance(then, str) or then not in THENS:
        raise wrong("then", f"one of {', '.join(THENS)}", then, "leave it out for drop")
    return then
