"""torch's DistributedSampler in a BatchSampler."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.distributed import DistributedSampler

from benchmarks.contenders.planners import Job, Sized

torch.set_num_threads(1)


def sampler_of(job: Job, kind: type[DistributedSampler] = DistributedSampler) -> Any:
    return kind(Sized(job.n), num_replicas=job.world, rank=job.rank, seed=job.seed)


def batch_sampler(job: Job) -> BatchSampler:
    return BatchSampler(sampler_of(job), job.batch, drop_last=False)


def loader(dataset: Any, job: Job, num_workers: int) -> DataLoader:
    return DataLoader(dataset, job.batch, sampler=sampler_of(job), num_workers=num_workers)


def stream(job: Job) -> Iterator[Any]:
    return iter(batch_sampler(job))


def share(job: Job) -> Any:
    """Return what the sampler's iterator gives; it makes the whole of it first."""
    return list(islice(iter(sampler_of(job)), job.limit))


def resume(job: Job, state: int) -> Iterator[Any]:
    return islice(stream(job), state, None)


def order(n: int, seed: int) -> Any:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).numpy()
