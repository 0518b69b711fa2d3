"""Two runs in lockstep: the first step that reads other units, or deals them otherwise."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from indexplan.errors import IndexPlanError
from indexplan.orders.base import Order
from indexplan.partition.phases import Phase
from indexplan.partition.steps import Int64, Steps
from indexplan.plan.layout import Layout
from indexplan.seeds import EPOCH_STOP

FIRST_DRAWN = 2**10  # units drawn first of orders that differ, which mostly do at once
AT_ONCE = 2**16  # units that are drawn at a time
MOST_DRAWN = 2**24  # units of each run that are drawn: for a Shuffle some seconds


def in_lockstep(one: Iterator[Any], other: Iterator[Any]) -> Iterator[tuple[Any, Any, int]]:
    """Yield pairs of rows of equally many things, and how many; last what only one side has."""
    a, b = next(one, None), next(other, None)
    while a is not None and b is not None:
        num = min(a.num, b.num)
        yield a, b, num
        a = a.rest(num) if a.num > num else next(one, None)
        b = b.rest(num) if b.num > num else next(other, None)
    if a is not None or b is not None:
        yield a, b, 0


class Run(NamedTuple):
    """Positions of an epoch, `num` from `start` on."""

    epoch: int
    start: int
    num: int

    def rest(self, num: int) -> Run:
        """Return the run without its first positions."""
        return Run(self.epoch, self.start + num, self.num - num)


class Row(NamedTuple):
    """Equal steps of a plan in a row: `num` of `size` places each, from `start` on, in an epoch.

    A padded step, which is a row of its own, `wraps`: past the second of these positions it
    continues at the first.
    """

    layout: Layout
    steps: Steps
    phase: Phase
    num: int
    start: int
    size: int
    wraps: tuple[int, int] | None

    @property
    def places(self) -> tuple[Any, ...]:
        """What says where in an order the steps are."""
        return self.steps.epoch, self.start, self.size, self.wraps

    @property
    def shape(self) -> tuple[int, int]:
        """How many units each step has, and how many of them are no padding."""
        return self.size, self.steps.valid(self.start, self.start + self.size)

    def rest(self, num: int) -> Row:
        """Return the row without its first `num` steps."""
        return self._replace(num=self.num - num, start=self.start + num * self.size)

    def runs(self, num: int) -> Iterator[Run]:
        """Yield what the first `num` steps read, in order of reading."""
        for epoch, low, high in self.steps.positions(self.start, self.start + num * self.size):
            yield Run(epoch, low, high - low)


def rows_of(layout: Layout, steps: Steps, first: int, stop: int) -> Iterator[Row]:
    """Yield the steps [first, stop) of a sub-epoch; a padded one, always the last, by itself."""
    padded = steps.policy.repeats and steps.end > steps.stop
    for span in steps.spans:
        size, large = divmod(span.length, span.num_steps)
        last = span.num_steps - int(padded and span is steps.spans[-1])
        for low, high, each in (
            (0, large, size + 1),
            (large, last, size),
            (last, span.num_steps, size),
        ):
            begin, end = max(first, span.step + low), min(stop, span.step + high)
            if begin < end:
                wraps = (steps.first, steps.stop) if low == last else None
                phase = layout.phases[span.phase]
                yield Row(layout, steps, phase, end - begin, span.bound(begin), each, wraps)


# A step: how many steps that were compared come before it, and rows of both sides from it on.
At: TypeAlias = "tuple[int, Row | None, Row | None]"


class Found(NamedTuple):
    """The first step that reads other units, or that only one side has, and how many read the same.

    `ranks` is the first one that deals its units to ranks or inner batches otherwise, or reads
    others.
    """

    steps: At | None
    ranks: At | None
    num_same: int


def first_difference(
    pairs: Iterable[tuple[Row | None, Row | None, int]], units: Units, most: int | None = None
) -> Found:
    """Compare steps until they read other units, or `most` rows, or for as long as is feasible."""
    done, ranks = 0, None
    for number, (one, other, num) in enumerate(pairs):
        if number == most:
            units.left_off = True
            break
        if one is None or other is None:
            return Found((done, one, other), ranks or (done, one, other), done)
        equal, apart = units.same_steps(one, other, num)
        if equal and ranks is None and _dealt_otherwise(one, other):
            ranks = done, one, other
        done += equal
        if apart:
            parted = done, one.rest(equal), other.rest(equal)
            return Found(parted, ranks or parted, done)
        if equal < num:
            break
    return Found(None, ranks, done)


def _dealt_otherwise(one: Row, other: Row) -> bool:
    """Return whether steps that read the same differ in what ranks, or inner batches, get."""
    a, b = one.layout, other.layout
    ranks = a.partition.world_size or 1
    origins = one.steps.origin + one.start - other.steps.origin - other.start
    return (
        a.partition.world_size != b.partition.world_size
        or (a.balance != b.balance and max(ranks, *one.phase.inner_counts, 1) > 1)
        or (one.size % ranks > 0 and origins % ranks > 0)
        or one.phase.inner_counts != other.phase.inner_counts
    )


class Units:
    """What steps read, drawn where their places do not tell and as far as that is feasible.

    Attributes
    ----------
    left : int
        How many units may be drawn.
    left_off : bool
        Whether there was more to compare than that.
    """

    def __init__(self) -> None:
        self.left, self.left_off = MOST_DRAWN, False
        self._until: dict[tuple[int, int], tuple[int, int]] = {}  # by the ids of two orders

    def until(self, one: Order, other: Order) -> tuple[int, int]:
        """Return the epoch and position before which orders read the same, as they say."""
        key = id(one), id(other)
        if key not in self._until:
            alike = EPOCH_STOP, 0
            if one != other:
                alike = max(agrees_until(one, other.to_dict()), agrees_until(other, one.to_dict()))
            self._until[key] = alike
        return self._until[key]

    def same_steps(self, one: Row, other: Row, num: int) -> tuple[int, bool]:
        """Return how many of so many steps read the same, and whether the next is known not to."""
        orders = one.layout.order, other.layout.order
        if one.places == other.places and self.until(*orders)[0] == EPOCH_STOP:
            return num, False
        if one.shape != other.shape:
            return 0, True
        same, apart = self._same_units(orders, one.runs(num), other.runs(num))
        return same // one.size, apart

    def _same_units(
        self, orders: tuple[Order, Order], one: Iterator[Run], other: Iterator[Run]
    ) -> tuple[int, bool]:
        """Return how many units of two rows are the same, and whether the next is known not to."""
        done = 0
        for a, b, num in in_lockstep(one, other):
            at = _before(self.until(*orders), a, num) if a[:2] == b[:2] else 0
            while at < num:
                if self.left <= 0:
                    self.left_off = True
                    return done + at, False
                size = min(num - at, AT_ONCE, max(FIRST_DRAWN, done + at))
                self.left -= size
                equal = _drawn_same(orders, (a.rest(at), b.rest(at)), size)
                if equal < size:
                    return done + at + equal, True
                at += size
            done += num
        return done, False


def _before(until: tuple[int, int], run: Run, num: int) -> int:
    """Return how many of the first positions of a run come before a place."""
    epoch, position = until
    if run.epoch != epoch:
        return num if run.epoch < epoch else 0
    return min(num, max(0, position - run.start))


def _drawn_same(orders: tuple[Order, Order], runs: tuple[Run, Run], num: int) -> int:
    """Draw the first units of two runs, and return how many of them are the same."""
    one, other = (
        _units(order, run.epoch, run.start, run.start + num)
        for order, run in zip(orders, runs, strict=True)
    )
    if len(one) == len(other) and all(map(np.array_equal, one, other)):
        return num
    pairs = enumerate(zip(_each(*one), _each(*other), strict=True))
    return next((number for number, (a, b) in pairs if a != b), num)


def _units(order: Order, epoch: int, start: int, stop: int) -> list[Int64]:
    """Return the units at some positions: where each begins, their samples, and which parts."""
    units = [order.offsets(epoch, start, stop), order.take(epoch, start, stop)]
    return [*units, order.spans(epoch, start, stop)] if order.traits.cuts_samples else units


def _each(offsets: Int64, samples: Int64, spans: Int64 | None = None) -> list[list[Any]]:
    rows = samples.tolist()
    rows = rows if spans is None else list(zip(rows, spans.tolist(), strict=True))
    return [rows[low:high] for low, high in pairwise(offsets.tolist())]


def agrees_until(order: Order, saved: Mapping[str, Any]) -> tuple[int, int]:
    """Return the last place from which an order continues a different saved one, or (0, 0)."""

    def parted(epoch: int, position: int = 0) -> bool:
        try:
            return not order.continues(saved, epoch, position)
        except IndexPlanError:  # one of the last epochs, which cannot be read to its end
            return True

    if parted(0):
        return 0, 0
    if not parted(EPOCH_STOP - 1):
        return EPOCH_STOP, 0
    until = 1
    while not parted(until):  # not at once between far epochs, as each may take a while to know
        until = min(2 * until, EPOCH_STOP - 1)
    epoch = bisect_left(range(until), True, lo=until // 2, key=parted) - 1
    positions = range(order.num_units(epoch) + 1)
    return epoch, bisect_left(positions, True, key=lambda at: parted(epoch, at)) - 1
