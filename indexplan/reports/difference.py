"""diff: the first step at which two plans or two runs read something else, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np

from indexplan.answers import Answer
from indexplan.errors import counted, differences, invalid, value_in_words
from indexplan.keywords import named
from indexplan.ledger.history import History, NamedPlan, Segment, history_of
from indexplan.ledger.ledger import Ledger
from indexplan.ledger.tail import Tail, place_of
from indexplan.ledger.walking import place_after
from indexplan.orders.base import Order
from indexplan.partition.account import changes, undivided
from indexplan.partition.locate import find
from indexplan.partition.steps import Int64, Partition, Resume, steps_in
from indexplan.plan.cursor import cursor_of
from indexplan.plan.plan import Plan, columns_of, layout_of
from indexplan.reports.lockstep import (
    MOST_DRAWN,
    Found,
    Row,
    Run,
    Units,
    first_difference,
    in_lockstep,
    rows_of,
)
from indexplan.seeds import EPOCH_STOP, check_epochs

Step: TypeAlias = tuple[int, int, int]
Number = TypeVar("Number")

MOST_ROWS = 2**14  # rows of steps of an epoch that are compared one by one


@dataclass(frozen=True, kw_only=True)
class Difference(Answer, Generic[Number]):
    """What `diff` found: from which step on a second plan, or run, reads other than a first.

    Of two plans a step is named by its (epoch, sub_epoch, step) in the first one, or in the second
    if the first has no more steps in that epoch. If one of both is a ledger, steps are those of the
    run, counted from its beginning. A run that has only got further has not parted from the other.

    Parameters
    ----------
    same : bool
        Whether every rank reads the same in every step that was compared. False if orders of plans
        differ, even if no step does in the epochs compared, and if there was too much to compare.
    steps_from : (int, int, int) or int or None
        The first step that reads other units, or the same in another sequence; None if none does.
        Of two plans also one that reads other positions of the order.
    ranks_from : (int, int, int) or int or None
        The first step that divides its units among the ranks, or their inner batches, in another
        way, or reads others; None if none does. In each epoch, or run, steps are compared until
        they read something else.
    why : tuple of str
        What differs, such as "order.seed" and "world_size": of two plans all fields that do; of
        runs the fields of their plans at `steps_from`, or else at `ranks_from`; or "place", if
        equal plans stand at different places.
    epochs : tuple of int
        The epochs compared, of two plans.
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
    why: tuple[str, ...]
    epochs: tuple[int, ...] = ()
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
    until one does, at most 2**24 of each; and where sub-epochs are laid out otherwise, at most
    2**14 rows of equal steps of an epoch.

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
    compared         epoch 0
    steps            different since epoch 0, sub-epoch 0, step 0
    ranks            different since epoch 0, sub-epoch 0, step 0
      remainder      drop instead of spread
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
    started, position = max((plan.start.epoch, plan.start.position) for plan in (a, b))
    units = Units(a.order, b.order, MOST_DRAWN)
    if epochs is None:
        compared = _changing(a, b, started, units)
    else:
        compared = sorted(set(check_epochs(epochs)))
    if not compared or compared[-1] < started:
        rule = f"at least one epoch from {started} on, where the later plan starts"
        raise invalid("epochs", rule, compared[:8], "leave it out for those that can differ")
    first: dict[str, Step] = {}
    for epoch in compared:
        if epoch >= started:
            begin = position if epoch == started else 0
            first = {**_in_epoch((a, b), epoch, begin, units), **first}
    steps, ranks = first.get("steps"), first.get("ranks")
    why = _instead(a.to_dict(), b.to_dict())
    listed = f"{'epoch' if len(compared) == 1 else 'epochs'} {_listed(compared)}"
    return Difference(
        same=not (units.differ or units.left_off or ranks),
        steps_from=steps,
        ranks_from=ranks,
        why=tuple(why),
        epochs=tuple(compared),
        words=_in_words(listed, steps, ranks, why, units.left_off),
    )


def _changing(a: Plan, b: Plan, started: int, units: Units) -> list[int]:
    """Return the epochs where plans can begin to differ: the first ones, and around each phase."""
    epochs = {started, started + 1, started + 2, units.until[0], units.until[0] + 1}
    for plan in (a, b):
        partition = layout_of(plan).partition
        for at in partition.ats:
            epoch = partition.extent.holding(at)[0] if isinstance(at, int) else at[0]
            epochs |= {epoch - 1, epoch, epoch + 1}
    return sorted(epoch for epoch in epochs if started <= epoch < EPOCH_STOP)


