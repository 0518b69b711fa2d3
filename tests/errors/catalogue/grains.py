"""Errors of what Grain reads: samplers, datasets, and the states of their iterators."""

from __future__ import annotations

import json
from typing import Any

import grain

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset, PlanSampler
from indexplan_jax.steps import Steps
from tests.errors.catalogue.made import Case
from tests.support.bins import Shrinking

PLAN = ip.Plan(ip.Sequential(12), batch_size=2, remainder="carry")
PARTIAL = ip.Plan(ip.Sequential(5), world_size=4, batch_size=1)
BINS = ip.Plan(ip.TokenBudget([3, 4], max_tokens=9, num_buckets=1), batch_size=1, remainder="carry")


def sampler(plan: Any = PLAN, rank: int = 0, world_size: int = 2, **options: Any) -> PlanSampler:
    """Return a process's sampler."""
    return PlanSampler(plan, grain.sharding.ShardOptions(rank, world_size), **options)


def state(read: int, **changes: Any) -> bytes:
    """Return the state of a DataLoader's iterator that has read so many samples."""
    loader = grain.DataLoader(data_source=range(12), sampler=sampler())
    iterator = iter(loader)
    for _ in range(read):
        next(iterator)
    return json.dumps({**json.loads(iterator.get_state()), **changes}).encode()


def dataset(plan: Any = PLAN, samples: Any = range(12), rank: int = 0) -> Any:
    """Return the iterator of a process's dataset."""
    world_size = plan.world_size or 2
    return iter(PlanIterDataset(samples, plan, grain.sharding.ShardOptions(rank, world_size)))


def later(saved: bytes) -> None:
    """Resume from a state of a later version."""
    sampler().resume(saved.replace(b'\\"version\\": 1', b'\\"version\\": 2'))


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
    ("a sampler of no plan", lambda: sampler(range(12))),
    ("shard options of something else", lambda: PlanSampler(PLAN, (0, 2))),  # type: ignore[arg-type]
    (
        "shard options of other processes than the plan's",
        lambda: sampler(PLAN.replace(world_size=3)),
    ),
    ("a sampler of batches that differ", lambda: sampler(PLAN.replace(remainder="spread"))),
    ("a sampler of bins", lambda: sampler(BINS)),
    (
        "a sampler of a global batch that processes do not divide",
        lambda: sampler(PLAN.replace(global_batch_size=5)),
    ),
    ("a sampler of a negative number of workers", lambda: sampler(worker_count=-1)),
    (
        "a sampler of workers that do not divide its end",
        lambda: sampler(num_epochs=1, worker_count=2),
    ),
    ("a sampler of no epoch", lambda: sampler(num_epochs=0)),
    ("a sampler of a negative seed", lambda: sampler(seed=-1)),
    ("a sampler that another shard asks", lambda: sampler()[1]),
    (
        "a sampler of a plan without a step",
        lambda: Steps(ip.Plan(Shrinking(9), world_size=2, batch_size=2, remainder="drop"), None)[5],
    ),
    ("a state of another loader", lambda: sampler().resume(b'{"next_index": 3}')),
    ("a sampler's state of another version", lambda: later(state(2))),
    ("a state inside a batch", lambda: sampler().resume(state(3))),
    (
        "a state of other workers than the sampler's",
        lambda: sampler().resume(state(2, worker_count=1)),
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
