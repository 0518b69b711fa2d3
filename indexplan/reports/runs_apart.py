"""diff of two ledgers: the first step at which two runs part, and why."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from indexplan.answers import Answer
from indexplan.errors import counted
from indexplan.ledger.history import History, NamedPlan, Segment
from indexplan.ledger.ledger import Ledger
from indexplan.orders.columns import is_identity
from indexplan.partition.steps import Int64, Resume, Steps
from indexplan.plan.layout import Layout

AT_ONCE = 2**16  # units that are drawn at a time
MOST_DRAWN = 2**24  # units of each run that are drawn: for a Shuffle some seconds
LONGEST = 60  # characters of a value in words


@dataclass(frozen=True, kw_only=True)
class RunDifference(Answer):
    """What `diff` found of two ledgers: the first step at which their runs part, and why.

    A run that has only got further than the other has not parted from it. Steps are those of the
    run, as in all of `Ledger`.

    Parameters
    ----------
    num_steps : (int, int)
        How many steps of each run count.
    num_compared : int
        How many steps, from the first on, were compared: up to where the runs part, or to the end
        of the shorter one; fewer if too many units would have to be drawn.
    steps_from : int or None
        The first step that reads other units, or the same in another sequence; None if none does.
    ranks_from : int or None
        The first step that divides its units among ranks or inner batches in another way, or reads
        others; None if none does.
    why : tuple of str
        What differs at `steps_from`, or else at `ranks_from`: fields of the two plans, such as
        "order.seed" and "world_size"; "dataset" and its fields; or "place", if equal plans stand at
        different places.
    words : tuple of str
        The same in words, a line each.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
    >>> one, other = ip.Ledger("one.ledger"), ip.Ledger("other.ledger")
    >>> one.record(plan, plan.cursor(epoch=2, step=0))
    >>> other.record(plan, plan.cursor(epoch=1, step=5))
    >>> smaller = plan.replace(world_size=2, batch_size=20).resume(other.cursor)
    >>> other.record(smaller, smaller.cursor(epoch=2, step=0))
    >>> difference = ip.diff(one, other)
    >>> difference.steps_from, difference.ranks_from, difference.why
    (None, 30, ('batch_size', 'world_size'))
    """

    num_steps: tuple[int, int]
    num_compared: int
    steps_from: int | None
    ranks_from: int | None
    why: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every rank read the same in every step, as far as the shorter run goes."""
        return self.ranks_from is None and self.num_compared == min(self.num_steps)

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON types."""
        return {"same": self.same, **super().to_dict()}

    def __str__(self) -> str:
        return "\n".join(self.words)


def runs_apart(a: Ledger, b: Ledger) -> RunDifference:
    """Return where the runs of two ledgers part."""
    walk = _Walk(a.history, b.history)
    walk.go()
    return RunDifference(
        num_steps=(a.step, b.step),
        num_compared=walk.compared,
        steps_from=walk.steps_from,
        ranks_from=walk.ranks_from,
        why=tuple(walk.why_ranks if walk.steps_from is None else walk.why),
        words=tuple(f"{name:<16} {text}" for name, text in _sentences(a, b, walk)),
    )


class _Row(NamedTuple):
    """Steps of one size of a sub-epoch, `num` of them; they start at places `size` apart."""

    steps: Steps
    layout: Layout
    first: int  # the plan's number of the first
    num: int
    size: int

    @property
    def start(self) -> int:
        return self.steps.interval(self.first)[0]

    @property
    def positions(self) -> tuple[int, ...]:
        """What says where in an order the steps are."""
        steps = self.steps
        wraps = (steps.first, steps.stop) if steps.policy.repeats else (0, 0)
        return steps.epoch, self.start, self.size, *wraps

    def rest(self, num: int) -> _Row:
        """Return the row without its first steps."""
        return self._replace(first=self.first + num, num=self.num - num)

    def runs(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Return the intervals of positions of steps of the row: (epoch, start, stop) of each."""
        begin = self.start
        return self.steps.positions(begin + start * self.size, begin + stop * self.size)

    def place(self, num: int) -> tuple[int, int]:
        """Return an epoch and position that no step of the first `num` reads past."""
        if self.steps.policy.repeats:
            return self.steps.epoch, self.steps.stop
        epoch, _, stop = self.runs(num - 1, num)[-1]
        return epoch, stop

    def units(self, start: int, stop: int) -> list[Int64]:
        """Return what some steps read, position by position."""
        found: list[list[Int64]] = []
        order = self.layout.order
        for epoch, low, high in self.runs(start, stop):
            each = [order.take(epoch, low, high)]
            if order.deals_bins:
                each.append(np.diff(order.offsets(epoch, low, high)))
            if order.traits.cuts_samples:
                each.append(order.spans(epoch, low, high))
            found.append(each)
        return [np.concatenate(column) for column in zip(*found, strict=True)]


