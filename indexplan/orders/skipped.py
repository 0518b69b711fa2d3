"""An order without some spans of positions, which a run skips or postpones: skipped-v1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from indexplan.errors import integer, wrong
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.extents import GapsExtent
from indexplan.orders.gaps import Gaps, Sections
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.seeds import EPOCH_STOP, check_epoch

THENS = ("drop", "later")
SPANS = "make it with plan.skip(start, stop)"


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

    def __post_init__(self) -> None:
        self._look_inside()
        if not isinstance(self.skips, list | tuple) or not self.skips:
            raise wrong("skips", "at least one span", self.skips, SPANS)
        order, spans = self.order, [_checked(each) for each in self.skips]
        if isinstance(order, Skipped):
            spans, order = [*order.skips, *spans], order.order
            object.__setattr__(self, "order", order)
            object.__setattr__(self, "_depth", 1)
            self._look_inside()
        object.__setattr__(self, "skips", tuple(spans))
        left: dict[int, int] = {}
        for epoch, start, stop, then in spans:
            num_units = left.setdefault(epoch, order.num_units(epoch))
            if stop > num_units:
                rule = f"inside [0, {num_units}), the positions of epoch {epoch}"
                raise wrong("a skipped span", rule, f"[{start}, {stop})", SPANS)
            if then == "drop":
                left[epoch] -= stop - start
            if not left[epoch]:
                cure = "leave some steps of it in"
                raise wrong("a skip", "left with a unit in each epoch", f"all of {epoch}", cure)
            if then == "later" and num_units - stop < stop - start:
                rule = f"followed by as many units in its epoch, {stop - start}, to be read later"
                raise wrong("a skip", rule, num_units - stop, 'drop them: then="drop"')

    @once
    def traits(self) -> Traits:
        """The inner order's, but epochs differ in units if some are dropped."""
        inner = self.order.traits
        if all(then == "later" for *_, then in self.skips):
            return inner
        reads = "at most once" if inner.reads == "once" else inner.reads
        return replace(inner, reads=reads, constant_num_units=False)

    def _in(self, epoch: int) -> list[tuple[int, int, str]]:
        """Return the spans of an epoch."""
        return [each[1:] for each in self.skips if each[0] == epoch]

    def num_units(self, epoch: int) -> int:
        """Return how many units are left in the epoch."""
        epoch = check_epoch(epoch)
        dropped = sum(stop - start for start, stop, then in self._in(epoch) if then == "drop")
        return self.order.num_units(epoch) - dropped

    def _sections_of(self, epoch: int) -> Sections | None:
        if not self._in(epoch):
            return None
        parts = [(0, self.order.num_units(epoch))]
        for start, stop, then in self._in(epoch):
            before, skipped, after = _cut(parts, start, stop)
            parts = [*before, *after, *(skipped if then == "later" else [])]
        starts, stops = np.array(parts, np.int64).T
        return Sections(starts.copy(), np.append(0, np.cumsum(stops - starts)))

    @property
    def _puts_off(self) -> bool:
        return any(then == "later" for *_, then in self.skips) or super()._puts_off

    @property
    def _gaps(self) -> SkippedExtent:
        return SkippedExtent(self, self._in)

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
        spans, mine = saved.get("skips"), [list(each) for each in self.skips]
        if not isinstance(spans, list) or spans != mine[: len(spans)]:
            return 0
        return len(spans)


class SkippedExtent(GapsExtent):
    """How long epochs and sub-epochs are without some spans. What is put off is in the last one."""

    def __init__(
        self, order: Skipped, spans_in: Callable[[int], list[tuple[int, int, str]]]
    ) -> None:
        super().__init__(order, order.order)
        self._skips, self._in = order.skips, spans_in

    @property
    def own_changing(self) -> set[int]:
        epochs = {epoch for epoch, _, _, then in self._skips if then == "drop"}
        return epochs | {epoch + 1 for epoch in epochs if epoch + 1 < EPOCH_STOP}

    def edge(self, epoch: int, parts: int, part: int) -> int:
        if part == parts:
            return self.units(epoch)
        edge = self.inside.edge(epoch, parts, part)
        for start, stop, _ in self._in(epoch):
            edge -= min(max(edge - start, 0), stop - start)
        return edge

    def parts_of(self, epoch: int, parts: int, positions: Int64) -> Int64:
        return self._parts_before(len(self._skips), epoch, parts, positions)

    def _parts_before(self, num: int, epoch: int, parts: int, positions: Int64) -> Int64:
        """Return the sub-epochs that hold some positions after the first `num` skips."""
        for of, start, stop, _ in reversed(self._skips[:num]):
            if of == epoch:
                positions = positions + (positions >= start) * (stop - start)
        num_units = self.inside.units(epoch)
        found = self.inside.parts_of(epoch, parts, np.minimum(positions, num_units - 1))
        return np.where(positions < num_units, found, parts - 1)  # what is put off is past it

    def changes(self, epoch: int, parts: int) -> set[int]:
        changes = self.inside.changes(epoch, parts)
        for num, (of, start, stop, _) in enumerate(self._skips):
            if of == epoch:
                ends = np.array([start, stop - 1])
                held = self._parts_before(num, epoch, parts, ends).tolist()
                changes |= {*held, held[0] + 1, held[1] + 1, parts - 1}
        return changes

    def missing(self, epoch: int, parts: int, start: int, stop: int) -> tuple[int, int]:
        skipped, excluded = self.inside.missing(epoch, parts, start, stop)
        num_units = self.inside.units(epoch)
        low, high = (self.inside.edge(epoch, parts, part) for part in (start, stop))
        for begin, end, then in self._in(epoch):
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


Parts = list[tuple[int, int]]


def _cut(parts: Parts, start: int, stop: int) -> tuple[Parts, Parts, Parts]:
    """Return intervals before, between and after two places along them."""
    found: tuple[Parts, Parts, Parts] = ([], [], [])
    done = 0
    for low, high in parts:
        cuts = [min(max(place - done, 0), high - low) + low for place in (start, stop)]
        for into, a, b in zip(found, (low, *cuts), (*cuts, high), strict=True):
            if a < b:
                into.append((a, b))
        done += high - low
    return found
