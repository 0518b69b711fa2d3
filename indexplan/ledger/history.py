"""What the lines of a ledger add up to: the steps that count, and those that are void."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from indexplan.canonical import canonical_json
from indexplan.errors import IndexPlanError, PlanFileError, in_file, inside, integer, invalid
from indexplan.ledger.lines import CURE, Line, PlanLine, RunLine
from indexplan.ledger.tail import Tail, check_jump
from indexplan.ledger.walking import Part, Walk, walk
from indexplan.once import once
from indexplan.orders.base import Order
from indexplan.orders.columns import Columns
from indexplan.partition.steps import Resume
from indexplan.plan.layout import Layout
from indexplan.plan.plan import Plan, layout_of, plan_of_run_from

KEPT_PARTS = 2**16  # sub-epochs of walks that are kept, 1 kB each


class Segment(NamedTuple):
    """Steps of a run, from `step` on, that one plan read without a break.

    `plan` and `line` are the numbers of the plan's line and its own.
    """

    step: int
    steps: int
    plan: int
    line: int
    start: Resume
    stop: Resume
    note: dict[str, Any]

    @property
    def end(self) -> int:
        """The run's step after these."""
        return self.step + self.steps


class Stretch(NamedTuple):
    """Neighbouring segments that read one epoch in one order; `starts` are their places.

    `repeats` is whether some of them may read units once more, as padding.
    """

    epoch: int
    order: Order
    segments: list[Segment]
    starts: list[tuple[int, int]]
    repeats: bool


class NamedPlan:
    """A plan that a line names; it is made when it is asked for, as it may need columns.

    `where` is how errors name the line.
    """

    def __init__(self, line: PlanLine, where: str, columns: Columns) -> None:
        self.line = line
        self._where = where
        self._columns = columns

    @once
    def fingerprint(self) -> str:
        """The fingerprint of the plan."""
        return hashlib.sha256(canonical_json(self.line.plan).encode()).hexdigest()

    @once
    def plan(self) -> Plan:
        """The plan, closed and not resumed; raises `PlanFileError` if the line names none."""
        try:
            return plan_of_run_from(self.line.plan, self._columns)
        except PlanFileError:
            raise
        except IndexPlanError as error:
            raise in_file(self._where, error) from error

    @once
    def layout(self) -> Layout:
        """The numbers of the plan."""
        return layout_of(self.plan)

    @property
    def repeats(self) -> bool:
        """Whether its last steps read units once more, as padding."""
        return self.layout.partition.policy.repeats

    @once
    def order(self) -> str:
        """The fingerprint of its order."""
        return self.plan.order.fingerprint


