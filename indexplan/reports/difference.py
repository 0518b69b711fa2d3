"""diff: what a change of a plan's fields does to the data order, by arithmetic alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple, overload

import numpy as np

from indexplan.answers import Answer
from indexplan.canonical import canonical_json
from indexplan.errors import wrong
from indexplan.keywords import named
from indexplan.ledger.ledger import Ledger
from indexplan.orders.base import Order
from indexplan.partition.account import Account, account, changes, undivided
from indexplan.partition.locate import find
from indexplan.partition.phases import Phase
from indexplan.partition.steps import Int64, Partition, steps_in
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.reports.runs_apart import (
    AT_ONCE,
    MOST_DRAWN,
    RunDifference,
    apart,
    in_lockstep,
    runs_apart,
)
from indexplan.seeds import EPOCH_STOP, check_epochs

Step = tuple[int, int, int]

FIRST_DRAWN = 2**10  # units drawn first of orders that differ, which mostly do at once
SHOWN = 12  # epochs whose counts are put into words


@dataclass(frozen=True, kw_only=True)
class Difference(Answer):
    """What `diff` found: from which step on a second plan reads other samples than a first.

    A step is named by its (epoch, sub_epoch, step) in the first plan, or in the second plan if the
    first has no more steps in that epoch.

    Parameters
    ----------
    epochs : tuple of int
        The epochs compared.
    same_order : bool
        Whether the orders are the same, so that each epoch has the same sequence of units.
    steps_from : (int, int, int) or None
        The first step that reads other positions of the order, or other units there; None if all
        read the same.
    ranks_from : (int, int, int) or None
        The first step that divides its
        units among the ranks in another way; None if none does.
    phases_from : (int, int, int) or None
        The first step with other parameters of the schedule, or other inner batches; None if none
        has. In each epoch, steps are compared until they read something else.
    resumable : bool
        Whether the second plan can continue from a cursor of the first: it can if the order and
        sub_epochs are the same.
    words : tuple of str
        The same in words, a line each.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
    >>> difference = ip.diff(plan, plan.replace(world_size=4, batch_size=32))
    >>> difference.steps_from, difference.ranks_from  # the same steps, dealt to fewer ranks
    (None, (0, 0, 0))
    """

    epochs: tuple[int, ...]
    same_order: bool
    steps_from: Step | None
    ranks_from: Step | None
    phases_from: Step | None
    resumable: bool
    words: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether every rank reads the same in every step; parameters may differ.

        False if the orders differ, even if no step does in the epochs compared.
        """
        return self.same_order and self.steps_from is None and self.ranks_from is None

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON types."""
        return {"same": self.same, **super().to_dict()}

    def __str__(self) -> str:
        return "\n".join(self.words)


@overload
def diff(a: Plan, b: Plan, epochs: Iterable[int] | None = None) -> Difference: ...


@overload
def diff(a: Ledger, b: Ledger) -> RunDifference: ...


@named
def diff(
    a: Plan | Ledger, b: Plan | Ledger, epochs: Iterable[int] | None = None
) -> Difference | RunDifference:
    """Find the first step at which two plans, or two runs, differ in what their ranks read.

    Use it before you change a plan in the middle of a run, or to find out why two runs differ.
    Ledgers are compared step by step of their runs. The rest is about plans: epochs are compared
    from the later of the plans' starts on. Steps are compared as intervals of the order, many at
    once, so that neither samples nor sub-epochs take long, however many there are. Only where
    the orders differ are units drawn, until one does, at most 2**24 of each.

    Parameters
    ----------
    a, b : Plan or Ledger
        Two plans with a world_size, or a global_batch_size; or two ledgers.
    epochs : iterable of int, optional
        The epochs whose steps are compared, 0 <= epoch < 2**32. By default those in which
        something can change: three from the later start on, those around each phase's start, and
        those from which one order continues the other with something else.

    Returns
    -------
    Difference or RunDifference
        Of plans, or of ledgers; `print(...)` it to read it.

    Raises
    ------
    IndexPlanError
        If they are not two plans or two ledgers; if a plan has neither a world_size nor a
        global_batch_size; if an epoch is out of range; or if none is from the later start on.

    Examples
    --------
    >>> import indexplan as ip
    >>> a = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
    >>> print(ip.diff(a, a.replace(remainder="drop"), epochs=[0]))
    order            the same
    compared         epoch 0
    global batches   different since epoch 0, sub-epoch 0, step 0
    ranks            different since epoch 0, sub-epoch 0, step 0
    phases           the same parameters and inner batches, as far as steps are the same
    epoch 0          7 steps instead of 8, 104 dropped instead of 0, 0 padded
    resume           the second plan can resume from any cursor of the first
    """
    if isinstance(a, Ledger) and isinstance(b, Ledger):
        if epochs is not None:
            raise wrong("epochs", "left out of ledgers", epochs, "compare two plans by epochs")
        return runs_apart(a, b)
    return _of_plans(_plan("a", a), _plan("b", b), epochs)


def _plan(what: str, value: Any) -> Plan:
    check_plan(what, value)
    plan: Plan = value
    return plan


def _of_plans(a: Plan, b: Plan, epochs: Iterable[int] | None) -> Difference:
    """Return what changes from a plan to another."""
    for plan in (a, b):
        layout_of(plan).check_sized()
    started = max(plan.start.epoch for plan in (a, b))
    compared = _changing(a, b, started) if epochs is None else sorted(set(check_epochs(epochs)))
    if not compared or compared[-1] < started:
        rule = f"at least one epoch from {started} on, where the later plan starts"
        raise wrong("epochs", rule, compared[:8], "leave it out for those that can differ")
    first: dict[str, Step] = {}
    units = Units(a.order, b.order)
    for epoch in compared:
        _compare(a, b, epoch, first, units)
    same_order = not units.differ
    resumable = same_order and a.sub_epochs == b.sub_epochs
    far = ", as far as steps are the same" if "steps" in first else ""
    ranks = ""
    if a.world_size != b.world_size:
        ranks = ": {} instead of {}".format(*(plan.world_size or "open" for plan in (b, a)))
    elif a.balance != b.balance:
        ranks = ": with another balance, or none"
    again = "; steps have other numbers" if a.sub_epochs != b.sub_epochs else ""
    sentences = {
        "order": _order_in_words(a, b),
        "compared": f"{'epoch' if len(compared) == 1 else 'epochs'} {_listed(compared)}",
        "global batches": _since(first.get("steps"), _same_in_words(units)) + again,
        "ranks": _since(first.get("ranks"), "the same share of each step") + ranks,
        "phases": _since(first.get("phases"), "the same parameters and inner batches" + far),
        **{f"epoch {epoch}": _account_in_words(a, b, epoch) for epoch in compared[:SHOWN]},
        "resume": "the second plan can resume from any cursor of the first"
        if resumable
        else _refusal(a, b),
    }
    return Difference(
        epochs=tuple(compared),
        same_order=same_order,
        steps_from=first.get("steps"),
        ranks_from=first.get("ranks"),
        phases_from=first.get("phases"),
        resumable=resumable,
        words=tuple(f"{name:<16} {text}" for name, text in sentences.items()),
    )


def _same_in_words(units: Units) -> str:
    if not units.differ:
        return "the same positions of the order"
    return "the same units" + f", in the first {MOST_DRAWN:,} that were drawn" * units.left_off


def _refusal(a: Plan, b: Plan) -> str:
    """Return which of the first plan's cursors the second refuses, in words."""
    at = b.order.ip_agrees_until(a.order.to_dict())
    differ = ["its order differs"] if at is None and a.order != b.order else []
    if a.sub_epochs != b.sub_epochs:
        differ.append(f"it has {b.sub_epochs} sub-epochs instead of {a.sub_epochs}")
    if differ:
        return f"the second plan can't resume from the first: {', and '.join(differ)}"
    assert at is not None  # noqa: S101 (else orders and sub-epochs are the same)
    until = f"up to epoch {at[0]}, position {at[1]}"
    return f"the second plan can resume from the first's cursors {until}, where its order changes"


