"""diff: the first step at which two plans or two runs read something else, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any, TypeAlias

import numpy as np

from indexplan.answers import Answer
from indexplan.errors import counted, differences, few, invalid, value_in_words
from indexplan.keywords import named
from indexplan.ledger.history import History, history_of
from indexplan.ledger.ledger import Ledger
from indexplan.ledger.tail import Tail, resume_of
from indexplan.ledger.walking import place_after
from indexplan.partition.account import changes, undivided
from indexplan.partition.locate import find
from indexplan.partition.steps import Partition, Resume, steps_in
from indexplan.plan.cursor import cursor_of
from indexplan.plan.plan import Plan, columns_of, dict_of, layout_of
from indexplan.reports.lockstep import At, Row, Units, first_difference, in_lockstep, rows_of
from indexplan.seeds import EPOCH_STOP, check_epochs

Step: TypeAlias = tuple[int, int, int]

MOST_ROWS = 2**14  # rows of steps of an epoch that are compared one by one


@dataclass(frozen=True, kw_only=True)
class Difference(Answer):
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
        The first step that reads other units, or the same in another sequence, or with other
        padding; None if none does.
    ranks_from : (int, int, int) or int or None
        The first step that divides its units among the ranks, or their inner batches, in another
        way or by another balance, or reads others; None if none does. In each epoch, or run, steps
        are compared until they read something else.
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
    steps_from: Any
    ranks_from: Any
    why: tuple[str, ...]
    epochs: tuple[int, ...] = ()
    num_steps: tuple[int, int] | None = None
    num_compared: int | None = None
    words: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.words)


@named
def diff(a: Plan | Ledger, b: Plan | Ledger, epochs: Iterable[int] | None = None) -> Difference:
    """Find the first step at which two plans, or two runs, differ in what their ranks read.

    Use it before you change a plan in the middle of a run, to find out why two runs differ, or to
    check that a run has read what a plan says. (Compared with a ledger, a plan counts as a run that
    begins where the plan starts.) Runs are compared step by step, and two plans from the later of
    their starts on. Plans are compared by intervals of the order, which is fast at any size. Units
    are drawn only where orders or intervals differ, until two units differ, at most 2**24 from each
    plan. Where orders differ or sub-epochs are laid out differently, at most 2**14 groups of equal
    steps are compared in an epoch. If that is too little, the report says so.

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
        global_batch_size; if an epoch is out of range; or if all are before the later start.

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


def _of_plans(a: Plan, b: Plan, epochs: Iterable[int] | None) -> Difference:
    """Return what changes from a plan to another: the first step, epoch by epoch."""
    for plan in (a, b):
        layout_of(plan).check_sized()
    begin = max((plan.start.epoch, plan.start.position) for plan in (a, b))
    units = Units()
    if epochs is None:
        compared = _changing(a, b, begin[0], units)
    else:
        compared = sorted(set(check_epochs(epochs)))
    if not compared or compared[-1] < begin[0]:
        rule = f"at least one epoch from {begin[0]} on, where the later plan starts"
        raise invalid("epochs", rule, compared[:8], "leave it out for those that can differ")
    steps = ranks = None
    for epoch in compared:
        if epoch >= begin[0] and steps is None and not units.left_off:
            position = begin[1] if epoch == begin[0] else 0
            rows = _rows_of_epoch(a, b, epoch, position, units)
            found = first_difference(in_lockstep(*rows), units, MOST_ROWS)
            steps, dealt = (_step_of(a, b, at) for at in (found.steps, found.ranks))
            ranks = ranks or dealt
    why = _instead(dict_of(a), dict_of(b))
    said = f"{'epoch' if len(compared) == 1 else 'epochs'} {few(map(str, compared))}"
    return Difference(
        same=a.order == b.order and ranks is None and not units.left_off,
        steps_from=steps,
        ranks_from=ranks,
        why=tuple(why),
        epochs=tuple(compared),
        words=_in_words(said, steps, ranks, why, units.left_off),
    )


def _changing(a: Plan, b: Plan, started: int, units: Units) -> list[int]:
    """Return the epochs where plans can begin to differ: the first ones, and around each phase."""
    until, _ = units.until(a.order, b.order)
    epochs = {started, started + 1, started + 2, until, until + 1}
    for plan in (a, b):
        partition = layout_of(plan).partition
        for at in partition.ats:
            epoch = partition.extent.holding(at)[0] if isinstance(at, int) else at[0]
            epochs |= {epoch - 1, epoch, epoch + 1}
    return sorted(epoch for epoch in epochs if started <= epoch < EPOCH_STOP)