class History:
    """The lines so far, added up.

    Attributes
    ----------
    plans : dict of int to NamedPlan
        By the number of their line.
    live : list of Segment
        The steps that count, rising.
    void : list of list of Segment
        Those that a return to a checkpoint has undone: a list for each return.
    """

    def __init__(self, columns: Columns, where: Callable[[int], str]) -> None:
        self._columns = columns
        self._where = where
        self.plans: dict[int, NamedPlan] = {}
        self.live: list[Segment] = []
        self.void: list[list[Segment]] = []
        self.begun: Resume | None = None
        self._runs: dict[int, RunLine] = {}  # by the number of their line
        self._right: set[int] = set()  # of these lines, those that were found to hold
        self._walks: dict[int, Walk] = {}  # the last ones
        self._num_parts = 0  # of these walks
        self._stretches: list[Stretch] | None = None  # of the steps that count
        self._first_plan = 0

    @property
    def step(self) -> int:
        """How many steps count."""
        return self.live[-1].end if self.live else 0

    @property
    def place(self) -> Resume | None:
        """Where the run stands; None before it has begun."""
        return self.live[-1].stop if self.live else self.begun

    @property
    def last_plan(self) -> int:
        """The line of the plan that has read the last step, or else the first void one; or 0."""
        return self.live[-1].plan if self.live else self._first_plan

    @property
    def newest_plan(self) -> int:
        """The line of the plan that has read the last step, or else that of the newest plan."""
        return self.last_plan or max(self.plans)

    def add(self, line: Line, number: int) -> None:
        """Add a line.

        Raises
        ------
        IndexPlanError
            If it does not follow those before it, as far as their numbers tell.
        """
        self._stretches = None
        if isinstance(line, PlanLine):
            self.plans[number] = NamedPlan(line, self._where(number), self._columns)
        elif isinstance(line, RunLine):
            self._run(line, number)
        else:
            if not line.step < self.step:
                raise invalid("step", f"below {self.step}, the steps that count", line.step, CURE)
            self.void.append(self.cut_off(self.live, line.step))

    def _run(self, line: RunLine, number: int) -> None:
        if line.plan not in self.plans:
            raise invalid("plan", "the number of an earlier line of a plan", line.plan, CURE)
        if line.step != self.step:
            raise invalid("step", f"{self.step}, after the line before", line.step, CURE)
        at = self.place
        if self.live and at is not None and line.start != at and line.start.unit <= at.unit:
            rule = f"{list(at)}, where the line before stops, or past it"
            raise invalid("from", rule, list(line.start), CURE)
        if at is not None:
            check_jump(at, line.start)
        sub_epochs = self.plans[line.plan].line.plan["sub_epochs"]
        for name, place in (("from", line.start), ("to", line.stop)):
            integer(f"the sub-epoch of {name}", place.sub_epoch, 0, sub_epochs, CURE)
        if self.begun is None:
            self._first_plan = line.plan
        if (
            self.begun is None or line.start.unit < self.begun.unit
        ):  # of a run that had jumped there
            self.begun = line.start
        self._runs[number] = line
        self.live.append(
            Segment(line.step, line.steps, line.plan, number, line.start, line.stop, line.note)
        )

    def jumps(self) -> Iterator[tuple[Resume, Segment]]:
        """Yield each segment that counts before which the run skipped steps, and from where on."""
        at = self.begun
        for segment in self.live:
            if at is not None and segment.start != at:
                yield at, segment
            at = segment.stop

    def cut_off(self, segments: list[Segment], step: int) -> list[Segment]:
        """Take the steps from one of the run on out of some segments, and return their segments."""
        number = bisect_right(segments, step, key=_end)
        gone = segments[number:]
        del segments[number:]
        if gone and gone[0].step < step:
            whole, at = gone[0], self.place_in(gone[0], step)
            segments.append(whole._replace(steps=step - whole.step, stop=at))
            gone[0] = whole._replace(step=step, steps=whole.end - step, start=at)
        return gone

    def place_in(self, segment: Segment, step: int) -> Resume:
        """Return where the run stood before a step of a segment, or after its last one."""
        if step in (segment.step, segment.end):
            return segment.start if step == segment.step else segment.stop
        return self.walk(segment).place(step - self._runs[segment.line].step)

    def walk(self, segment: Segment) -> Walk:
        """Return the steps of the whole line that holds a segment.

        Raises
        ------
        PlanFileError
            If its plan has no such places, or another number of steps between them.
        """
        number = segment.line
        found = self._walks.get(number)
        if found is None:
            line = self._runs[number]
            try:
                found = walk(self.plans[line.plan].layout, line.start, line.stop)
                if (found.num_steps, found.stop) != (line.steps, line.stop):
                    rule = f"{found.num_steps}, up to {list(found.stop)}"
                    raise invalid("steps", rule, f"{line.steps}, up to {list(line.stop)}", CURE)
            except PlanFileError:
                raise
            except IndexPlanError as error:
                what = f"{self._where(number)}: {error.what}"
                raise PlanFileError(what, error.rule, error.got, CURE) from error
            if self._num_parts > KEPT_PARTS:
                self._walks, self._num_parts = {}, 0
            self._walks[number] = found
            self._num_parts += len(found.parts)
            self._right.add(number)
        return found

    def check(self) -> None:
        """Raise `PlanFileError` unless every line has the steps and places that its plan has."""
        for number, line in self._runs.items():
            if number not in self._right:
                self.walk(Segment(line.step, line.steps, line.plan, number, *line[3:]))

    def line_start(self, segment: Segment) -> int:
        """Return the run's step at which the whole line that holds a segment starts."""
        return self._runs[segment.line].step

    def parts(self, segment: Segment, epoch: int | None = None) -> Iterator[Part]:
        """Yield the steps of a segment, or those in an epoch, sub-epoch by sub-epoch."""
        first = self.line_start(segment)
        yield from self.walk(segment).between(segment.step - first, segment.end - first, epoch)

    def holding(self, step: int) -> Segment:
        """Return the segment of a step that counts."""
        return self.live[bisect_right(self.live, step, key=_end)]

    def before(self, step: int) -> list[Segment]:
        """Return the segments of the steps before a step, the last one cut there."""
        found = [*self.live]
        self.cut_off(found, step)
        return found

    @property
    def live_stretches(self) -> list[Stretch]:
        """The stretches of all steps that count, kept until a line is added."""
        if self._stretches is None:
            self._stretches = self.stretches(self.live)
        return self._stretches

    def stretches(self, segments: list[Segment]) -> list[Stretch]:
        """Return the stretches of some segments that follow each other, epoch by epoch."""
        found: dict[tuple[int, str], list[Segment]] = {}
        for segment in segments:
            if segment.line not in self._right:
                self.walk(segment)  # raises unless the line holds
            key = self.plans[segment.plan].order
            last = segment.stop.epoch if segment.stop.position else segment.stop.epoch - 1
            for epoch in range(segment.start.epoch, last + 1):
                found.setdefault((epoch, key), []).append(segment)
        return [
            Stretch(
                epoch,
                self.plans[group[0].plan].plan.order,
                group,
                [(each.start.epoch, each.start.position) for each in group],
                any(self.plans[number].repeats for number in {each.plan for each in group}),
            )
            for (epoch, _), group in found.items()
        ]

    @property
    def num_samples(self) -> int:
        """The samples of the largest dataset that a plan has read: sources may have joined."""
        return max(each.plan.order.num_samples for each in self.plans.values())

    def tail(self, digest: str, num_lines: int) -> Tail:
        """Return the end of the ledger that these lines make."""
        plans = {each.fingerprint: number for number, each in self.plans.items()}
        last = self.last_plan
        named = self.plans[last].line.plan if last else None
        return Tail(digest, num_lines, self.step, self.place, plans, named, last, self.begun)


