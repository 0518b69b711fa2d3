"""explain: where each epoch of a plan reads a sample, or why it does not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from indexplan.answers import Answer, html_of_text
from indexplan.errors import IndexPlanError, counted, integer
from indexplan.files.read import Stored
from indexplan.keywords import named
from indexplan.partition.locate import Location, find_one
from indexplan.partition.remainders import REMAINDERS
from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.seeds import EPOCH_STOP, check_epochs

NOWHERE = "not in this epoch: no unit of its order holds the sample"


@dataclass(frozen=True, kw_only=True)
class Reading(Answer):
    """What `explain` found for an epoch: one read of the sample, or why it is not read.

    Parameters
    ----------
    epoch : int
        The order's epoch.
    position : int
        The position of the sample's unit in the epoch's order; -1 if no unit holds it, or if the
        run leaves the unit out.
    where : Location or None
        The step, rank and slot that read it; None if none does. Under "carry" the step may belong
        to the epoch before.
    repeats : tuple of Location
        The padded slots that read it once more; only under "pad".
    words : str
        The same in words, with the reason if no step reads it.
    group : str or None
        The class or source that the sample belongs to, if the order has such groups.
    span : (int, int) or None
        Which part of the sample is read, [start, stop), if the order cuts samples.

    Examples
    --------
    >>> import indexplan as ip
    >>> (reading,) = ip.explain(ip.Plan(ip.Sequential(10), world_size=2, batch_size=2), 7, [0])
    >>> reading.words
    'step 2, rank 0, slot 0'
    """

    epoch: int
    position: int
    where: Location[int] | None
    repeats: tuple[Location[int], ...]
    words: str
    group: str | None = None
    span: tuple[int, int] | None = None

    def __str__(self) -> str:
        place = f", position {self.position:,}" if self.position >= 0 else ""
        place += f", part [{self.span[0]}, {self.span[1]})" if self.span is not None else ""
        group = self.group or ""
        number = "group " * group.removeprefix("-").isdigit()  # the label of a class
        place += f", of {number}{group}" if self.group is not None else ""
        return f"epoch {self.epoch}{place}: {self.words}"


class Readings(tuple[Reading, ...]):
    """The readings of a sample, which print a line each."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return html_of_text(str(self))


@named
def explain(plan: Plan, index: int, epochs: Iterable[int] | None = None) -> tuple[Reading, ...]:
    """Find the step and rank that read a sample in each of some epochs, or say why none does.

    Use it to find out who has trained on a sample, and why a sample was left out.
    `Plan.locate` answers for many samples at once, without reasons.

    Parameters
    ----------
    plan : Plan
        Its world_size must be set.
    index : int
        The sample, 0 <= index < num_samples.
    epochs : iterable of int, optional
        The order's epochs, 0 <= epoch < 2**32. By default those in the plan directory, if the
        plan was loaded from one, else three from the plan's start on.

    Returns
    -------
    tuple of Reading
        One for each epoch; if an epoch has several units with the sample, one for each of them,
        read or left out. Their reasons add up to what `Plan.account` counts.

    Raises
    ------
    IndexPlanError
        If the index or an epoch is out of range, world_size is not set, or an epoch reads the
        sample more than 2**16 times.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2, remainder="drop")
    >>> print(ip.explain(plan, 3, epochs=[0])[0])
    epoch 0, position 3: step 0, rank 1, slot 1
    >>> print(ip.explain(plan, 9, epochs=[0])[0].words)
    dropped: the last 3 of 11 units do not fill a global batch, and remainder is "drop"
    """
    check_plan("plan", plan)
    cure = f"name one of the order's {counted(plan.order.num_samples, 'sample')}"
    index = integer("index", index, 0, plan.order.num_samples, cure)
    if epochs is None and isinstance(plan.order, Stored):
        epochs = plan.order.build.epochs
    elif epochs is None:
        epochs = range(plan.start.epoch, min(plan.start.epoch + 3, EPOCH_STOP))
    layout_of(plan).world_size  # noqa: B018 (raises if it is open)
    return Readings(
        reading for epoch in check_epochs(epochs) for reading in _readings(plan, index, epoch)
    )


