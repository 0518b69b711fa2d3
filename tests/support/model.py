"""The partition as docs/specification.md words it, walked place by place: too simple to be wrong.

Nothing is computed that can be enumerated: parts are dealt out one thing at a time, steps are cut
from lists of slots, and a run is walked from its first step. It shares no code with the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any, NamedTuple, TypeVar

Thing = TypeVar("Thing")


class Slot(NamedTuple):
    """One place of a step: the unit that is read there, and whether it is padding."""

    epoch: int
    position: int
    padded: bool


class Step(NamedTuple):
    """One step: its number, the number of the phase in force, and each rank's slots."""

    number: int
    phase: int
    ranks: list[list[Slot]]

    @property
    def slots(self) -> list[Slot]:
        """The slots of the global batch."""
        return [slot for rank in self.ranks for slot in rank]


class SubEpoch(NamedTuple):
    """The steps of a sub-epoch that are left, and its first unread position."""

    epoch: int
    sub_epoch: int
    first_step: int
    start: int
    steps: list[Step]


@dataclass(frozen=True)
class Run:
    """What a run is made of; `phases` are pairs (at, units of a global batch)."""

    num_units: Callable[[int], int]
    world_size: int
    phases: Sequence[tuple[Any, int]]
    sub_epochs: int
    remainder: str
    resume: tuple[int, int, int, int] | None = None


def run_of(plan: Any) -> Run:
    """Return the run that a plan with a world size describes."""
    ranks = plan.world_size if plan.global_batch_size is None else 1
    return Run(
        num_units=plan.order.num_units,
        world_size=plan.world_size,
        phases=[(phase.at, phase.num_units * ranks) for phase in plan._layout.phases],
        sub_epochs=plan.sub_epochs,
        remainder=plan.remainder,
        resume=None if plan._resumed is None else tuple(plan._resumed),
    )


def deal(things: Sequence[Thing], parts: int, first: int = 0) -> list[list[Thing]]:
    """Cut things into consecutive parts, as large as if dealt one by one, from part `first` on."""
    sizes = [0] * parts
    for i in range(len(things)):
        sizes[(first + i) % parts] += 1
    rest = iter(things)
    return [[next(rest) for _ in range(size)] for size in sizes]


def nest(things: Sequence[Thing], counts: Sequence[int]) -> list[Any]:
    """Cut things into counts[0] consecutive parts, each of those into counts[1], and so on."""
    parts = deal(things, counts[0])
    return [nest(part, counts[1:]) for part in parts] if len(counts) > 1 else parts


def walk(run: Run, epochs: int) -> list[SubEpoch]:
    """Return every sub-epoch that is left of the first `epochs` epochs, in order."""
    return (_walk_stream if run.remainder == "carry" else _walk_sub_epochs)(run, epochs)


def cursor(run: Run, epoch: int, sub_epoch: int, step: int) -> tuple[int, int, int, int]:
    """Return where a run stands when the steps before `step` of a sub-epoch are finished."""
    found = next(s for s in walk(run, epoch + 1) if (s.epoch, s.sub_epoch) == (epoch, sub_epoch))
    for there in found.steps:
        if there.number == step:
            return (epoch, sub_epoch, step, there.slots[0].position)
    if run.remainder == "carry":  # the first step of any later sub-epoch
        for more in count(1):
            for after in walk(run, (epoch + 1) * 2**more):
                if (after.epoch, after.sub_epoch) > (epoch, sub_epoch) and after.steps:
                    slot = after.steps[0].slots[0]
                    return (after.epoch, after.sub_epoch, 0, slot.position)
    if not found.steps:
        return (epoch, sub_epoch, step, found.start)
    if sub_epoch == run.sub_epochs - 1:
        return (epoch + 1, 0, 0, 0)
    return (epoch, sub_epoch + 1, 0, _positions(run, epoch)[sub_epoch + 1].start)


def _positions(run: Run, epoch: int) -> list[range]:
    """Return the positions of each sub-epoch of an epoch."""
    start, found = 0, []
    for part in deal(range(run.num_units(epoch)), run.sub_epochs):
        found.append(range(start, start + len(part)))
        start += len(part)
    return found


def _place(run: Run, epoch: int, position: int) -> int:
    return sum(run.num_units(before) for before in range(epoch)) + position


def _phase(run: Run, place: int) -> int:
    """Return the number of the last phase whose place is not past `place`."""
    current = 0
    for number, (at, _) in enumerate(run.phases):
        if not isinstance(at, int):
            epoch, sub_epoch = at
            at = _place(run, epoch, _positions(run, epoch)[sub_epoch].start)  # noqa: PLW2901
        if at <= place:
            current = number
    return current


def _walk_sub_epochs(run: Run, epochs: int) -> list[SubEpoch]:
    """Walk a run whose steps all end inside their sub-epoch."""
    found = []
    for epoch in range(epochs):
        for sub_epoch, positions in enumerate(_positions(run, epoch)):
            left, first = positions, 0
            if run.resume is not None:
                if (epoch, sub_epoch) < run.resume[:2]:
                    continue
                if (epoch, sub_epoch) == run.resume[:2]:
                    first = run.resume[2]
                    left = range(run.resume[3], positions.stop)
            steps = list(_steps(run, epoch, positions, left, first))
            found.append(SubEpoch(epoch, sub_epoch, first, left.start, steps))
    return found


def _steps(run: Run, epoch: int, positions: range, left: range, number: int) -> Iterator[Step]:
    origin = _place(run, epoch, 0)
    rest = [Slot(epoch, position, padded=False) for position in left]
    wrapped = cycle([Slot(epoch, position, padded=True) for position in positions])
    while rest:
        phase = _phase(run, origin + rest[0].position)
        size = run.phases[phase][1]
        part, full = rest, []
        while len(rest) >= size:
            full.append(rest[:size])
            rest = rest[size:]
            if rest and _phase(run, origin + rest[0].position) != phase:
                break  # another phase goes on inside the sub-epoch
        else:  # the last phase: only it meets the remainder
            if rest and run.remainder == "pad":
                full.append(rest + [next(wrapped) for _ in range(size - len(rest))])
            if rest and run.remainder == "spread":
                full = deal(part, len(full) + 1)
            rest = []
        for slots in full:
            yield Step(number, phase, deal(slots, run.world_size, slots[0].position))
            number += 1


def _walk_stream(run: Run, epochs: int) -> list[SubEpoch]:
    """Walk a run whose steps cover one stream of equal epochs, past the ends of sub-epochs."""
    n = run.num_units(0)
    owners = [s for s, positions in enumerate(_positions(run, 0)) for _ in positions]
    start = run.resume or (0, 0, 0, 0)
    place = _place(run, start[0], start[3])
    found = {}
    for epoch in range(start[0], epochs):
        for sub_epoch, positions in enumerate(_positions(run, epoch)):
            if (epoch, sub_epoch) >= start[:2]:
                here = (epoch, sub_epoch) == start[:2]
                first, begin = (start[2], start[3]) if here else (0, positions.start)
                found[epoch, sub_epoch] = SubEpoch(epoch, sub_epoch, first, begin, [])
    while place < epochs * n:
        phase = _phase(run, place)
        size = run.phases[phase][1]
        owner = found[place // n, owners[place % n]]
        slots = [Slot(*divmod(p, n), padded=False) for p in range(place, place + size)]
        number = owner.first_step + len(owner.steps)
        owner.steps.append(Step(number, phase, deal(slots, run.world_size, place)))
        place += size
    return list(found.values())
