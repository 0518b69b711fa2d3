"""In the manner of EfficientViT: a sampler with sub-epochs, each a slice of the whole permutation.

Not EfficientViT's code: what its SAM sampler does over DistributedSampler, with lengths right.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import BatchSampler
from torch.utils.data.distributed import DistributedSampler

from benchmarks.contenders.planners import Job
from benchmarks.contenders.planners.distributed_sampler import sampler_of


class SubEpochSampler(DistributedSampler):
    """DistributedSampler of one of several sub-epochs."""

    sub_epoch, num_sub_epochs = 0, 1

    def __iter__(self) -> Iterator[int]:
        whole = list(super().__iter__())
        start, stop = (
            i * len(whole) // self.num_sub_epochs for i in (self.sub_epoch, self.sub_epoch + 1)
        )
        return iter(whole[start:stop])


def sub_epochs(job: Job) -> Callable[[int], Iterator[Any]]:
    sampler = sampler_of(job, SubEpochSampler)
    sampler.num_sub_epochs = job.num_sub_epochs

    def begin(sub_epoch: int) -> Iterator[Any]:
        sampler.sub_epoch = sub_epoch
        return iter(BatchSampler(sampler, job.batch, drop_last=False))

    return begin