def in_lockstep(one: Iterator[Any], other: Iterator[Any]) -> Iterator[tuple[Any, Any, int]]:
    """Yield pairs of rows of equally many steps, and how many; last what only one of them has."""
    a, b = next(one, None), next(other, None)
    while a is not None and b is not None:
        num = min(a.num, b.num)
        yield a, b, num
        a = a.rest(num) if a.num > num else next(one, None)
        b = b.rest(num) if b.num > num else next(other, None)
    if a is not None or b is not None:
        yield a, b, 0


def _rows(history: History, segment: Segment, num_steps: int) -> Iterator[_Row]:
    """Yield the first steps of a segment as rows of equal steps."""
    layout = history.plans[segment.plan].layout
    for part in history.parts(segment._replace(steps=num_steps)):
        for span in part.steps.spans:
            size, large = divmod(span.length, span.num_steps)
            for low, high, each in ((0, large, size + 1), (large, span.num_steps, size)):
                first = max(part.first, span.step + low)
                num = min(part.stop, span.step + high) - first
                if num > 0:
                    yield _Row(part.steps, layout, first, num, each)


class _Orders:
    """The orders of two plans: whether they read the same up to a place."""

    def __init__(self, one: NamedPlan, other: NamedPlan) -> None:
        self.same = one.order == other.order
        self._both = [(each.plan.order, each.line.plan["order"]) for each in (one, other)]

    def continues(self, epoch: int, position: int) -> bool:
        """Return whether both are known to read the same before a place, without a draw."""
        (one, saved), (other, also) = self._both
        return one.continues(also, epoch, position) or other.continues(saved, epoch, position)


