"""Errors of what Grain reads: datasets, and the states of their iterators."""

from __future__ import annotations

from typing import Any

import grain

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset
from indexplan_jax.steps import Steps
from tests.errors.catalogue.made import Case
from tests.support.bins import Shrinking

PLAN = ip.Plan(ip.Sequential(12), batch_size=2, remainder="carry")
PARTIAL = ip.Plan(ip.Sequential(5), world_size=4, batch_size=1)


def dataset(plan: Any = PLAN, samples: Any = range(12), rank: int = 0) -> Any:
    """Return the iterator of a process's dataset."""
    world_size = plan.world_size or 2
    return iter(PlanIterDataset(samples, plan, grain.sharding.ShardOptions(rank, world_size)))


def sparse() -> None:
    """Read a sample that a filter left out."""
    kept = grain.MapDataset.range(12).filter(lambda number: number != 1)
    next(dataset(samples=kept))


def grown() -> None:
    """Read on from a state, over a source that has grown."""
    samples = list(range(12))
    made = PlanIterDataset(samples, PLAN)
    samples += range(12, 15)
    iter(made)


CASES: list[Case] = [
    ("a source that grew", grown),
    ("a dataset of no plan", lambda: PlanIterDataset(range(12), range(12))),  # type: ignore[arg-type]
    ("shard options of something else", lambda: PlanIterDataset(range(12), PLAN, (0, 2))),  # type: ignore[arg-type]
    (
        "shard options of other processes than the plan's",
        lambda: PlanIterDataset(range(12), PLAN.replace(world_size=3)),
    ),
    ("a dataset of no epoch", lambda: PlanIterDataset(range(12), PLAN, num_epochs=0)),
    (
        "a dataset of a plan without a step",
        lambda: Steps(ip.Plan(Shrinking(9), world_size=2, batch_size=2, remainder="drop"), None)[5],
    ),
    ("a dataset of other samples", lambda: dataset(samples=range(13))),
    (
        "a step without a unit for a process",
        lambda: [*zip(range(2), dataset(PARTIAL, range(5), 3), strict=False)],
    ),
    ("a sample that a filter left out", sparse),
    ("a dataset's state of something else", lambda: dataset().set_state({"next_index": 3})),
    (
        "a dataset's state of another version",
        lambda: dataset().set_state({"version": 2, "cursor": {}}),
    ),
]
