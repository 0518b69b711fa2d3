"""Steps of a plan from a place of a run on, through sub-epochs and epochs: by arithmetic alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, islice
from typing import NamedTuple

from indexplan.errors import IndexPlanError
from indexplan.once import once
from indexplan.partition.steps import MOST_TURNS, Partition, Resume, Steps, steps_in
from indexplan.plan.cursor import check_place
from indexplan.plan.layout import Layout
from indexplan.seeds import EPOCH_STOP

MOST_PARTS = 2**20  # sub-epochs of steps without a break, each some 2 us
LINE_PARTS = 2**14  # those of one line, so that a short file cannot ask for endless work
FULL_PARTS = LINE_PARTS // 4  # after which a writer begins another line


class Part(NamedTuple):
    """The steps [first, stop) of a sub-epoch, under the plan as it continues from a place."""

    partition: Partition
    steps: Steps
    first: int
    stop: int

    @property
    def num(self) -> int:
        """How many steps these are."""
        return self.stop - self.first

    @property
    def where(self) -> tuple[int, int]:
        """Their (epoch, sub_epoch)."""
        return self.steps.epoch, self.steps.sub_epoch

    @property
    def place(self) -> Resume:
        """Where the run stands after them."""
        return self.partition.resume_after(self.steps, self.stop)


class Walk:
    """The steps between two places, sub-epoch by sub-epoch; those without a step are left out.

    `firsts[i]` is how many steps come before part i, and the last one is how many there are;
    `begins[i]` is the epoch and position at which part i starts; `stop` is the second place.
    """

    def __init__(self, layout: Layout, parts: list[Part]) -> None:
        self._layout = layout
        self.partition, self.stop = parts[0].partition, parts[-1].place
        self.parts = [part for part in parts if part.num]
        self.firsts = list(accumulate((part.num for part in self.parts), initial=0))
        self.begins = [(p.steps.epoch, p.steps.interval(p.first)[0]) for p in self.parts]

    @property
    def num_steps(self) -> int:
        """How many steps there are."""
        return self.firsts[-1]

    @once
    def layout(self) -> Layout:
        """The layout of the plan, as it continues from the first place."""
        return replace(self._layout, partition=self.partition)

    def at(self, step: int) -> tuple[Part, int]:
        """Return the part that holds one of the steps, counted from 0, and its number there."""
        number = bisect_right(self.firsts, step) - 1
        return self.parts[number], self.parts[number].first + step - self.firsts[number]

    def place(self, step: int) -> Resume:
        """Return where the run stands after so many steps, at least one."""
        part, number = self.at(step - 1)
        return self.partition.resume_after(part.steps, number + 1)

    def holding(self, epoch: int, position: int) -> tuple[int, int] | None:
        """Return the part that may read a position, and that position there; or None."""
        where = bisect_right(self.begins, (epoch, position)) - 1
        steps = self.parts[where].steps
        if where < 0 or not (steps.epoch == epoch or steps.policy.crosses):
            return None
        before = (self.partition.extent.before(each) for each in (epoch, steps.epoch))
        return where, position if steps.epoch == epoch else position + next(before) - next(before)

    def step_of(self, where: int, position: int) -> tuple[int, int] | None:
        """Return which of the steps reads a position of a part, and its number there; or None."""
        part = self.parts[where]
        number = part.steps.after(position + 1) - 1  # the last one that starts at or before it
        if not (part.first <= number < part.stop and position < part.steps.interval(number)[1]):
            return None  # it was dropped, or is read by others
        return self.firsts[where] + number - part.first, number

    def step_at(self, place: Resume) -> int | None:
        """Return which of the steps starts at a place; None if none does."""
        held = self.holding(place.epoch, place.position)
        found = held and self.step_of(*held)
        if not (held and found):
            return None
        part = self.parts[held[0]]
        starts = part.where == place[:2] and part.steps.interval(found[1])[0] == place.position
        return found[0] if starts else None

    def between(self, start: int, stop: int, epoch: int | None = None) -> Iterator[Part]:
        """Yield the parts of the steps [start, stop), counted from 0; or of those in an epoch."""
        low, high = bisect_right(self.firsts, start) - 1, bisect_left(self.firsts, stop)
        if epoch is not None:
            low = max(low, bisect_left(self.begins, (epoch,)))
            high = min(high, bisect_left(self.begins, (epoch + 1,)))
        for number in range(low, high):
            part, shift = self.parts[number], self.parts[number].first - self.firsts[number]
            first, end = max(part.first, start + shift), min(part.stop, stop + shift)
            if first < end:
                yield part._replace(first=first, stop=end)


def walk(layout: Layout, start: Resume, stop: Resume) -> Walk:
    """Return the steps of a plan between two places, few enough for a line.

    Raises
    ------
    IndexPlanError
        If the plan has no such places, no step that ends at the second one, or too many sub-epochs
        lie between them.
    """
    check_place(start, layout.order, layout.partition.sub_epochs)
    found = Walk(layout, list(_parts_to(layout, start, stop, LINE_PARTS)))
    if sum(map(_turns, found.parts)) > MOST_TURNS:
        raise _too_far(MOST_TURNS)
    return found


def lines_to(layout: Layout, start: Resume, stop: Resume) -> Iterator[tuple[int, Resume]]:
    """Yield how many steps each line gets between two places, and where it stops: mostly one.

    Where a place was found by counting samples, its step has another number than that of a run
    that came there by steps: positions decide, and the place that is yielded has the run's number.

    Raises
    ------
    IndexPlanError
        If no step of the plan, as it continues from `start`, ends at `stop`; if they are more than
        2**20 sub-epochs apart; or if a step is too long for a line.
    """
    steps = work = 0
    for part in _parts_to(layout, start, stop, MOST_PARTS):
        steps, work = steps + part.num, work + 1 + _turns(part)
        if steps and (work >= FULL_PARTS or part.where >= stop[:2]):
            place = part.place
            if work >= FULL_PARTS:
                walk(layout, start, place)  # raises what a reader would
            yield steps, place
            start, steps, work = place, 0, 0


def place_after(layout: Layout, start: Resume, num_steps: int) -> Resume:
    """Return where a run stands after so many steps of a plan, or as many as it has.

    Raises
    ------
    IndexPlanError
        If they are more than 2**20 sub-epochs.
    """
    for part in _parts(layout, start, MOST_PARTS):
        if part.num >= num_steps:
            return part._replace(stop=part.first + num_steps).place
        num_steps -= part.num
    return part.place


def next_part(layout: Layout, place: Resume) -> Part | None:
    """Return the steps that come next, up to the end of their sub-epoch.

    None if there are none in the next `MOST_PARTS` sub-epochs, or before the last epoch ends.
    """
    some = islice(_parts(layout, place, MOST_PARTS + 1), MOST_PARTS)  # past which it would raise
    return next((part for part in some if part.num), None)


def _parts_to(layout: Layout, start: Resume, stop: Resume, most: int) -> Iterator[Part]:
    """Yield the steps between two places, sub-epoch by sub-epoch; the last one may be empty.

    A place that is too far to be reached is refused at once, not after the way to it.
    """
    if _apart(layout, start, stop) >= most:
        raise _too_far(most)
    for part in _parts(layout, start, most, stop):
        if part.where < stop[:2]:
            yield part
            continue
        steps, place = part.steps, None
        if part.first <= stop.step <= steps.num_steps:  # mostly its number here, too
            place = (last := part._replace(stop=stop.step)).place
        if place != stop:
            place = (last := part._replace(stop=steps.after(stop.position))).place
        if (place[:2], place.position) == (stop[:2], stop.position):
            yield last
            return
        break
    rule = f"where a step of the plan ends that starts at or past {_named(start)}"
    cure = "pass plan.cursor(...) or loader.cursor of the plan as it was resumed"
    raise IndexPlanError("cursor", f"must be {rule}", _named(stop), cure)


def _parts(layout: Layout, start: Resume, most: int, stop: Resume | None = None) -> Iterator[Part]:
    """Yield each sub-epoch from a place on, as the plan continues there; of empty ones few."""
    partition = replace(layout.partition, resume=start)
    epoch, sub_epoch = start[:2]
    for _ in range(most):
        if epoch >= EPOCH_STOP:
            return
        steps = steps_in(partition, epoch, sub_epoch)
        yield Part(partition, steps, steps.first_step, steps.num_steps)
        sub_epoch += 1
        if steps.stop == steps.num_units:  # what is left of the epoch is empty
            sub_epoch = partition.sub_epochs
            if stop is not None and epoch == stop.epoch:
                sub_epoch = max(steps.sub_epoch + 1, stop.sub_epoch)
        if sub_epoch >= partition.sub_epochs:
            epoch, sub_epoch = epoch + 1, 0
    raise _too_far(most)


def _apart(layout: Layout, start: Resume, stop: Resume) -> int:
    """Return how many sub-epochs with units lie between two places, or fewer than there are."""
    order, parts = layout.order, 1
    if order.constant_num_units:
        parts = min(layout.partition.sub_epochs, order.num_units(start.epoch))
    more = min(stop.sub_epoch, parts) - min(start.sub_epoch, parts)
    return (stop.epoch - start.epoch) * parts + more


def _turns(part: Part) -> int:
    """Return through how many more sub-epochs the last step of one reads, or often through it."""
    steps = part.steps
    if steps.end <= steps.stop:
        return 0
    crosses, parts = steps.policy.crosses, part.partition.sub_epochs
    period = steps.num_units // parts if crosses else steps.stop - steps.first
    return (steps.end - steps.stop) // max(1, period)


def _too_far(most: int) -> IndexPlanError:
    rule = f"must be at most {most} sub-epochs after the line before"
    cure = "record them in several lines, or use a smaller batch size if one step is so long"
    return IndexPlanError("steps without a break", rule, "more", cure)


def _named(place: Resume) -> str:
    epoch, sub_epoch, step, position = place
    return f"epoch {epoch}, sub-epoch {sub_epoch}, step {step}, position {position}"
