"""The cures of errors of what Grain reads: samplers, datasets, and their iterators' states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grain

import indexplan as ip
from indexplan_jax.grain import PlanIterDataset, PlanSampler
from indexplan_jax.steps import Steps
from tests.errors.catalogue.grains import BINS, PARTIAL, PLAN, dataset, sampler, state
from tests.support.bins import Shrinking

SHRINKING = ip.Plan(Shrinking(9), world_size=2, batch_size=2, remainder="drop")
OF_FIVE = PLAN.replace(global_batch_size=5)


def grown() -> None:
    """Read a source that has grown by a plan of as many samples."""
    samples = [*range(12), *range(12, 15)]
    next(iter(PlanIterDataset(samples, PLAN.replace(order=ip.Sequential(len(samples))))))


def sampled(made: PlanSampler, count: int = 2, **options: Any) -> bytes:
    """Read some samples by a DataLoader, and return its iterator's state."""
    loader = grain.DataLoader(data_source=range(12), sampler=made, **options)
    iterator = iter(loader)
    for _ in range(count):
        next(iterator)
    return iterator.get_state()


def left(plan: ip.Plan, samples: Any) -> None:
    """Read a plan's first step by a PlanIterDataset."""
    next(dataset(plan, samples))


def of_whole_batches() -> None:
    """Resume from a state of whole batches, by as many workers."""
    operations = [grain.transforms.Batch(sampler().batch_size)]
    sampler().resume(sampled(sampler(), 1, operations=operations))


def filtered() -> None:
    """Filter the order, and not the samples."""
    subset = ip.Subset(ip.Sequential(11), [0, *range(2, 12)], 12)
    next(dataset(PLAN.replace(order=subset)))


def restored() -> None:
    """Set what get_state returned."""
    made = dataset()
    next(made)
    dataset().set_state(made.get_state())


def two_steps(plan: ip.Plan, rank: int = 3) -> None:
    """Read two steps of a process, over more than an epoch where the plan has one each."""
    assert len([*zip(range(2), dataset(plan, range(5), rank), strict=False)]) == 2


CURED: dict[str, Callable[[], Any]] = {
    "a source that grew": grown,
    "a sampler of no plan": lambda: sampled(
        sampler(ip.Plan(ip.Sequential(12), batch_size=1, remainder="carry"))
    ),
    "shard options of something else": lambda: sampled(
        PlanSampler(PLAN, grain.sharding.ShardOptions(0, 2))
    ),
    "shard options of other processes than the plan's": lambda: [
        sampled(sampler(PLAN.replace(world_size=3).replace(world_size=None))),
        sampled(sampler(PLAN.replace(world_size=3), world_size=3)),
    ],
    "a sampler of batches that differ": lambda: [
        sampled(sampler(PLAN.replace(remainder="spread").replace(remainder="carry"))),
        left(PLAN.replace(remainder="spread"), range(12)),
    ],
    "a sampler of bins": lambda: left(BINS, range(2)),
    "a sampler of a global batch that processes do not divide": lambda: [
        sampled(sampler(OF_FIVE.replace(global_batch_size=6))),
        left(OF_FIVE, range(12)),
    ],
    "a sampler of a negative number of workers": lambda: sampled(
        sampler(worker_count=0), worker_count=0
    ),
    "a sampler of workers that do not divide its end": lambda: [
        sampler(num_epochs=1, worker_count=0),
        sampler(num_epochs=1, worker_count=1),
        sampler(num_epochs=None, worker_count=2),
    ],
    "a sampler of no epoch": lambda: [sampler(num_epochs=2), sampler(num_epochs=None)],
    "a sampler of a negative seed": lambda: sampled(sampler(seed=None)),
    "a sampler that another shard asks": lambda: sampled(sampler()),
    "a sampler of a plan without a step": lambda: [
        Steps(SHRINKING.replace(remainder="pad"), None)[5],
    ],
    "a state of another loader": lambda: [
        sampler().resume(state(2)),
        sampled(sampler(PLAN.resume(PLAN.replace(world_size=2).cursor(0, step=1)))),
    ],
    "a state inside a batch": of_whole_batches,
    "a state of other workers than the sampler's": of_whole_batches,
    "a dataset of other samples": lambda: left(PLAN, range(12)),
    "a step without a unit for a process": lambda: [
        two_steps(PARTIAL.replace(batch_size=2)),
        two_steps(PARTIAL.replace(remainder="pad")),
        two_steps(PARTIAL.replace(world_size=1), 0),
    ],
    "a sample that a filter left out": filtered,
    "a dataset's state of something else": restored,
}