def _changing(a: Plan, b: Plan, started: int) -> list[int]:
    """Return the epochs where plans can begin to differ: the first ones, and around each phase."""
    epochs = {started, started + 1, started + 2}
    for plan in (a, b):
        layout = layout_of(plan)
        for at in layout.partition.ats:
            epoch = layout.held(at)[0] if isinstance(at, int) else at[0]
            epochs |= {epoch - 1, epoch, epoch + 1}
    for one, other in ((a.order, b.order), (b.order, a.order)):
        if (parts := one.ip_agrees_until(other.to_dict())) is not None:
            epochs |= {parts[0], parts[0] + 1}
    return sorted(epoch for epoch in epochs if started <= epoch < EPOCH_STOP)


def _listed(epochs: list[int]) -> str:
    """Write epochs as 0 to 2, 7 to 9."""
    words = []
    for _, group in groupby(enumerate(epochs), lambda pair: pair[1] - pair[0]):
        row = [epoch for _, epoch in group]
        words.append(str(row[0]) if len(row) == 1 else f"{row[0]} to {row[-1]}")
    return ", ".join(words)


class _Row(NamedTuple):
    """Equal steps in a row: `num` of `size` places each, from `start` on.

    A padded step `wraps`: past the second of these positions it continues at the first.
    """

    num: int
    start: int
    size: int
    wraps: tuple[int, int] | None
    origin: int
    phase: Phase

    def rest(self, num: int) -> _Row:
        """Return the row without its first `num` steps."""
        return self._replace(num=self.num - num, start=self.start + num * self.size)

    def moved(self, places: int) -> _Row:
        """Return the same row, so many places later."""
        wraps = self.wraps and (self.wraps[0] + places, self.wraps[1] + places)
        return self._replace(start=self.start + places, wraps=wraps)


