"""In the manner of detectron2's repeat factor sampling; not its code, but its steps and calls."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils.data import BatchSampler

from benchmarks.contenders.dealers import THRESHOLD, Case


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        self.case, images = case, [set(each.tolist()) for each in given["lists"]]
        held = Counter(category for image in images for category in image)
        factor_of = {
            category: max(1.0, math.sqrt(THRESHOLD * case.n / count))
            for category, count in held.items()
        }
        factors = torch.tensor([max(factor_of[each] for each in image) for image in images])
        self.whole, self.part = torch.trunc(factors), torch.frac(factors)

    def epoch(self, limit: int) -> Any:
        generator = torch.Generator().manual_seed(self.case.seed)
        chance = torch.rand(len(self.part), generator=generator)
        repeats = self.whole + (chance < self.part).float()
        indices: list[int] = []
        for index, repeat in enumerate(repeats):
            indices += [index] * int(repeat)
        order = torch.randperm(len(indices), generator=generator)
        return torch.tensor(indices)[order].tolist()[:limit]

    def batches(self, step: int) -> Iterator[Any]:
        epoch = self.epoch(2**62)
        return islice(BatchSampler(epoch, self.case.batch, drop_last=False), step, None)
