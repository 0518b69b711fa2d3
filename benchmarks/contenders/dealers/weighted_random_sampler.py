"""torch's WeightedRandomSampler, also for equal classes."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, WeightedRandomSampler

from benchmarks.contenders.dealers import Case


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        self.case, self.generator = case, torch.Generator()
        if case.need == "weights":
            weights = given["weights"]
        else:
            weights = 1 / np.bincount(given["labels"])[given["labels"]]
        self.sampler = WeightedRandomSampler(weights, case.n, generator=self.generator)

    def batches(self, step: int) -> Iterator[Any]:
        self.generator.manual_seed(self.case.seed)
        return islice(BatchSampler(self.sampler, self.case.batch, drop_last=False), step, None)

    def epoch(self, limit: int) -> Any:
        self.generator.manual_seed(self.case.seed)
        return list(islice(self.sampler, limit))