class _Epoch:
    """The steps of an epoch of a plan, in rows. Many sub-epochs cost no more than a few.

    Between two of its `cuts`, all sub-epochs are laid out alike, so the first tells all.
    """

    def __init__(self, plan: Plan, epoch: int, begin: int) -> None:
        self.layout, self.epoch, self.begin = layout_of(plan), epoch, begin
        self.num_units = plan.order.num_units(epoch)
        self.partition = self.layout.partition
        cuts = set(changes(self.partition, self.num_units, epoch))
        if begin < self.num_units:
            part = self.partition.sub_epoch_of(self.num_units, epoch, begin)
            cuts |= {part, part + 1}
        self.cuts = sorted(cuts)

    def rows(self, cuts: list[int] | None) -> Iterator[_Row]:
        """Yield the steps that start at or past `begin`.

        With `cuts`, only those of the sub-epochs at them, and of the others where all steps are
        equal.
        """
        crosses = self.partition.policy.crosses
        partition = undivided(self.partition, self.num_units) if crosses else self.partition
        chosen = [0, 1] if crosses else cuts or self.cuts
        for sub_epoch, until in pairwise(chosen):
            first, stop = partition.sub_epoch(self.num_units, self.epoch, sub_epoch)
            before = stop <= self.begin and not crosses
            resume = partition.resume
            if before or (resume is not None and (self.epoch, sub_epoch) < resume[:2]):
                continue
            rows = list(self._rows_in(partition, sub_epoch))
            several = until - sub_epoch if rows else 1
            if several > 1 and _fills(rows, first, stop):
                yield rows[0]._replace(num=rows[0].num * several)
                continue
            for number in range(several if cuts is None else 1):
                yield from (row.moved(number * (stop - first)) for row in rows)

    def _rows_in(self, partition: Partition, sub_epoch: int) -> Iterator[_Row]:
        steps = steps_in(partition, self.num_units, self.epoch, sub_epoch)
        padded = steps.policy.repeats and steps.end > steps.stop
        for span in steps.spans:
            size, large = divmod(span.length, span.num_steps)
            # the step that is padded, always the last one, is a row of its own
            last = int(padded and span is steps.spans[-1])
            cuts = [(0, large, size + 1), (large, span.num_steps - last, size)]
            cuts.append((span.num_steps - last, span.num_steps, size))
            for low, high, each in cuts:
                wraps = (steps.first, steps.stop) if low == span.num_steps - last else None
                start = span.bound(span.step + low) if low < high else 0
                row = _Row(
                    high - low, start, each, wraps, steps.origin, self.layout.phases[span.phase]
                )
                row = row.rest(max(0, -((start - self.begin) // each)))
                if row.num > 0:
                    yield row

    def step_from(self, place: int) -> Step | None:
        """Return the first step that starts at or past a place of the epoch; None if none does."""
        if place >= self.num_units:
            return None
        part = self.partition.sub_epoch_of(self.num_units, self.epoch, place)
        for sub_epoch in sorted({part, part + 1, *(cut for cut in self.cuts if cut > part)}):
            if sub_epoch < self.partition.sub_epochs:
                steps = self.layout.steps_in(self.epoch, sub_epoch)
                if (step := steps.after(place)) < steps.num_steps:
                    return self.epoch, sub_epoch, step
        return None

    def step_of(self, positions: Int64) -> Step | None:
        """Return the first step that reads one of these rising positions; None if none does."""
        for some in np.array_split(positions, range(1, len(positions), AT_ONCE)):
            where = find(self.partition, self.num_units, self.epoch, some)
            if (read := np.flatnonzero(where.step >= 0)).size:
                return tuple(int(part[read[0]]) for part in where[:3])  # type: ignore[return-value]
        return None


def _fills(rows: list[_Row], first: int, stop: int) -> bool:
    """Return whether equal steps read all of a sub-epoch, so that the next ones continue them."""
    row = rows[0]
    whole = (row.start, row.start + row.num * row.size) == (first, stop)
    return len(rows) == 1 and row.wraps is None and whole


def _compare(a: Plan, b: Plan, epoch: int, first: dict[str, Step], units: Units) -> None:
    """Note the first step of an epoch that differs, unless an earlier one was noted."""
    started, begin = max((plan.start.epoch, plan.start.position) for plan in (a, b))
    if epoch < started:
        return
    begin = begin if epoch == started else 0
    sides = [_Epoch(plan, epoch, begin) for plan in (a, b)]
    found, until = _compare_rows(a, b, sides)
    if units.differ and (step := sides[0].step_of(units.apart(epoch, begin, until))) is not None:
        found = {name: at for name, at in found.items() if at < step} | {"steps": step}
        found.setdefault("ranks", step)
    for name, at in found.items():
        first.setdefault(name, at)


def _compare_rows(a: Plan, b: Plan, sides: list[_Epoch]) -> tuple[dict[str, Step], int]:
    """Return the first steps of an epoch that differ, and the position up to which none does."""
    found: dict[str, Step] = {}

    def note(name: str, place: int) -> None:
        if name not in found:
            at = sides[0].step_from(place) or sides[1].step_from(place)
            assert at is not None  # noqa: S101 (one of them has a step there)
            found[name] = at

    cuts = None
    crosses = any(side.partition.policy.crosses for side in sides)
    if a.sub_epochs == b.sub_epochs and not crosses:
        cuts = sorted({*sides[0].cuts, *sides[1].cuts})
    otherwise = a.balance != b.balance
    for one, other, _ in in_lockstep(*(side.rows(cuts) for side in sides)):
        if one is None or other is None or one[1:4] != other[1:4]:  # start, size, wraps
            first = min(row.start for row in (one, other) if row is not None)
            note("steps", first)
            note("ranks", first)
            return found, first
        if a.world_size != b.world_size or otherwise or _dealt_otherwise(one, other, a.world_size):
            note("ranks", one.start)
        if a.balance is not None and one.phase.inner_counts != other.phase.inner_counts:
            note("ranks", one.start)  # balance evens out inner batches, too
        if _inner(one.phase) != _inner(other.phase):
            note("phases", one.start)
    return found, min(side.num_units for side in sides)


class Units:
    """What the orders of two plans read, drawn where they differ and as far as that is feasible."""

    def __init__(self, a: Order, b: Order) -> None:
        self.differ = a != b
        self.left_off = False  # as too many units would have to be drawn
        self._orders, self._saved = (a, b), (a.to_dict(), b.to_dict())
        self._drawn = 0

    def apart(self, epoch: int, start: int, stop: int) -> Int64:
        """Return some positions in [start, stop) that read other units; among them the first."""
        places, many = range(start, stop + 1), FIRST_DRAWN
        done = max(
            start, start + bisect_left(places, True, key=lambda at: not self._same(epoch, at)) - 1
        )
        while done < stop and not self.left_off:
            until = min(stop, done + many)
            if (apart := self._apart(epoch, done, until)).size:
                return apart
            self._drawn += until - done
            self.left_off = self._drawn >= MOST_DRAWN and until < stop
            done, many = until, min(2 * many, AT_ONCE)
        return np.empty(0, np.int64)

    def _same(self, epoch: int, position: int) -> bool:
        """Return whether it is known without a draw that both read the same before a position."""
        (a, b), (saved, also) = self._orders, self._saved
        return a.continues(also, epoch, position) or b.continues(saved, epoch, position)

    def _apart(self, epoch: int, start: int, stop: int) -> Int64:
        parts = [_units(order, epoch, start, stop) for order in self._orders]
        if len({len(part) for part in parts}) == 1 and all(map(np.array_equal, *parts)):
            return np.empty(0, np.int64)
        one, other = (_each(*part) for part in parts)
        apart = [x != y for x, y in zip(one, other, strict=True)]
        return start + np.flatnonzero(apart)


def _units(order: Order, epoch: int, start: int, stop: int) -> list[Int64]:
    """Return the units at some positions: where each begins, their samples, and which parts."""
    units = [order.offsets(epoch, start, stop), order.take(epoch, start, stop)]
    return [*units, order.spans(epoch, start, stop)] if order.traits.cuts_samples else units


def _each(offsets: Int64, samples: Int64, spans: Int64 | None = None) -> list[list[Any]]:
    rows = samples.tolist()
    rows = rows if spans is None else list(zip(rows, spans.tolist(), strict=True))
    return [rows[low:high] for low, high in pairwise(offsets.tolist())]


def _dealt_otherwise(one: _Row, other: _Row, world_size: int | None) -> bool:
    """Return whether ranks count places from another origin, in steps where that matters."""
    ranks = world_size or 1
    return one.size % ranks > 0 and (one.origin - other.origin) % ranks > 0


def _inner(phase: Phase) -> str:
    return canonical_json([phase.inner_counts, dict(phase.parameters)])


def _since(step: Step | None, same: str) -> str:
    if step is None:
        return same
    epoch, sub_epoch, number = step
    return f"different since epoch {epoch}, sub-epoch {sub_epoch}, step {number}"


def _order_in_words(a: Plan, b: Plan) -> str:
    if a.order == b.order:
        return "the same"
    found = apart(a.order.to_dict(), b.order.to_dict())
    return "different: " + ", ".join(f"{path or 'algorithm'} {words}" for path, words in found)


def _account_in_words(a: Plan, b: Plan, epoch: int) -> str:
    parts = []
    accounts = [_account(plan, epoch) for plan in (a, b)]
    for name in ("steps", "dropped", "excluded", "padded"):
        before, after = (getattr(account, f"num_{name}") for account in accounts)
        if name == "excluded" and not (before or after):
            continue  # as most runs never do either
        instead = "" if before == after else f" instead of {before:,}"
        parts.append(f"{after:,} {name}{instead}")
    return ", ".join(parts)


def _account(plan: Plan, epoch: int) -> Account:
    """Return an epoch's account without each rank's part, as no world is too uneven for that."""
    whole = replace(layout_of(plan).partition, world_size=None)
    return account(whole, plan.order.num_units(epoch), epoch, range(plan.sub_epochs))
