"""Grain's mix: which source, and which number in it, for each index."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from grain import MapDataset

from benchmarks.contenders.dealers import Case


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        self.case = case
        sources = [MapDataset.range(n) for n in given["sizes"].tolist()]
        mixed = MapDataset.mix(sources, given["shares"].tolist())
        self.select = mixed._selection_map  # noqa: SLF001 (without the elements)

    def epoch(self, limit: int) -> Any:
        return [self.select[i] for i in range(min(limit, self.case.size))]

    def batches(self, step: int) -> Iterator[Any]:
        for start in range(step * self.case.batch, self.case.size, self.case.batch):
            stop = min(start + self.case.batch, self.case.size)
            yield [self.select[i] for i in range(start, stop)]

    def sources(self, dealt: Any) -> Any:
        return np.array(dealt)[:, 0]
