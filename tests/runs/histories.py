"""The histories that every loader is given: where a run stops, and how it goes on.

A history is drawn from its number alone, so the first hundred are the same for every loader.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

EPOCHS = 2
SIZES = (97, 128, 211, 256, 360, 499, 512, 641, 720, 1000, 1021, 1200)
"""Samples in the dataset: primes, powers of two and others."""
SMALL = 6
"""How many of the sizes histories with worker processes take."""
GLOBAL_BATCHES = (12, 16, 24, 30, 36, 40, 48, 60)
"""Samples in a step of all ranks, where histories keep it."""
LARGEST_WORLD, LARGEST_BATCH = 8, 16
LARGEST_WORLD_WITH_WORKERS, MOST_WORKERS = 3, 2

NOTHING, WORKERS, WORLD, ANYTHING = "nothing", "workers", "world size", "anything"
KINDS = {
    NOTHING: "nothing changes",
    WORKERS: "only the number of workers changes",
    WORLD: "the world size changes, the global batch stays",
    ANYTHING: "world size, batch size and workers change at will",
}
"""What may change at a resume."""
DEALT = (NOTHING, WORLD, ANYTHING)
DEALT_WITH_WORKERS = (NOTHING, WORKERS, WORLD, ANYTHING)
"""The kinds of histories in a row, without and with worker processes."""
SHARE_AT_THE_END = 0.15
"""Of the stops that are made after the last batch, when the loop over the pass has ended."""


@dataclass(frozen=True)
class Leg:
    """From a start or resume to the next stop, with what the run has there."""

    world: int
    """Ranks."""
    batch: int
    """Samples in a rank's batch."""
    workers: int
    """Worker processes of each rank's loader."""
    steps: int | None = None
    """Steps until it is stopped, after receiving the last of them; None: until the run is over."""
    whole_pass: bool = False
    """Whether it is stopped when the pass that it is in has ended instead."""


@dataclass(frozen=True)
class History:
    """A run of `EPOCHS` epochs over n samples, in two to four legs."""

    number: int
    with_workers: bool
    kind: str
    n: int
    legs: tuple[Leg, ...]

    def __str__(self) -> str:
        legs = ", ".join(
            f"{leg.world} x {leg.batch} "
            + (f"with {leg.workers} workers " if self.with_workers else "")
            + (
                "to the end"
                if leg.steps is None
                else "until the pass ends"
                if leg.whole_pass
                else f"for {leg.steps} steps"
            )
            for leg in self.legs
        )
        more = " with workers" if self.with_workers else ""
        return f"history {self.number}{more}, {self.n} samples: {legs}"


def _topologies(rng: random.Random, kind: str, count: int, *, with_workers: bool) -> list[Leg]:
    """Draw what each leg has; neighbours differ in what the kind says."""
    worlds = range(1, (LARGEST_WORLD_WITH_WORKERS if with_workers else LARGEST_WORLD) + 1)
    sizes = range(1, LARGEST_BATCH + 1)
    most = MOST_WORKERS if with_workers else 0
    step = rng.choice(GLOBAL_BATCHES)
    divisors = [world for world in worlds if step % world == 0]
    legs = [Leg(rng.choice(worlds), rng.choice(sizes), rng.randint(0, most))]
    if kind == WORLD:
        world = rng.choice(divisors)
        legs = [Leg(world, step // world, legs[0].workers)]
    while len(legs) < count:
        last = legs[-1]
        if kind == NOTHING:
            leg = last
        elif kind == WORKERS:
            others = [w for w in range(most + 1) if w != last.workers]
            leg = Leg(last.world, last.batch, rng.choice(others))
        elif kind == WORLD:
            world = rng.choice([world for world in divisors if world != last.world])
            leg = Leg(world, step // world, last.workers)
        else:
            leg = Leg(rng.choice(worlds), rng.choice(sizes), rng.randint(0, most))
        legs.append(leg)
    return legs


def history(number: int, *, with_workers: bool = False) -> History:
    """Draw the history of a number."""
    rng = random.Random(f"torture {number} {with_workers}")  # noqa: S311 (a draw, no secret)
    kinds = DEALT_WITH_WORKERS if with_workers else DEALT
    kind = kinds[number % len(kinds)]
    n = rng.choice(SIZES[: SMALL if with_workers else len(SIZES)])
    count = rng.randint(2, 3 if with_workers else 4)
    topologies = _topologies(rng, kind, count, with_workers=with_workers)
    legs = []
    for leg in topologies[:-1]:
        fair = EPOCHS * n / (leg.world * leg.batch) / count  # an equal share of the run
        steps = rng.randint(1, 1 + int(1.3 * fair))
        whole_pass = rng.random() < SHARE_AT_THE_END
        legs.append(Leg(leg.world, leg.batch, leg.workers, steps, whole_pass))
    return History(number, with_workers, kind, n, (*legs, topologies[-1]))
