"""diff: the first step at which two plans or two runs read something else, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

from indexplan.answers import Answer
from indexplan.errors import counted, differences, invalid, value_in_words
from indexplan.keywords import named
from indexplan.ledger.history import History, NamedPlan, Segment, history_of
from indexplan.ledger.ledger import Ledger
from indexplan.ledger.tail import Tail, place_of
from indexplan.ledger.walking import place_after
from indexplan.partition.account import Account, account, changes, undivided
from indexplan.partition.locate import find
from indexplan.partition.steps import Int64, Resume, steps_in
from indexplan.plan.cursor import cursor_of
from indexplan.plan.plan import Plan, columns_of, layout_of
from indexplan.reports.lockstep import (
    MOST_DRAWN,
    Row,
    Run,
    Units,
    agrees_until,
    first_difference,
    in_lockstep,
    rows_of,
)
from indexplan.seeds import EPOCH_STOP, check_epochs

Step: TypeAlias = tuple[int, int, int]
Number = TypeVar("Number")

SHOWN = 12  # epochs whose counts are put into words
DEALT, PHASES = ("ranks", "inner"), ("inner", "parameters")  # in which respects steps may differ
DEALT_ALIKE = "the same share of each step"
LEFT_OFF = "; then too many units would have to be drawn"


@dataclass(frozen=True, kw_only=True)
class Difference(Answer, Generic[Number]):
    """What `diff` found: from which step on a second plan, or run, reads other than a first.

    Of two plans a step is named by its (epoch, sub_epoch, step) in the first one, or in the second
    if the first has no more steps in that epoch. If one of both is a ledger, steps are those of the
    run, counted from its beginning. A run that has only got further has not parted from the other.

    Parameters
    ----------
    same : bool
        Whether every rank reads the same in every step that was compared; parameters may differ.
        False if orders of plans differ, even if no step does in the epochs compared, and if too
        many units of runs would have to be drawn.
    steps_from : (int, int, int) or int or None
        The first step that reads other positions of the order, or other units there; None if all
        read the same. Of runs: other units, or the same in another sequence.
    ranks_from : (int, int, int) or int or None
        The first step that divides its units among the ranks in another way, or reads others; None
        if none does. Of runs, also one that divides them among inner batches in another way.
    phases_from : (int, int, int) or int or None
        The first step with other parameters of the schedule, or other inner batches; None if none
        has. In each epoch, or run, steps are compared until they read something else.
    why : tuple of str
        What differs, such as "order.seed" and "world_size": of two plans all fields that do; of
        runs the fields of their plans at `steps_from`, or else at `ranks_from`; or "dataset" and
        its fields; or "place", if equal plans stand at different places.
    epochs : tuple of int
        The epochs compared, of two plans.
    same_order, resumable : bool or None
        Whether the orders of two plans are the same, so that each epoch has the same sequence of
        units, and whether the second plan can continue from any cursor of the first.
    num_steps : (int, int) or None
        How many steps of each run count.
    num_compared : int or None
        How many steps of runs, from the first on, read the same: up to where they part, or to the
        end of the shorter one; fewer if too many units would have to be drawn.
    words : tuple of str
        The same in words, a line each.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
    >>> difference = ip.diff(plan, plan.replace(world_size=4, batch_size=32))
    >>> difference.steps_from, difference.ranks_from  # the same steps, dealt to fewer ranks
    (None, (0, 0, 0))
    >>> ledger = ip.Ledger("run.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=5))
    >>> smaller = plan.replace(batch_size=[ip.Phase(0, 16), ip.Phase((1, 0), 8)])
    >>> difference = ip.diff(ledger, smaller)
    >>> difference.steps_from, difference.why  # 8 steps of epoch 0 were the same
    (8, ('batch_size',))
    """

    same: bool
    steps_from: Number | None
    ranks_from: Number | None
    phases_from: Number | None
    why: tuple[str, ...]
    epochs: tuple[int, ...] = ()
    same_order: bool | None = None
    resumable: bool | None = None
    num_steps: tuple[int, int] | None = None
    num_compared: int | None = None
    words: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.words)


@overload
def diff(a: Plan, b: Plan, epochs: Iterable[int] | None = None) -> Difference[Step]: ...


@overload
def diff(a: Ledger, b: Plan | Ledger) -> Difference[int]: ...


@overload
def diff(
    a: Plan | Ledger, b: Plan | Ledger, epochs: Iterable[int] | None = None
) -> Difference[Any]: ...


@named
def diff(
    a: Plan | Ledger, b: Plan | Ledger, epochs: Iterable[int] | None = None
) -> Difference[Step] | Difference[int]:
    """Find the first step at which two plans, or two runs, differ in what their ranks read.

    Use it before you change a plan in the middle of a run, or to find out why two runs differ, or
    whether a run has read what a plan says: next to a ledger, a plan is a run from where it starts.
    Runs are compared step by step. Of two plans, epochs are compared from the later of their starts
    on; steps are compared as intervals of the order, many at once, so that neither samples nor
    sub-epochs take long, however many there are. Only where the orders differ are units drawn,
    until one does, at most 2**24 of each.

    Parameters
    ----------
    a, b : Plan or Ledger
        Plans with a world_size, or of two plans a global_batch_size; or ledgers.
    epochs : iterable of int, optional
        The epochs of two plans whose steps are compared, 0 <= epoch < 2**32. By default those in
        which something can change: three from the later start on, those around each phase's start,
        and those from which one order continues the other with something else.

    Returns
    -------
    Difference
        `print(...)` it to read it.

    Raises
    ------
    IndexPlanError
        If they are neither plans nor ledgers; if a plan has neither a world_size nor a
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
    given: dict[str, Any] = {"a": a, "b": b}
    for name, value in given.items():
        if not isinstance(value, Plan | Ledger):
            cure = "pass indexplan.Plan(...), indexplan.load(path) or indexplan.Ledger(path)"
            raise invalid(name, "a Plan or a Ledger", value, cure)
    if isinstance(a, Plan) and isinstance(b, Plan):
        return _of_plans(a, b, epochs)
    if epochs is not None:
        raise invalid("epochs", "left out of ledgers", epochs, "compare two plans by epochs")
    return _of_runs(a, b)


# --- two plans


def _of_plans(a: Plan, b: Plan, epochs: Iterable[int] | None) -> Difference[Step]:
    """Return what changes from a plan to another."""
    for plan in (a, b):
        layout_of(plan).check_sized()
    started = max(plan.start.epoch for plan in (a, b))
    compared = _changing(a, b, started) if epochs is None else sorted(set(check_epochs(epochs)))
    if not compared or compared[-1] < started:
        rule = f"at least one epoch from {started} on, where the later plan starts"
        raise invalid("epochs", rule, compared[:8], "leave it out for those that can differ")
    first: dict[str, Step] = {}
    units = Units(a.order, b.order, MOST_DRAWN)
    for epoch in compared:
        for name, at in _in_epoch(a, b, epoch, units).items():
            first.setdefault(name, at)
    steps, ranks = first.get("steps"), first.get("ranks")
    phases = _first(first, PHASES)
    resumable = not units.differ and a.sub_epochs == b.sub_epochs
    again = "; steps have other numbers" if a.sub_epochs != b.sub_epochs else ""
    far = ", as far as steps are the same" if steps else ""
    sentences = {
        "order": _order_in_words(a, b),
        "compared": f"{'epoch' if len(compared) == 1 else 'epochs'} {_listed(compared)}",
        "global batches": _since(steps, _same_in_words(units)) + again,
        "ranks": _since(ranks, DEALT_ALIKE) + _ranks_in_words(a, b),
        "phases": _since(phases, f"the same parameters and inner batches{far}"),
        **{f"epoch {epoch}": _account_in_words(a, b, epoch) for epoch in compared[:SHOWN]},
        "resume": _resume_in_words(a, b),
    }
    return Difference(
        same=not (units.differ or steps or ranks),
        steps_from=steps,
        ranks_from=ranks,
        phases_from=phases,
        why=tuple(name for name, _, _ in differences(a.to_dict(), b.to_dict())),
        epochs=tuple(compared),
        same_order=not units.differ,
        resumable=resumable,
        words=_in_lines(sentences.items()),
    )


def _changing(a: Plan, b: Plan, started: int) -> list[int]:
    """Return the epochs where plans can begin to differ: the first ones, and around each phase."""
    epochs = {started, started + 1, started + 2}
    for plan in (a, b):
        layout = layout_of(plan)
        for at in layout.partition.ats:
            epoch = layout.partition.extent.holding(at)[0] if isinstance(at, int) else at[0]
            epochs |= {epoch - 1, epoch, epoch + 1}
    for one, other in ((a.order, b.order), (b.order, a.order)):
        if (parts := agrees_until(one, other.to_dict())) is not None:
            epochs |= {parts[0], parts[0] + 1}
    return sorted(epoch for epoch in epochs if started <= epoch < EPOCH_STOP)


class _Epoch:
    """The steps of an epoch of a plan, in rows. Many sub-epochs cost no more than a few.

    Between two of its `cuts`, all sub-epochs are laid out alike, so the first tells all.
    """

    def __init__(self, plan: Plan, epoch: int, begin: int) -> None:
        self.order, self.layout, self.epoch, self.begin = plan.order, layout_of(plan), epoch, begin
        self.num_units = plan.order.num_units(epoch)
        self.partition = self.layout.partition
        self.crosses = self.partition.policy.crosses
        cuts = set(changes(self.partition, epoch))
        if begin < self.num_units:
            part = self.partition.sub_epoch_of(epoch, begin)
            cuts |= {part, part + 1}
        self.cuts = sorted(cuts)

    def rows(self, cuts: list[int] | None) -> Iterator[Row]:
        """Yield the steps that start at or past `begin`.

        With `cuts`, only those of the sub-epochs at them, and of the others where all steps are
        equal.
        """
        crosses = self.crosses
        partition = undivided(self.partition) if crosses else self.partition
        chosen = [0, 1] if crosses else cuts or self.cuts
        for sub_epoch, until in pairwise(chosen):
            first, stop = partition.sub_epoch(self.epoch, sub_epoch)
            before = stop <= self.begin and not crosses
            resume = partition.resume
            if before or (resume is not None and (self.epoch, sub_epoch) < resume[:2]):
                continue
            steps = steps_in(partition, self.epoch, sub_epoch)
            rows = [
                row.rest(skipped) if (skipped := self._before(row)) > 0 else row
                for row in rows_of(self.layout, steps, steps.first_step, steps.num_steps)
                if self._before(row) < row.num
            ]
            several = until - sub_epoch if rows else 1
            if several > 1 and _fills(rows, first, stop):
                yield rows[0]._replace(num=rows[0].num * several)
                continue
            for number in range(several if cuts is None else 1):
                yield from (row.moved(number * (stop - first)) for row in rows)

    def _before(self, row: Row) -> int:
        """Return how many steps of a row, or more, start before `begin`."""
        return -((row.start - self.begin) // row.size)

    @property
    def end(self) -> int:
        """The place at which the epoch ends, or its last step, which may read on into the next."""
        if not self.crosses:
            return self.num_units
        whole = undivided(self.partition)
        return max(self.num_units, steps_in(whole, self.epoch, 0).end)

    def runs(self, until: int) -> Iterator[Run]:
        """Yield the positions of the places from `begin` on, epoch by epoch."""
        start, epoch = self.begin, self.epoch
        while start < until and epoch < EPOCH_STOP:
            num_units = self.order.num_units(epoch)
            if start < num_units:
                yield Run(epoch, start, min(until, num_units) - start)
            start, until, epoch = max(0, start - num_units), until - num_units, epoch + 1

    def step_of(self, places: Int64) -> Step | None:
        """Return the first step that reads one of these rising places; None if none does."""
        positions = np.minimum(places, self.num_units - 1)  # the last step reads those past it
        where = find(self.partition, self.epoch, positions)
        read = np.flatnonzero(where.step >= 0)[:1]
        names = (part[read].tolist() for part in where[:3])
        return next(zip(*names, strict=True), None)


def _fills(rows: list[Row], first: int, stop: int) -> bool:
    """Return whether equal steps read all of a sub-epoch, so that the next ones continue them."""
    row = rows[0]
    whole = (row.start, row.start + row.num * row.size) == (first, stop)
    return len(rows) == 1 and row.wraps is None and whole


def _in_epoch(a: Plan, b: Plan, epoch: int, units: Units) -> dict[str, Step]:
    """Return the first step of an epoch that differs in each respect."""
    started, begin = max((plan.start.epoch, plan.start.position) for plan in (a, b))
    if epoch < started:
        return {}
    begin = begin if epoch == started else 0
    sides = [_Epoch(plan, epoch, begin) for plan in (a, b)]
    cuts = None
    if a.sub_epochs == b.sub_epochs and not any(side.crosses for side in sides):
        cuts = sorted({*sides[0].cuts, *sides[1].cuts})
    rows, _ = first_difference(in_lockstep(*(side.rows(cuts) for side in sides)))
    found: dict[str, Step] = {}
    for name, (_, *pair) in rows.items():
        side, row = next((side, row) for side, row in zip(sides, pair, strict=True) if row)
        step = side.step_of(np.array([row.start]))
        assert step is not None  # noqa: S101 (which is where the row starts)
        found[name] = step
    until = min(
        [row.start for row in rows["steps"][1:] if row]
        if "steps" in rows
        else [side.end for side in sides]
    )
    if units.differ:
        blocks = units.apart(*(side.runs(until) for side in sides))
        read = (sides[0].step_of(begin + offsets) for offsets in blocks)
        if (first := next((at for at in read if at is not None), None)) is not None:
            found = {name: at for name, at in found.items() if at < first} | {"steps": first}
            found.setdefault("ranks", first)
    return found


# --- two runs, of which one may be a plan


class _Stretch(NamedTuple):
    """Steps of a run that one plan read without a break."""

    history: History
    segment: Segment

    @property
    def num(self) -> int:
        """How many steps these are."""
        return self.segment.steps

    @property
    def named(self) -> NamedPlan:
        """The plan, as a line names it."""
        return self.history.plans[self.segment.plan]

    def rest(self, num: int) -> _Stretch:
        """Return the stretch without its first steps."""
        return self._replace(segment=self.history.cut(self.segment, self.segment.step + num)[1])

    def rows(self, num: int) -> Iterator[Row]:
        """Yield the first steps as rows of equal steps."""
        for part in self.history.parts(self.segment._replace(steps=num)):
            yield from rows_of(self.named.layout, part.steps, part.first, part.stop)

    @property
    def data(self) -> dict[str, Any] | None:
        """The dataset that the line of the plan names, or else the first that any line names."""
        named = (self.named, *self.history.plans.values())
        return next((each.line.data for each in named if each.line.data is not None), None)


def _of_runs(a: Plan | Ledger, b: Plan | Ledger) -> Difference[int]:
    """Return where two runs part."""
    longest = max(each.step for each in (a, b) if isinstance(each, Ledger))
    histories = [
        each.history if isinstance(each, Ledger) else _of_plan(each, longest) for each in (a, b)
    ]
    first: dict[str, int] = {}
    why: dict[str, dict[str, str]] = {}
    compared, left = 0, MOST_DRAWN
    for one, other, num in in_lockstep(*map(_stretches, histories)):
        if one is None or other is None:  # a run that has got further has not parted
            break
        found, same, left = _in_stretch(one, other, num, left)
        for name, at in found.items():
            if name not in first:
                first[name] = compared + at
                why[name] = _why(one, other, compared + at)
        compared += same
        if same < num:
            break
    steps, ranks, phases = first.get("steps"), _first(first, DEALT), _first(first, PHASES)
    least = min(history.step for history in histories)
    known = steps is not None or compared == least
    said = "the same units in the same sequence" + LEFT_OFF * (not known)
    parted = why.get("steps", {})
    dealt = {} if ranks == steps else next(why[each] for each in DEALT if first.get(each) == ranks)
    in_all = tuple(history.step for history in histories)
    paths = [each.path if isinstance(each, Ledger) else "the plan" for each in (a, b)]
    sentences = [
        ("runs", f"{counted(in_all[0], 'step')} in {paths[0]}, {in_all[1]:,} in {paths[1]}"),
        ("compared", counted(compared, "step")),
        ("steps", said if steps is None else f"different since step {steps:,}"),
        *((f"  {name}", text) for name, text in parted.items()),
        ("ranks", DEALT_ALIKE if ranks is None else f"different since step {ranks:,}"),
        *((f"  {name}", text) for name, text in dealt.items()),
    ]
    return Difference(
        same=ranks is None and compared == least,
        steps_from=steps,
        ranks_from=ranks,
        phases_from=phases,
        why=tuple(parted or dealt),
        num_steps=(in_all[0], in_all[1]),
        num_compared=compared,
        words=_in_lines(sentences),
    )


def _of_plan(plan: Plan, num_steps: int) -> History:
    """Return the history of a run that reads so many steps of a plan from where it starts."""
    layout_of(plan).world_size  # noqa: B018 (raises if it is open)
    stop = place_after(layout_of(plan), place_of(plan.start), num_steps)
    lines, _ = Tail().record(plan, cursor_of(plan.order, stop, plan.sub_epochs), {})
    columns = columns_of(plan)
    return history_of(lines, lambda identity: columns.get(identity["sha256"]), str)


def _stretches(history: History) -> Iterator[_Stretch]:
    return (_Stretch(history, segment) for segment in history.live)


def _in_stretch(
    one: _Stretch, other: _Stretch, num: int, left: int
) -> tuple[dict[str, int], int, int]:
    """Return the first of some steps that differs in each respect, and how many read the same.

    Last comes what is left of how many units may be drawn.
    """
    if one.data and other.data and one.data != other.data:
        return {"steps": 0, "ranks": 0}, 0, left
    same_plan = one.named.fingerprint == other.named.fingerprint
    if same_plan and one.segment.start == other.segment.start:
        return {}, num, left  # as an unchanged plan reads the same wherever it was cut
    units = Units(one.named.plan.order, other.named.plan.order, left)
    rows = in_lockstep(one.rows(num), other.rows(num))
    found, same = first_difference(rows, units.same_steps)
    return {name: at for name, (at, _, _) in found.items()}, same, units.left


def _why(one: _Stretch, other: _Stretch, step: int) -> dict[str, str]:
    """Return what differs between two runs at a step: what it is, and how in words."""
    if one.data and other.data and one.data != other.data:
        found = _instead(one.data, other.data)
        return {f"dataset.{name}" if name else "dataset": text for name, text in found.items()}
    if found := _instead(one.named.line.plan, other.named.line.plan):
        return found
    places = (each.history.place_in(each.segment, step) for each in (other, one))
    return {"place": " instead of ".join(map(_placed, places))}


def _placed(place: Resume) -> str:
    epoch, sub_epoch, step, position = place
    return f"epoch {epoch}, sub-epoch {sub_epoch}, step {step}, position {position:,}"


# --- both in words


def _first(found: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first step that differs in one of some respects, or None."""
    return min((found[name] for name in names if name in found), default=None)


def _instead(one: Any, other: Any) -> dict[str, str]:
    """Return in which fields two JSON objects differ, and how in words."""
    return {
        name: f"{value_in_words(new)} instead of {value_in_words(old)}"
        for name, old, new in differences(one, other)
    }


def _in_lines(sentences: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(f"{name:<16} {text}" for name, text in sentences)


def _same_in_words(units: Units) -> str:
    if not units.differ:
        return "the same positions of the order"
    return "the same units" + f", in the first {MOST_DRAWN:,} that were drawn" * units.left_off


def _ranks_in_words(a: Plan, b: Plan) -> str:
    if a.world_size != b.world_size:
        return f": {b.world_size or 'open'} instead of {a.world_size or 'open'}"
    return ": with another balance, or none" if a.balance != b.balance else ""


def _resume_in_words(a: Plan, b: Plan) -> str:
    """Return from which of the first plan's cursors the second can resume."""
    at = agrees_until(b.order, a.order.to_dict())
    differ = ["its order differs"] if at is None and a.order != b.order else []
    if a.sub_epochs != b.sub_epochs:
        differ.append(f"it has {b.sub_epochs} sub-epochs instead of {a.sub_epochs}")
    if differ:
        return f"the second plan can't resume from the first: {', and '.join(differ)}"
    if a.order == b.order:
        return "the second plan can resume from any cursor of the first"
    assert at is not None  # noqa: S101 (else its order differs)
    until = f"up to epoch {at[0]}, position {at[1]}"
    return f"the second plan can resume from the first's cursors {until}, where its order changes"


def _listed(epochs: list[int]) -> str:
    """Write epochs as 0 to 2, 7 to 9."""
    words = []
    for _, group in groupby(enumerate(epochs), lambda pair: pair[1] - pair[0]):
        row = [epoch for _, epoch in group]
        words.append(str(row[0]) if len(row) == 1 else f"{row[0]} to {row[-1]}")
    return ", ".join(words)


def _since(step: Step | None, same: str) -> str:
    if step is None:
        return same
    epoch, sub_epoch, number = step
    return f"different since epoch {epoch}, sub-epoch {sub_epoch}, step {number}"


def _order_in_words(a: Plan, b: Plan) -> str:
    if a.order == b.order:
        return "the same"
    found = _instead(a.order.to_dict(), b.order.to_dict()).items()
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
    return account(whole, epoch, range(plan.sub_epochs))