def history_of(lines: Iterable[Line], columns: Columns, where: Callable[[int], str]) -> History:
    """Return what some lines add up to; `where` names a line in an error.

    Raises
    ------
    IndexPlanError
        If a line does not follow those before it.
    """
    history = History(columns, where)
    for number, line in enumerate(lines, 1):
        try:
            history.add(line, number)
        except IndexPlanError as error:
            raise inside(where(number), error) from error
    return history


def resumed(plan: Plan, place: Resume) -> Plan:
    """Return a plan as a run continues with it from a place."""
    return replace(plan, _resumed=place)


def same_until(one: list[Segment], other: list[Segment]) -> int:
    """Return the first step at which two runs of one ledger read by other lines of plans."""
    same = 0
    for a, b in zip(_joined(one), _joined(other), strict=False):
        if (a.step, a.plan, a.start) != (b.step, b.plan, b.start):
            break
        same = min(a.end, b.end)
        if a.end != b.end:
            break
    return same


def _joined(segments: list[Segment]) -> list[Segment]:
    """Return segments with neighbours of one plan joined, where no step was skipped."""
    found: list[Segment] = []
    for each in segments:
        if found and (found[-1].plan, found[-1].stop) == (each.plan, each.start):
            last = found.pop()
            found.append(last._replace(steps=last.steps + each.steps, stop=each.stop))
        else:
            found.append(each)
    return found


def _end(segment: Segment) -> int:
    return segment.end
