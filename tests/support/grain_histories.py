"""Histories of runs that read plans through Grain, each batch compared with the plan's own.

A history keeps nothing between its legs but a state that one process saved. In each leg the
processes, the batch size and what reads ahead are others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import grain

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from tests.support.planned import planned

AHEAD = [
    None,
    grain.ReadOptions(num_threads=0, prefetch_buffer_size=0),
    grain.ReadOptions(num_threads=2, prefetch_buffer_size=3),
]


@dataclass(frozen=True)
class Leg:
    """A job between two starts: its processes, its plan, its part of the steps, its threads."""

    plan: ip.Plan
    part: float
    ahead: grain.ReadOptions | None


def shard(rank: int, plan: ip.Plan) -> grain.sharding.ShardOptions:
    """Return the ShardOptions of a process."""
    return grain.sharding.ShardOptions(rank, plan.world_size)


def draw(key: str) -> tuple[int, list[Leg]]:
    """Draw the epochs and the legs of a run; the last one reads to the end."""
    random = Random(key)  # noqa: S311 (for a history that comes again, not for a secret)
    size, seed = random.randint(4, 80), random.randrange(2**63)
    kind = random.randrange(4)
    order: ip.Order = ip.Shuffle(size, seed)
    if kind == 1:
        order = ip.Repeat(order, copies=2)
    elif kind == 2:
        order = ip.Mixture({"a": order, "b": ip.Shuffle(9, seed + 1)}, {"a": 2, "b": 1})
    remainder, sub_epochs = (
        random.choice(["spread", "carry", "drop", "pad"]),
        random.choice([1, 1, 2]),
    )
    legs = []
    for part in (*(random.random() for _ in range(random.randint(0, 3))), 1.0):
        ranks = random.choice([1, 2, 3, 4])
        size = random.randint(1, 6)
        sizes: Any = random.choice([{"batch_size": size}, {"global_batch_size": size * ranks}])
        plan = planned(order, world_size=ranks, sub_epochs=sub_epochs, remainder=remainder, **sizes)
        legs.append(Leg(plan, part, random.choice(AHEAD)))
    return random.randint(1, 3), legs


def steps(plan: ip.Plan, num_epochs: int) -> Iterator[list[list[int]]]:
    """Yield what the ranks read in each step from where a plan starts."""
    start = plan.start
    for epoch in range(start.epoch, num_epochs):
        for part in range(plan.sub_epochs):
            if (epoch, part) >= (start.epoch, start.sub_epoch):
                for step in plan.steps(epoch, part):
                    yield [
                        plan.batch(epoch, part, step=step, rank=rank).tolist()
                        for rank in range(plan.world_size or 1)
                    ]


def opened(leg: Leg, num_epochs: int, state: Any) -> tuple[list[Any], ip.Plan]:
    """Return the iterators of PlanIterDatasets, and the plan of what is left."""
    samples = grain.MapDataset.range(leg.plan.order.num_samples)
    plan = leg.plan
    made = [
        PlanIterDataset(
            samples, plan, shard(rank, plan), num_epochs=num_epochs, read_options=leg.ahead
        )
        for rank in range(plan.world_size or 1)
    ]
    iterators = [iter(each) for each in made]
    if state is not None:
        for each in iterators:
            each.set_state(json.loads(state))
        plan = plan.resume(ip.Cursor.from_dict(json.loads(state)["cursor"]))
    return iterators, plan


def run(num_epochs: int, legs: list[Leg]) -> int:
    """Run a history; raise where a step differs from the plan's.

    Returns
    -------
    int
        The samples read.
    """
    state, number = None, 0
    read: list[int] = []
    for leg in legs:
        iterators, plan = opened(leg, num_epochs, state)
        left = list(steps(plan, num_epochs))
        for expected in left[: round(leg.part * len(left))]:
            found = [next(each).tolist() for each in iterators]
            assert expected == found, (num_epochs, legs, number)
            read += sum(found, [])
            number += 1
        if leg.part == 1:
            assert [None] * len(iterators) == [next(each, None) for each in iterators]
        states = [each.get_state() for each in iterators]
        assert all(each == states[0] for each in states)
        state = json.dumps(states[0])
    first = legs[0].plan
    if first.remainder == "spread":  # each sample as often as the order has it, over all legs
        order = first.order
        every = [order.take(epoch, 0, order.num_units(epoch)) for epoch in range(num_epochs)]
        assert sorted(sum((each.tolist() for each in every), [])) == sorted(read)
    return len(read)
