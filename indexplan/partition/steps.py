"""The partition: (epoch, sub_epoch, step, rank) -> [start, stop), by integer arithmetic alone.

Nothing here knows of indices, shuffling or samples, only of how many units an epoch has. Positions
count from the start of the epoch, and continue past its end: under "carry" into the next epoch,
under "pad" into the start of the sub-epoch. A place counts from the start of the run. Scalars are
Python integers, which cannot overflow; arrays hold int64 distances from an anchor, which are no
larger than the steps that are asked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import IndexPlanError, invalid
from indexplan.once import Latest, once
from indexplan.partition.phases import At
from indexplan.partition.remainders import REMAINDERS, Policy, Remainder
from indexplan.parts import Extent, split
from indexplan.seeds import EPOCH_STOP

MOST_STEPS = 4096  # sub-epochs whose steps are kept
MOST_TURNS = 2**20  # readings of an epoch in a step that are listed, each in 1 us
Int64 = NDArray[np.int64]


class Resume(NamedTuple):
    """Where a resumed run starts: `position` is the first unread one of `epoch`."""

    epoch: int
    sub_epoch: int
    step: int
    position: int

    @property
    def unit(self) -> tuple[int, int]:
        """The first unread unit: its epoch and position."""
        return self.epoch, self.position


@dataclass(frozen=True)
class Partition:
    """What the partition needs to know of a plan.

    `ats[i]` is where phase i starts, and `sizes[i]` its global batch in units. `world_size` may be
    None as long as no rank is asked for. `extent` says how long epochs and sub-epochs are.
    """

    world_size: int | None
    ats: tuple[At, ...]
    sizes: tuple[int, ...]
    sub_epochs: int
    remainder: Remainder
    extent: Extent
    resume: Resume | None = None

    @once
    def policy(self) -> Policy:
        """The policy of its remainder."""
        return REMAINDERS[self.remainder]

    @once
    def by_place(self) -> bool:
        """Whether steps depend on stream places, so that it is asked where an epoch begins."""
        later = self.ats[1:]
        return self.policy.crosses or any(isinstance(at, int) for at in later)

    def place(self, at: At) -> int:
        """Return the stream place that `at` means."""
        if isinstance(at, int):
            return at
        return self.extent.before(at[0]) + self.extent.edge(at[0], self.sub_epochs, at[1])

    def sub_epoch(self, epoch: int, sub_epoch: int) -> tuple[int, int]:
        """Return the interval of positions that a sub-epoch covers."""
        edge, parts = self.extent.edge, self.sub_epochs
        return edge(epoch, parts, sub_epoch), edge(epoch, parts, sub_epoch + 1)

    def sub_epoch_of(self, epoch: int, position: int) -> int:
        """Return the sub-epoch that holds a position of an epoch."""
        return int(self.extent.parts_of(epoch, self.sub_epochs, np.array([position]))[0])

    def resume_after(self, steps: Steps, step: int) -> Resume:
        """Return where a run stands after the steps before `step` of a sub-epoch."""
        epoch, sub_epoch = steps.epoch, steps.sub_epoch
        if step < steps.num_steps:
            return Resume(epoch, sub_epoch, step, steps.interval(step)[0])
        if self.policy.crosses:  # continue with the first step that starts at or past the end
            place = next_step(self, self.extent.before(epoch) + steps.stop)
            epoch, position = self.extent.holding(place)
            return Resume(epoch, self.sub_epoch_of(epoch, position), 0, position)
        if not steps.spans:
            return Resume(epoch, sub_epoch, step, steps.start)
        if sub_epoch + 1 == self.sub_epochs:
            return Resume(epoch + 1, 0, 0, 0)
        return Resume(epoch, sub_epoch + 1, 0, steps.stop)

    @once
    def places(self) -> tuple[int, ...]:
        """The stream place at which each phase may start."""
        return tuple(map(self.place, self.ats))

    @once
    def running(self) -> tuple[tuple[int, int], ...]:
        """(stream place, phase) of every phase that runs, without end, from where the run starts.

        A phase starts where the full steps of the previous one reach or pass its place; if they
        pass several places at once, only the last of these phases runs.
        """
        resume = self.resume
        begin = 0 if resume is None else self.extent.before(resume.epoch) + resume.position
        return tuple(_walk(self, begin))

    @once
    def latest(self) -> Latest[tuple[int, int], Steps]:
        """The steps of the sub-epochs that were asked for last."""
        return Latest(MOST_STEPS)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: the fields."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Span(NamedTuple):
    """Steps of one phase inside one sub-epoch: `length` positions from `start`, spread by `split`.

    If the steps are full, `length` is a multiple of the global batch, so the same formula serves
    full and spread steps. `step` is the number of the first step.
    """

    step: int
    num_steps: int
    start: int
    length: int
    phase: int

    def bound(self, step: int) -> int:
        """Return the position at which `step` starts; past the last step, where that one stops."""
        return self.start + split(self.length, self.num_steps, step - self.step)


class Steps(NamedTuple):
    """The steps of one sub-epoch.

    `[start, stop)` are its positions that are left to read, and `first` is its very first position
    (other than `start` after a resume). The steps [first_step, num_steps) are left. `origin` is
    added to positions to divide steps among ranks: under "carry" that makes them places; else it
    is 0.
    """

    epoch: int
    sub_epoch: int
    num_units: int
    first: int
    start: int
    stop: int
    first_step: int
    num_steps: int
    spans: tuple[Span, ...]
    origin: int
    policy: Policy
    extent: Extent

    def span(self, step: int) -> Span:
        """Return the span that holds `step`."""
        if len(self.spans) == 1:
            return self.spans[0]
        return self.spans[bisect_right(self.spans, step, key=lambda span: span.step) - 1]

    def interval(self, step: int) -> tuple[int, int]:
        """Return the positions [start, stop) of a step, perhaps past the end."""
        span = self.span(step)
        return span.bound(step), span.bound(step + 1)

    def after(self, position: int) -> int:
        """Return the first step that starts at or past a position; past the last, `num_steps`."""
        steps = range(self.first_step, self.num_steps)
        number = bisect_left(steps, position, key=lambda step: self.interval(step)[0])
        return self.first_step + number

    @property
    def end(self) -> int:
        """The position at which the last step stops, or `start` where there are no steps."""
        return self.spans[-1].start + self.spans[-1].length if self.spans else self.start

    def valid(self, start: int, stop: int) -> int:
        """Return how many of the positions [start, stop) are units and not padding."""
        if not self.policy.repeats:
            return stop - start
        return max(0, min(stop, self.stop) - start)

    def positions(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """Return positions as intervals inside epochs, (epoch, start, stop), as they are read."""
        if stop <= self.num_units and (not self.policy.repeats or stop <= self.stop):
            return [(self.epoch, start, stop)]
        # Past the end, "pad" continues at the sub-epoch's start, "carry" in the next epoch.
        if self.policy.crosses:
            extent = self.extent
            epoch, position = extent.holding(self.origin + start)
            _check_turns(extent.holding(self.origin + max(start, stop - 1))[0] - epoch + 1)
            return through_epochs(extent, epoch, position, stop - start)
        base, period = self.first, self.stop - self.first
        _check_turns(-(-(stop - base) // period) - (start - base) // period)
        intervals = []
        while start < stop:
            offset = (start - base) % period
            size = min(stop - start, period - offset)
            intervals.append((self.epoch, base + offset, base + offset + size))
            start += size
        return intervals


def through_epochs(
    extent: Extent, epoch: int, position: int, left: int
) -> list[tuple[int, int, int]]:
    """Return the next `left` units of the stream as intervals inside epochs."""
    intervals = []
    while left:
        if epoch >= EPOCH_STOP:
            raise IndexPlanError(
                "a step under carry",
                "must be inside the run, which ends with epoch 2**32 - 1",
                "one that reads on into the next",
                "use another remainder for the last epoch",
            )
        if size := min(left, extent.units(epoch) - position):  # an epoch may be empty
            intervals.append((epoch, position, position + size))
        epoch, position, left = epoch + 1, 0, left - size
    return intervals


def _check_turns(turns: int) -> None:
    if turns > MOST_TURNS:
        rule, cure = f"at most {MOST_TURNS} readings of its units", "use a smaller batch size"
        raise invalid("a step that is listed", rule, turns, cure)


def steps_in(partition: Partition, epoch: int, sub_epoch: int) -> Steps:
    """Return the steps of a sub-epoch."""
    key, latest = (epoch, sub_epoch), partition.latest
    return latest.get(key) or latest.get_or_make(key, lambda _: _steps_in(partition, *key))


def _steps_in(partition: Partition, epoch: int, sub_epoch: int) -> Steps:
    first, stop = partition.sub_epoch(epoch, sub_epoch)
    resume = partition.resume
    start, first_step = first, 0
    if resume is not None and (epoch, sub_epoch) == (resume.epoch, resume.sub_epoch):
        start, first_step = resume.position, resume.step
    crosses = partition.policy.crosses
    build = _carried if crosses else _contained
    spans = tuple(build(partition, epoch, sub_epoch, start, stop, first_step))
    return Steps(
        epoch=epoch,
        sub_epoch=sub_epoch,
        num_units=partition.extent.units(epoch),
        first=first,
        start=start,
        stop=stop,
        first_step=first_step,
        num_steps=spans[-1].step + spans[-1].num_steps if spans else first_step,
        spans=spans,
        origin=partition.extent.before(epoch) if crosses else 0,
        policy=partition.policy,
        extent=partition.extent,
    )


def _contained(
    partition: Partition, epoch: int, sub_epoch: int, start: int, stop: int, step: int
) -> Iterator[Span]:
    """Yield the spans of a sub-epoch, where all steps end inside it: all policies but "carry"."""
    phases = list(_phases_from(partition, epoch, sub_epoch, start, stop))
    for i, (position, phase) in enumerate(phases):
        begin, size = position, partition.sizes[phase]
        if i + 1 < len(phases):
            lengths: tuple[int, ...] = (phases[i + 1][0] - begin,)
        else:
            lengths = partition.policy.lengths(stop - begin, size)
        for length in lengths:
            num_steps = -(-length // size)
            if num_steps:
                yield Span(step, num_steps, begin, length, phase)
            begin, step = begin + length, step + num_steps


def _phases_from(
    partition: Partition, epoch: int, sub_epoch: int, start: int, stop: int
) -> Iterator[tuple[int, int]]:
    """Yield (position, phase) for each phase that runs inside a sub-epoch."""
    if not partition.by_place:
        yield start, phase_in_force(partition, epoch, sub_epoch)
        return
    origin = partition.extent.before(epoch)
    for place, phase in _walk(partition, origin + start):
        if place > origin + start and place >= origin + stop:
            return
        yield place - origin, phase


def phase_in_force(partition: Partition, epoch: int, sub_epoch: int) -> int:
    """Return the phase that a whole sub-epoch begins in, under all policies but "carry"."""
    if not partition.by_place:  # all ats are sub-epochs: compare these, as units may vary
        ats = [(0, 0) if isinstance(at, int) else at for at in partition.ats]
        return bisect_right(ats, (epoch, sub_epoch)) - 1
    place = partition.place((epoch, sub_epoch))
    return bisect_right(partition.places, place) - 1


def _walk(partition: Partition, place: int) -> Iterator[tuple[int, int]]:
    """Yield what `Partition.running` is, of a run that starts at a place."""
    places = partition.places
    phase = -1
    while phase + 1 < len(places):
        if phase >= 0:
            size = partition.sizes[phase]
            place -= (place - places[phase + 1]) // size * size
        phase = bisect_right(places, place) - 1
        yield place, phase


def next_step(partition: Partition, place: int) -> int:
    """Return where the first step that starts at or past `place` starts, under "carry"."""
    phases = partition.running
    start, phase = phases[bisect_right(phases, place, key=lambda each: each[0]) - 1]
    size = partition.sizes[phase]
    return start - (start - place) // size * size


def _carried(
    partition: Partition,
    epoch: int,
    sub_epoch: int,  # noqa: ARG001 (the same call builds either kind)
    start: int,
    stop: int,
    step: int,
) -> Iterator[Span]:
    """Yield the spans of a sub-epoch under "carry": the stream's steps that start in it."""
    origin, phases = partition.extent.before(epoch), partition.running
    in_force = max(0, bisect_right(phases, origin + start, key=lambda each: each[0]) - 1)
    for i, (place, phase) in enumerate(phases[in_force:], in_force):
        if place >= origin + stop:
            return
        size = partition.sizes[phase]
        low = max(place, place - (place - origin - start) // size * size)
        high = min(origin + stop, phases[i + 1][0]) if i + 1 < len(phases) else origin + stop
        num_steps = max(0, -((low - high) // size))
        if num_steps:
            yield Span(step, num_steps, low - origin, num_steps * size, phase)
        step += num_steps
