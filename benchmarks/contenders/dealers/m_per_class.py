"""pytorch-metric-learning's MPerClassSampler."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pytorch_metric_learning.samplers import MPerClassSampler
from torch.utils.data import BatchSampler

from benchmarks.contenders.dealers import PER_CLASS, Case


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        self.case = case
        self.sampler = MPerClassSampler(given["labels"], PER_CLASS, case.batch)

    def batches(self, step: int) -> Iterator[Any]:
        return islice(BatchSampler(self.sampler, self.case.batch, drop_last=False), step, None)

    def epoch(self, limit: int) -> Any:
        return list(islice(self.sampler, limit))