def _in_epoch(plans: tuple[Plan, Plan], epoch: int, begin: int, units: Units) -> dict[str, Step]:
    """Return the first step of an epoch that reads others, and that deals them otherwise.

    Between two changes of size or phase, sub-epochs are laid out alike, so the first tells all,
    however many there are. Where orders differ, units are drawn up to where places do.
    """
    parts = [layout_of(plan).partition for plan in plans]
    since = [_sub_epoch_of(part, epoch, begin) for part in parts]
    chosen: list[Iterable[int]] = [
        range(first, part.sub_epochs) for first, part in zip(since, parts, strict=True)
    ]
    alike = parts[0].sub_epochs == parts[1].sub_epochs
    if alike and not any(part.policy.crosses for part in parts):
        cuts = {*since, *(first + 1 for first in since)}
        cuts.update(*(changes(part, epoch) for part in parts))
        chosen = [sorted(part for part in cuts if min(since) <= part < parts[0].sub_epochs)] * 2
    rows = [_rows(plan, epoch, begin, each) for plan, each in zip(plans, chosen, strict=True)]
    parted = first_difference(_at_most(MOST_ROWS, in_lockstep(*rows), units))
    found: dict[str, Step] = {}
    for name, at in (("steps", parted.steps), ("ranks", parted.ranks)):
        if at is not None:
            sides = zip(plans, at[1:], strict=True)
            plan, start = next((plan, row.start) for plan, row in sides if row)
            step = _step_of(plan, epoch, np.array([start]))
            assert step is not None  # noqa: S101 (which is where the row starts)
            found[name] = step
    if units.differ:
        ends = [row.start for row in parted.steps[1:] if row] if parted.steps else []
        stop = min(ends or [_end(plan, epoch) for plan in plans])
        for offsets in units.apart(*(_runs(plan.order, epoch, begin, stop) for plan in plans)):
            if (first := _step_of(plans[0], epoch, begin + offsets)) is not None:
                return {"steps": first, "ranks": min(first, found.get("ranks", first))}
    return found


def _step_of(plan: Plan, epoch: int, places: Int64) -> Step | None:
    """Return the first step that reads one of some rising places of an epoch, or None."""
    partition = layout_of(plan).partition
    last = partition.extent.units(epoch) - 1  # whose step reads those past it
    where = find(partition, epoch, np.minimum(places, last))
    read = np.flatnonzero(where.step >= 0)[:1]
    names = (part[read].tolist() for part in where[:3])
    return next(zip(*names, strict=True), None)


def _end(plan: Plan, epoch: int) -> int:
    """Return where an epoch ends, or its last step, which may read on into the next."""
    partition = layout_of(plan).partition
    num_units = partition.extent.units(epoch)
    if not partition.policy.crosses:
        return num_units
    return max(num_units, steps_in(undivided(partition), epoch, 0).end)


def _runs(order: Order, epoch: int, start: int, stop: int) -> Iterator[Run]:
    """Yield the positions of some places, epoch by epoch."""
    while start < stop and epoch < EPOCH_STOP:
        num_units = order.num_units(epoch)
        if start < num_units:
            yield Run(epoch, start, min(stop, num_units) - start)
        start, stop, epoch = max(0, start - num_units), stop - num_units, epoch + 1


def _at_most(most: int, pairs: Iterable[Any], units: Units) -> Iterator[Any]:
    """Yield so many pairs of rows, and note if there are more."""
    for number, pair in enumerate(pairs):
        if number == most:
            units.left_off = True
            return
        yield pair


def _sub_epoch_of(partition: Partition, epoch: int, position: int) -> int:
    """Return the sub-epoch that holds a position, or how many there are if none does."""
    inside = position < partition.extent.units(epoch)
    return partition.sub_epoch_of(epoch, position) if inside else partition.sub_epochs