def _readings(plan: Plan, index: int, epoch: int) -> Iterator[Reading]:
    told = plan.order.ip_told(epoch, index)
    told = sorted(told, key=lambda each: (each[0] < 0, each[0])) or [(-1, NOWHERE)]
    positions = [position for position, _ in told]
    names = plan.order.group_names
    group = _group(plan, index) if names else -1
    for number, (position, why) in enumerate(told, 1):
        reading = _reading(plan, epoch, position, why)
        if position >= 0 and plan.order.traits.cuts_samples:
            nth = positions[: number - 1].count(position)  # a unit may read several parts
            reading = replace(reading, span=_span(plan, epoch, position, index, nth))
        if group >= 0:
            reading = replace(reading, group=names[group])
        if len(positions) > 1:
            words = f"read {number} of {len(positions)}: {reading.words}"
            reading = replace(reading, words=words)
        yield reading


def _span(plan: Plan, epoch: int, position: int, index: int, nth: int) -> tuple[int, int]:
    """Return which part of a sample its unit reads."""
    read = np.flatnonzero(plan.order.take(epoch, position) == index)[nth]
    start, stop = plan.order.spans(epoch, position)[read].tolist()
    return start, stop


def _group(plan: Plan, index: int) -> int:
    """Return the group of a sample; -1 where it belongs to none, or to several."""
    try:
        return int(plan.order.group_of(index))
    except IndexPlanError:
        return -1


def _reading(plan: Plan, epoch: int, position: int, why: str) -> Reading:
    found = layout_of(plan).found(epoch, np.array([position]))
    location = Location(*(int(part[0]) for part in found))
    repeats = tuple(_repeats(plan, epoch, position))
    where = location if location.step >= 0 else None
    words = why or (_why_not(plan, epoch, position) if where is None else _named(plan, where))
    if where is not None and where.epoch != epoch:
        words = f"already epoch {where.epoch}, {words}"
    if repeats:
        words += "; again, as padding, in " + " and ".join(_named(plan, each) for each in repeats)
    return Reading(epoch=epoch, position=position, where=where, repeats=repeats, words=words)


def _named(plan: Plan, where: Location[int]) -> str:
    start = f"sub-epoch {where.sub_epoch}, " if plan.sub_epochs > 1 else ""
    return f"{start}step {where.step}, rank {where.rank}, slot {where.slot}"


def _repeats(plan: Plan, epoch: int, position: int) -> Iterator[Location[int]]:
    """Yield the padded slots of the last step that hold a unit of its sub-epoch once more."""
    if not REMAINDERS[plan.remainder].repeats or position < 0:
        return
    sub_epoch = _sub_epoch(plan, epoch, position)
    if layout_of(plan).is_finished(epoch, sub_epoch):
        return
    steps = _steps(plan, epoch, sub_epoch)
    period = steps.stop - steps.first
    for place in range(position + period, steps.end, period):
        yield Location(epoch, sub_epoch, *find_one(steps, plan.world_size or 1, place))


def _why_not(plan: Plan, epoch: int, position: int) -> str:
    resume = layout_of(plan).partition.resume
    if resume is not None and (epoch, position) < (resume.epoch, resume.position):
        at = f"epoch {resume.epoch}, sub-epoch {resume.sub_epoch}, step {resume.step}"
        return f"finished: it comes before {at}, where the plan was resumed"
    sub_epoch = _sub_epoch(plan, epoch, position)
    steps = _steps(plan, epoch, sub_epoch)
    part = f" of sub-epoch {sub_epoch}" if plan.sub_epochs > 1 else ""
    return (
        f"dropped: the last {steps.stop - steps.end:,} of "
        f"{counted(steps.stop - steps.start, 'unit')}{part} do "
        f'not fill a global batch, and remainder is "{plan.remainder}"'
    )


def _sub_epoch(plan: Plan, epoch: int, position: int) -> int:
    return layout_of(plan).partition.sub_epoch_of(epoch, position)


def _steps(plan: Plan, epoch: int, sub_epoch: int) -> Steps:
    return layout_of(plan).steps_in(epoch, sub_epoch)