class _Walk:
    """Two runs side by side, segment by segment, until their steps read other units."""

    def __init__(self, a: History, b: History) -> None:
        self.histories = a, b
        self.compared = 0
        self.steps_from: int | None = None
        self.ranks_from: int | None = None
        self.why: dict[str, str] = {}  # why steps read other units: what differs, and how
        self.why_ranks: dict[str, str] = {}
        self.left_off = False  # as too many units would have to be drawn
        self._drawn = 0

    def go(self) -> None:
        """Compare them."""
        left = [list(reversed(history.live)) for history in self.histories]
        while all(left) and self.steps_from is None and not self.left_off:
            pair = left[0].pop(), left[1].pop()
            num = min(each.steps for each in pair)
            self._compare(*pair, num)
            for history, segments, each in zip(self.histories, left, pair, strict=True):
                if each.steps > num:
                    segments.append(history.cut(each, each.step + num)[1])

    def _compare(self, one: Segment, other: Segment, num: int) -> None:
        """Compare the first `num` steps of two segments, which start at the same step."""
        pair = (one, other)
        plans = [
            history.plans[each.plan] for history, each in zip(self.histories, pair, strict=True)
        ]
        a, b = (
            _data_of(*each) for each in zip(self.histories, (one.plan, other.plan), strict=True)
        )
        if a and b and a != b:
            self._part(dict(apart(a, b, "dataset")))
            return
        if plans[0].fingerprint == plans[1].fingerprint and one.start == other.start:
            self.compared += num  # as an unchanged plan goes on with its steps wherever it was cut
            return
        orders = _Orders(*plans)
        both = zip(self.histories, pair, strict=True)
        rows = [_rows(history, each, num) for history, each in both]
        for row, beside, least in in_lockstep(*rows):
            same = self._same(orders, row, beside, least)
            if same and self.ranks_from is None and _dealt_otherwise(row, beside):
                self.ranks_from = self.compared
                self.why_ranks = self._reasons(pair)
            self.compared += same
            if same < least:
                if not self.left_off:
                    self._part(self._reasons(pair))
                return

    def _part(self, why: dict[str, str]) -> None:
        """Note that the next step reads other units."""
        self.steps_from, self.why = self.compared, why
        self.ranks_from = self.compared if self.ranks_from is None else self.ranks_from

    def _same(self, orders: _Orders, one: _Row, other: _Row, num: int) -> int:
        """Return how many of the first `num` steps of two rows read the same units."""
        done = 0
        if one.positions == other.positions:
            if orders.same:
                return num
            counts = range(1, num + 1)
            done = bisect_left(counts, True, key=lambda n: not orders.continues(*one.place(n)))
        many = max(1, AT_ONCE // one.size) if one.size == other.size else 1
        while done < num:
            stop = min(num, done + many)
            self._drawn += (stop - done) * one.size
            if self._drawn > MOST_DRAWN and stop > 1:
                self.left_off = True
                return done
            if not _equal(one, other, done, stop):
                while stop - done > 1:  # as all before `done` are equal, the first that is not
                    middle = (done + stop) // 2
                    done, stop = (
                        (middle, stop) if _equal(one, other, done, middle) else (done, middle)
                    )
                return done
            done = stop
        return done

    def _reasons(self, pair: tuple[Segment, Segment]) -> dict[str, str]:
        """Return what differs between two segments, at the step that is compared."""
        both = list(zip(self.histories, pair, strict=True))
        a, b = (history.plans[each.plan].line.plan for history, each in both)
        if found := dict(apart(a, b)):
            return found
        one, other = (history.place_in(each, self.compared) for history, each in both)
        return {"place": f"{_placed(other)} instead of {_placed(one)}"}


def _equal(one: _Row, other: _Row, start: int, stop: int) -> bool:
    """Return whether some steps of two rows read the same units, by drawing them."""
    found, beside = one.units(start, stop), other.units(start, stop)
    return len(found) == len(beside) and all(map(np.array_equal, found, beside))


def _dealt_otherwise(one: _Row, other: _Row) -> bool:
    """Return whether ranks get other shares of steps that read the same."""
    world_size = one.layout.world_size
    counts = [each.layout.phase(each.steps, each.first).inner_counts for each in (one, other)]
    origins = [each.steps.origin + each.start for each in (one, other)]
    return (
        world_size != other.layout.world_size
        or one.layout.balance != other.layout.balance
        or counts[0] != counts[1]
        or (one.size % world_size > 0 and (origins[0] - origins[1]) % world_size > 0)
    )


def _data_of(history: History, number: int) -> dict[str, Any] | None:
    """Return the dataset that the line of a plan names, or else the first that any line names."""
    if (data := history.plans[number].line.data) is not None or not history.newest_data:
        return data
    return next(each.line.data for each in history.plans.values() if each.line.data is not None)


def apart(one: Any, other: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield which fields of two values of JSON differ: their paths, and how in words."""
    if one == other:
        return
    columns = is_identity(one) and is_identity(other)
    objects = isinstance(one, Mapping) and isinstance(other, Mapping) and not columns
    if objects and one.get("algorithm") == other.get("algorithm"):
        for name in sorted({**one, **other}):
            inside = f"{path}.{name}" if path else name
            yield from apart(one.get(name), other.get(name), inside)
        return
    if objects:
        one, other = one.get("algorithm"), other.get("algorithm")
    yield path, f"{_short(other)} instead of {_short(one)}"


def _short(value: Any) -> str:
    if is_identity(value) and isinstance(value["sha256"], str) and isinstance(value["length"], int):
        return f"the column {value['sha256'][:16]}... of {value['length']:,}"
    text = "none" if value is None else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _placed(place: Resume) -> str:
    epoch, sub_epoch, step, position = place
    return f"epoch {epoch}, sub-epoch {sub_epoch}, step {step}, position {position:,}"


def _sentences(a: Ledger, b: Ledger, walk: _Walk) -> Iterator[tuple[str, str]]:
    """Yield what was found, line by line."""
    yield "runs", f"{counted(a.step, 'step')} in {a.path}, {b.step:,} in {b.path}"
    yield "compared", counted(walk.compared, "step")
    same = "the same units in the same sequence"
    if walk.left_off:
        same += "; then too many units would have to be drawn"
    yield "steps", same if walk.steps_from is None else f"different since step {walk.steps_from:,}"
    yield from ((f"  {name}", text) for name, text in walk.why.items())
    if walk.ranks_from is None:
        yield "ranks", "the same share of each step"
    else:
        yield "ranks", f"different since step {walk.ranks_from:,}"
    yield from ((f"  {name}", text) for name, text in walk.why_ranks.items())