def _rows(plan: Plan, epoch: int, begin: int, sub_epochs: Iterable[int]) -> Iterator[Row]:
    """Yield the steps of some sub-epochs that start at or past a position, as rows."""
    layout = layout_of(plan)
    partition = layout.partition
    if partition.policy.crosses:
        partition, sub_epochs = undivided(partition), [0]
    for sub_epoch in sub_epochs:
        if partition.resume is not None and (epoch, sub_epoch) < partition.resume[:2]:
            continue
        steps = steps_in(partition, epoch, sub_epoch)
        for row in rows_of(layout, steps, steps.first_step, steps.num_steps):
            before = max(0, -((row.start - begin) // row.size))
            if before < row.num:
                yield row.rest(before)


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


def _of_runs(a: Plan | Ledger, b: Plan | Ledger) -> Difference[int]:
    """Return where two runs part."""
    longest = max(each.step for each in (a, b) if isinstance(each, Ledger))
    histories = [
        each.history if isinstance(each, Ledger) else _of_plan(each, longest) for each in (a, b)
    ]
    first: dict[str, tuple[int, _Stretch, _Stretch]] = {}
    compared, left = 0, MOST_DRAWN
    for one, other, num in in_lockstep(*map(_stretches, histories)):
        if one is None or other is None:  # a run that has got further has not parted
            break
        found, left = _in_stretch(one, other, num, left)
        for name, at in (("steps", found.steps), ("ranks", found.ranks)):
            if at is not None:
                first.setdefault(name, (compared + at[0], one, other))
        compared += found.num_same
        if found.num_same < num:
            break
    steps, ranks = (first[name][0] if name in first else None for name in ("steps", "ranks"))
    parted = first.get("steps", first.get("ranks"))
    why = {} if parted is None else _why(*parted)
    in_all = histories[0].step, histories[1].step
    known = steps is not None or compared == min(in_all)
    paths = [each.path if isinstance(each, Ledger) else "the plan" for each in (a, b)]
    words = (
        f"{counted(compared, 'step')} of {in_all[0]:,} in {paths[0]}, {in_all[1]:,} in {paths[1]}"
    )
    return Difference(
        same=ranks is None and known,
        steps_from=steps,
        ranks_from=ranks,
        why=tuple(why),
        num_steps=in_all,
        num_compared=compared,
        words=_in_words(words, steps, ranks, why, not known),
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


def _in_stretch(one: _Stretch, other: _Stretch, num: int, left: int) -> tuple[Found, int]:
    """Compare some steps, and return how many units may still be drawn, too."""
    same_plan = one.named.fingerprint == other.named.fingerprint
    if same_plan and one.segment.start == other.segment.start:
        return Found(None, None, num), left  # as it reads the same wherever it was cut
    units = Units(one.named.plan.order, other.named.plan.order, left)
    found = first_difference(in_lockstep(one.rows(num), other.rows(num)), units.same_steps)
    return found, units.left


def _why(step: int, one: _Stretch, other: _Stretch) -> dict[str, str]:
    """Return what differs between two runs at a step: what it is, and how in words."""
    if found := _instead(one.named.line.plan, other.named.line.plan):
        return found
    places = (each.history.place_in(each.segment, step) for each in (other, one))
    return {"place": " instead of ".join(map(_placed, places))}


def _placed(place: Resume) -> str:
    epoch, sub_epoch, step, position = place
    return f"epoch {epoch}, sub-epoch {sub_epoch}, step {step}, position {position:,}"


# --- both in words


def _instead(one: Any, other: Any) -> dict[str, str]:
    """Return in which fields two JSON objects differ, and how in words."""
    return {
        name: f"{value_in_words(new)} instead of {value_in_words(old)}"
        for name, old, new in differences(one, other)
    }


def _in_words(
    compared: str, steps: Any, ranks: Any, why: dict[str, str], left_off: bool
) -> tuple[str, ...]:
    """Return what was found, a line each."""
    said = "the same units in the same sequence" if steps is None else _since(steps)
    if left_off:
        said += "; then too much" if steps is None else " or before, where too much"
        said += " would have to be compared"
    sentences = {
        "compared": compared,
        "steps": said,
        "ranks": "the same share of each step" if ranks is None else _since(ranks),
        **{f"  {name}": text for name, text in why.items()},
    }
    return tuple(f"{name:<16} {text}" for name, text in sentences.items())


def _listed(epochs: list[int]) -> str:
    """Write epochs as 0 to 2, 7 to 9."""
    words = []
    for _, group in groupby(enumerate(epochs), lambda pair: pair[1] - pair[0]):
        row = [epoch for _, epoch in group]
        words.append(str(row[0]) if len(row) == 1 else f"{row[0]} to {row[-1]}")
    return ", ".join(words)


def _since(step: Step | int) -> str:
    if isinstance(step, int):
        return f"different since step {step:,}"
    epoch, sub_epoch, number = step
    return f"different since epoch {epoch}, sub-epoch {sub_epoch}, step {number}"
