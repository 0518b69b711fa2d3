"""diff: what a change of a plan's fields does to the data order, by arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple, overload

from indexplan.answers import Answer
from indexplan.canonical import canonical_json
from indexplan.errors import wrong
from indexplan.ledger.ledger import Ledger
from indexplan.partition.phases import Phase
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.reports.runs_apart import RunDifference, runs_apart
from indexplan.seeds import EPOCH_STOP, check_epochs

Step = tuple[int, int, int]

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
        The first step that reads other positions of the order; None if all read the same.
    ranks_from : (int, int, int) or None
        The first step that divides its
        units among the ranks in another way; None if none does.
    phases_from : (int, int, int) or None
        The first step with other parameters of the schedule, or other inner batches; None if none
        has. In each epoch, steps are compared until they read other positions.
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
        """Whether every rank reads the same in every step; parameters may differ."""
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


def diff(
    a: Plan | Ledger, b: Plan | Ledger, epochs: Iterable[int] | None = None
) -> Difference | RunDifference:
    """Find the first step at which two plans, or two runs, differ in what their ranks read.

    Use it before you change a plan in the middle of a run, or to find out why two runs differ.
    Ledgers are compared step by step of their runs. The rest is about plans: epochs are compared
    from the later of the plans' starts on. Nothing is shuffled, because steps are compared as
    intervals of the order, many at once, so that a plan of any number of samples takes milliseconds
    for each thousand sub-epochs.

    Parameters
    ----------
    a, b : Plan or Ledger
        Two plans with a world_size, or a global_batch_size; or two ledgers.
    epochs : iterable of int, optional
        The epochs whose steps are compared, 0 <= epoch < 2**32. By default those in which
        something can change: three from the later start on, and those around each phase's start.

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
    for epoch in compared:
        _compare(a, b, epoch, first)
    same_order = a.order == b.order
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
        "global batches": _since(first.get("steps"), "the same positions of the order") + again,
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


def _refusal(a: Plan, b: Plan) -> str:
    """Return which of the first plan's cursors the second refuses, in words."""
    at = b.order._parts_from(a.order.to_dict())  # noqa: SLF001 (of an order, for this)
    if at is None or a.sub_epochs != b.sub_epochs:
        return "the second plan can't resume from the first: order and sub_epochs must be the same"
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

    where: Step
    num: int
    start: int
    size: int
    wraps: tuple[int, int] | None
    origin: int
    phase: Phase

    def rest(self, num: int) -> _Row:
        """Return the row without its first `num` steps."""
        epoch, sub_epoch, step = self.where
        where = (epoch, sub_epoch, step + num)
        return self._replace(where=where, num=self.num - num, start=self.start + num * self.size)


def _rows(plan: Plan, epoch: int, begin: int) -> Iterator[_Row]:
    """Yield the steps of an epoch that start at or past a position, as rows of equal steps."""
    layout = layout_of(plan)
    for sub_epoch in range(plan.sub_epochs):
        if layout.is_finished(epoch, sub_epoch):
            continue
        steps = layout.steps_in(epoch, sub_epoch)
        padded = steps.policy.repeats and steps.end > steps.stop
        for span in steps.spans:
            size, large = divmod(span.length, span.num_steps)
            # the step that is padded, always the last one, is a row of its own
            last = int(padded and span is steps.spans[-1])
            cuts = [(0, large, size + 1), (large, span.num_steps - last, size)]
            cuts.append((span.num_steps - last, span.num_steps, size))
            for low, high, each in cuts:
                where = (epoch, sub_epoch, span.step + low)
                wraps = (steps.first, steps.stop) if low == span.num_steps - last else None
                start = span.bound(span.step + low) if low < high else 0
                phase = layout.phases[span.phase]
                row = _Row(where, high - low, start, each, wraps, steps.origin, phase)
                row = row.rest(max(0, -((start - begin) // each)))
                if row.num > 0:
                    yield row


def _compare(a: Plan, b: Plan, epoch: int, first: dict[str, Step]) -> None:
    """Note the first step of an epoch that differs, unless an earlier one was noted."""
    started, begin = max((plan.start.epoch, plan.start.position) for plan in (a, b))
    if epoch < started:
        return
    begin = begin if epoch == started else 0
    rows = [_rows(plan, epoch, begin) for plan in (a, b)]
    one, other = (next(row, None) for row in rows)
    otherwise = a.balance != b.balance
    while one is not None and other is not None:
        if (one.start, one.size, one.wraps) != (other.start, other.size, other.wraps):
            break
        if a.world_size != b.world_size or otherwise or _dealt_otherwise(one, other, a.world_size):
            first.setdefault("ranks", one.where)
        if a.balance is not None and one.phase.inner_counts != other.phase.inner_counts:
            first.setdefault("ranks", one.where)  # balance evens out inner batches, too
        if _inner(one.phase) != _inner(other.phase):
            first.setdefault("phases", one.where)
        num = min(one.num, other.num)
        one, other = (
            row.rest(num) if row.num > num else next(more, None)
            for row, more in zip((one, other), rows, strict=True)
        )
    left = one or other
    if left is not None:
        first.setdefault("steps", left.where)
        first.setdefault("ranks", left.where)


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
    one, other = a.order.to_dict(), b.order.to_dict()
    names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
    changes = (f"{name} {other.get(name)} instead of {one.get(name)}" for name in names)
    return f"different: {', '.join(changes)}"


def _account_in_words(a: Plan, b: Plan, epoch: int) -> str:
    parts = []
    accounts = [plan.account(epoch) for plan in (a, b)]
    for name in ("steps", "dropped", "skipped", "excluded", "padded"):
        before, after = (getattr(account, f"num_{name}") for account in accounts)
        if name in ("skipped", "excluded") and not (before or after):
            continue  # as most runs never do either
        instead = "" if before == after else f" instead of {before:,}"
        parts.append(f"{after:,} {name}{instead}")
    return ", ".join(parts)