def _rows_of_epoch(a: Plan, b: Plan, epoch: int, begin: int, units: Units) -> list[Iterator[Row]]:
    """Return the steps of an epoch of both plans that start at or past a position, as rows.

    Where orders read the same, and between two changes of size or phase, sub-epochs are laid out
    alike, so that of these the first tells all, however many there are.
    """
    parts = [layout_of(plan).partition for plan in (a, b)]
    first = min(_sub_epoch_of(part, epoch, begin) for part in parts)
    chosen: list[Iterable[int]] = [range(first, part.sub_epochs) for part in parts]
    alike = parts[0].sub_epochs == parts[1].sub_epochs
    if alike and not any(part.policy.crosses for part in parts):
        until, position = units.until(a.order, b.order)
        apart = 0 if until < epoch else parts[0].sub_epochs
        if until == epoch:
            apart = min(_sub_epoch_of(part, epoch, position) for part in parts)
        cuts = {first, *(_sub_epoch_of(part, epoch, begin) + 1 for part in parts)}
        cuts.update(*(changes(part, epoch) for part in parts))
        before = sorted(part for part in cuts if first <= part < apart)
        rest = range(max(first, apart), parts[0].sub_epochs)
        chosen = [chain(before, rest), chain(before, rest)]
    return [_rows(plan, epoch, begin, each) for plan, each in zip((a, b), chosen, strict=True)]


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


def _step_of(a: Plan, b: Plan, at: At | None) -> Step | None:
    """Return the name of a step in the first plan, or in the second if only that one has it."""
    if at is None:
        return None
    plan, row = next((plan, row) for plan, row in zip((a, b), at[1:], strict=True) if row)
    found = find(layout_of(plan).partition, row.steps.epoch, np.array([row.start]))
    return int(found.epoch[0]), int(found.sub_epoch[0]), int(found.step[0])


# --- two runs, of which one may be a plan


def _of_runs(a: Plan | Ledger, b: Plan | Ledger) -> Difference:
    """Return where two runs part; one that has only got further has not parted."""
    longest = max(each.step for each in (a, b) if isinstance(each, Ledger))
    histories = [
        each.history if isinstance(each, Ledger) else _of_plan(each, longest) for each in (a, b)
    ]
    pairs = takewhile(lambda pair: pair[2], in_lockstep(*map(_rows_of_run, histories)))
    units = Units()
    found = first_difference(pairs, units)
    steps, ranks = (at and at[0] for at in (found.steps, found.ranks))
    why = {} if ranks is None else _why(histories, ranks if steps is None else steps)
    in_all = histories[0].step, histories[1].step
    paths = [each.path if isinstance(each, Ledger) else "the plan" for each in (a, b)]
    said = f"{in_all[0]:,} in {paths[0]}, {in_all[1]:,} in {paths[1]}"
    return Difference(
        same=ranks is None and not units.left_off,
        steps_from=steps,
        ranks_from=ranks,
        why=tuple(why),
        num_steps=in_all,
        num_compared=found.num_same,
        words=_in_words(
            f"{counted(found.num_same, 'step')} of {said}", steps, ranks, why, units.left_off
        ),
    )


def _of_plan(plan: Plan, num_steps: int) -> History:
    """Return the history of a run that reads so many steps of a plan from where it starts."""
    layout_of(plan).world_size  # noqa: B018 (raises if it is open)
    stop = place_after(layout_of(plan), resume_of(plan.start), num_steps)
    lines, _ = Tail().record(plan, cursor_of(plan.order, stop, plan.sub_epochs), {})
    columns = columns_of(plan)
    return history_of(lines, lambda identity: columns.get(identity["sha256"]), str)


def _rows_of_run(history: History) -> Iterator[Row]:
    """Yield the steps of a run that count, as rows of equal steps."""
    for segment in history.live:
        layout = history.plans[segment.plan].layout
        for part in history.parts(segment):
            yield from rows_of(layout, part.steps, part.first, part.stop)


def _why(histories: list[History], step: int) -> dict[str, str]:
    """Return what differs between two runs at a step: what it is, and how in words."""
    held = [(each, each.holding(step)) for each in histories]
    one, other = (each.plans[segment.plan].line.plan for each, segment in held)
    if found := _instead(one, other):
        return found
    places = (each.place_in(segment, step) for each, segment in reversed(held))
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
    said += "; then too much would have to be compared" * left_off
    sentences = {
        "compared": compared,
        "steps": said,
        "ranks": "the same share of each step" if ranks is None else _since(ranks),
        **{f"  {name}": text for name, text in why.items()},
    }
    return tuple(f"{name:<16} {text}" for name, text in sentences.items())


def _since(step: Step | int) -> str:
    if isinstance(step, int):
        return f"different since step {step:,}"
    epoch, sub_epoch, number = step
    return f"different since epoch {epoch}, sub-epoch {sub_epoch}, step {number}"
