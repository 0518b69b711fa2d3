"""Grain's IndexSampler, read as Grain's DataLoader reads it: one record's metadata at a time."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from grain.samplers import IndexSampler
from grain.sharding import ShardOptions

from benchmarks.contenders.planners import Job


def sampler_of(job: Job) -> IndexSampler:
    return IndexSampler(
        job.n, ShardOptions(job.rank, job.world), shuffle=True, num_epochs=1, seed=job.seed
    )


def places(job: Job) -> range:
    """Return the global numbers of this rank's records in its first epoch."""
    return range(job.rank, job.n, job.world)


def stream(job: Job) -> Iterator[Any]:
    return resume(job, 0)


def share(job: Job) -> Any:
    sampler = sampler_of(job)
    return [sampler[i].record_key for i in islice(places(job), job.limit)]


def resume(job: Job, state: int) -> Iterator[Any]:
    sampler, mine = sampler_of(job), places(job)
    for i in range(state * job.batch, len(mine), job.batch):
        yield [sampler[j].record_key for j in mine[i : i + job.batch]]
