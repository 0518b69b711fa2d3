"""Ledgers of very many segments, each held against a walk that counts step after step.

The walk knows no formula of the library: it takes the next step's units from where the run stands,
as docs/specification.md says of each remainder.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import indexplan as ip

AT_ONCE = 500  # segments of a run
REMAINDERS: list[Any] = ["spread", "drop", "pad", "carry"]


class Place(NamedTuple):
    """Where a run stands, as a cursor says it."""

    epoch: int
    sub_epoch: int
    step: int
    position: int


class Step(NamedTuple):
    """A step of a run: by which of its plans, where it starts, and where the run stands then."""

    plan: int
    start: Place
    stop: Place


class Way:
    """How a plan goes through an order of `num` units, in numbers."""

    def __init__(self, num: int, parts: int, size: int, remainder: str) -> None:
        self.num, self.size, self.remainder = num, size, remainder
        self.least = size if remainder == "drop" else 1  # units that a step needs
        each, more = divmod(num, parts)
        self.edges = [part * each + min(part, more) for part in range(parts + 1)]

    def steps(self, place: Place) -> Iterator[tuple[Place, Place]]:
        """Yield where each step from a place on starts, and where the run stands after it."""
        while True:
            start, left = place, self.edges[place.sub_epoch + 1] - place.position
            if self.remainder == "carry":
                place = self._on(start, self.size)
                yield start, place
            elif left < self.least:  # nothing is left to read here
                place = self._next(start)
            else:
                many = -(-left // self.size)  # steps, as equal as can be
                size = -(-left // many) if self.remainder == "spread" else self.size
                place = start._replace(step=start.step + 1, position=start.position + size)
                place = self._next(start) if left - size < self.least else place
                yield start, place

    def _next(self, place: Place) -> Place:
        """Return where the next sub-epoch begins."""
        if place.sub_epoch + 2 == len(self.edges):
            return Place(place.epoch + 1, 0, 0, 0)
        return Place(place.epoch, place.sub_epoch + 1, 0, self.edges[place.sub_epoch + 1])

    def _on(self, place: Place, size: int) -> Place:
        """Return where a step ends that reads on through sub-epochs and epochs."""
        turns, position = divmod(place.position + size, self.num)
        epoch, part = place.epoch + turns, 0
        while self.edges[part + 1] <= position:
            part += 1
        same = (epoch, part) == place[:2]
        return Place(epoch, part, place.step + 1 if same else 0, position)


class Run:
    """A run that goes on with one of its plans after another, and each of its steps."""

    def __init__(self, drawn: random.Random, path: Path) -> None:
        self.drawn, self.path = drawn, path
        num, parts = drawn.randrange(20, 2000), drawn.choice([1, 1, 2, 7])
        self.order, self.parts = ip.Shuffle(num), parts
        self.known = self.order.to_dict()
        self.plans: list[tuple[ip.Plan, Way]] = []
        for _ in range(drawn.randrange(1, 6)):
            ranks, size, rest = drawn.randrange(1, 9), drawn.randrange(8, 99), REMAINDERS
            rest = [each for each in rest if each != "drop" or size <= num // parts]
            remainder = drawn.choice(rest)
            fields: dict[str, Any] = {"sub_epochs": parts, "remainder": remainder}
            plan = ip.Plan(self.order, world_size=ranks, global_batch_size=size, **fields)
            self.plans.append((plan, Way(num, parts, size, remainder)))
        self.stands, self.steps = Place(0, 0, 0, 0), list[Step]()
        self.ledger = ip.Ledger(path)
        self.saved = [(self.ledger.hash, self.steps)]

    def read(self) -> None:
        """Read some steps by a plan, and hold the line that is written against the walk."""
        number = self.drawn.randrange(len(self.plans))
        plan, way = self.plans[number]
        ahead = way.steps(self.stands)
        steps = [Step(number, *next(ahead)) for _ in range(self.drawn.choice([1, 1, 2, 5, 9, 30]))]
        plan = plan.resume(self.cursor(self.stands))
        self.ledger.record(plan, self.cursor(steps[-1].stop))
        self.steps, self.stands = self.steps + steps, steps[-1].stop
        tail = self.ledger.tail
        assert (len(self.steps), self.stands) == (tail.step, tail.place)
        self.saved = [*self.saved[-20:], (self.ledger.hash, self.steps)]

    def cursor(self, place: Place) -> ip.Cursor:
        """Return a place as a cursor, from the walk's numbers alone."""
        return ip.Cursor(**place._asdict(), order=self.known, sub_epochs=self.parts)

    def back(self) -> None:
        """Return to a checkpoint."""
        digest, self.steps = self.drawn.choice(self.saved)
        self.ledger.rewind(digest)
        self.stands = self.steps[-1].stop if self.steps else Place(0, 0, 0, 0)
        assert len(self.steps) == self.ledger.step
        assert self.ledger.tail.place in (None, self.stands)

    def check(self) -> int:
        """Hold each segment of the file that counts against the walk; return how many there are."""
        ledger = ip.Ledger(self.path)
        assert ledger.verify(self.ledger.hash).ok
        prints = [plan.fingerprint for plan, _ in self.plans]
        rows = [row for row in ledger.to_dict()["segments"] if not row["void"]]
        step, place = 0, Place(0, 0, 0, 0)
        for row in rows:
            assert (step, list(place)) == (row["step"], row["from"])
            steps = self.steps[step : step + row["steps"]]
            place = steps[-1].stop
            assert list(place) == row["to"]
            at = ledger.at(step + self.drawn.randrange(len(steps)))
            asked = self.steps[at.global_step]
            assert asked.start == tuple(getattr(at.cursor, name) for name in Place._fields)
            named = at.plan.replace(world_size=at.plan.world_size)  # not resumed
            assert {named.fingerprint} == {prints[each.plan] for each in steps}
            step += len(steps)
        assert step == len(self.steps) == ledger.step
        return len(rows)


def simulate(num: int, first: int, folder: Path) -> tuple[int, int, int]:
    """Write so many segments, in runs that are named by their number, and check each.

    Returns how many segments were written, how many of them count at the end of their run, and how
    many runs there were.
    """
    written = count = runs = 0
    while written < num:
        drawn = random.Random(first + runs)  # noqa: S311 (draws a test)
        run = Run(drawn, folder / "segments.ledger")
        for _ in range(min(AT_ONCE, num - written)):
            run.read()
            written += 1
            if drawn.random() < 0.05:
                run.back()
        count += run.check()
        runs += 1
        run.path.unlink()
    return written, count, runs
