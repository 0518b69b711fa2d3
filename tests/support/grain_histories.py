"""Histories of runs that read plans through Grain, each batch compared with the plan's own.

A history keeps nothing between its legs but a state that one process saved. In each leg the
processes, the batch size and what reads ahead are others.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Any

import grain

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from tests.support.planned import planned
from tests.support.strategies import steps_of

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


def run(num_epochs: int, legs: list[Leg]) -> int:
    """Run a history; raise where a step differs from the plan's.

    Returns
    -------
    int
        The samples read.
    """
    state: Any = None
    read: list[int] = []
    for leg in legs:
        plan, ranks = leg.plan, range(leg.plan.world_size or 1)
        samples = grain.MapDataset.range(plan.order.num_samples)
        shards = [grain.sharding.ShardOptions(rank, len(ranks)) for rank in ranks]
        options: Any = {"num_epochs": num_epochs, "read_options": leg.ahead}
        loops = [iter(PlanIterDataset(samples, plan, shard, **options)) for shard in shards]
        if state is not None:
            for loop in loops:
                loop.set_state(json.loads(state))
            plan = plan.resume(ip.Cursor.from_dict(json.loads(state)["cursor"]))
        left = [where for where in steps_of(plan, num_epochs) if where[0] < num_epochs]
        for epoch, part, step in left[: round(leg.part * len(left))]:
            found = [next(loop).tolist() for loop in loops]
            expected = [plan.batch(epoch, part, step=step, rank=rank).tolist() for rank in ranks]
            assert expected == found, (num_epochs, legs, len(read))
            read += sum(found, [])
        if leg.part == 1:
            assert [None] * len(loops) == [next(loop, None) for loop in loops]
        states = [loop.get_state() for loop in loops]
        assert all(each == states[0] for each in states)
        state = json.dumps(states[0])
    first = legs[0].plan
    if first.remainder == "spread":  # each sample as often as the order has it, over all legs
        order = first.order
        every = [order.take(epoch, 0, order.num_units(epoch)) for epoch in range(num_epochs)]
        assert sorted(sum((each.tolist() for each in every), [])) == sorted(read)
    return len(read)
