"""timm's RepeatAugSampler, without the parts of timm that need torchvision."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler

from benchmarks.contenders import name_packages
from benchmarks.contenders.dealers import COPIES, Case
from benchmarks.contenders.planners import Sized

name_packages("timm", "timm.data")
from timm.data.distributed_sampler import RepeatAugSampler  # noqa: E402 (needs the names above)


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:  # noqa: ARG002 (it needs none)
        self.case = case
        self.sampler = RepeatAugSampler(Sized(case.n), case.world, rank=0, num_repeats=COPIES)
        self.sampler.set_epoch(case.seed)

    def batches(self, step: int) -> Iterator[Any]:
        return islice(BatchSampler(self.sampler, self.case.batch, drop_last=False), step, None)

    def epoch(self, limit: int) -> Any:
        return list(islice(self.sampler, limit))
