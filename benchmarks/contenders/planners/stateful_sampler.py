"""torchdata's StatefulDistributedSampler, which counts what it yielded."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler, DataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from benchmarks.contenders.planners import Job
from benchmarks.contenders.planners.distributed_sampler import sampler_of


def batch_sampler(job: Job) -> BatchSampler:
    sampler = sampler_of(job, StatefulDistributedSampler)
    return BatchSampler(sampler, job.batch, drop_last=False)


def loader(dataset: Any, job: Job, num_workers: int) -> DataLoader:
    sampler = sampler_of(job, StatefulDistributedSampler)
    return DataLoader(dataset, job.batch, sampler=sampler, num_workers=num_workers)


def stream(job: Job) -> Iterator[Any]:
    return iter(batch_sampler(job))


def share(job: Job) -> Any:
    return list(islice(iter(sampler_of(job, StatefulDistributedSampler)), job.limit))


def saved(job: Job, step: int) -> dict[str, Any]:
    """Return what its state_dict returns after so many batches (the tests compare them)."""
    return {StatefulDistributedSampler._YIELDED: step * job.batch}  # noqa: SLF001


def resume(job: Job, state: dict[str, Any]) -> Iterator[Any]:
    sampler = sampler_of(job, StatefulDistributedSampler)
    sampler.load_state_dict(state)
    return iter(BatchSampler(sampler, job.batch, drop_last=False))
