"""Megatron-LM's blending of datasets, by its own C++.

Its other modules import transformer_engine or torch's newest parts; the compiled one needs none.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contenders import name_packages
from benchmarks.contenders.dealers import Case

name_packages("megatron", "megatron.core", "megatron.core.datasets")
from megatron.core.datasets.helpers_cpp import (  # noqa: E402 (needs the names above)
    build_blending_indices,
)


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        self.case, self.weights = case, given["shares"] / given["shares"].sum()
        self.blend = self.epoch(case.size)

    def epoch(self, limit: int) -> Any:
        size = min(limit, self.case.size)
        source, number = np.zeros(size, np.int16), np.zeros(size, np.int64)
        build_blending_indices(source, number, self.weights, len(self.weights), size, False)
        return source, number

    def batches(self, step: int) -> Iterator[Any]:
        for start in range(step * self.case.batch, self.case.size, self.case.batch):
            yield tuple(np.array(column[start : start + self.case.batch]) for column in self.blend)

    def sources(self, dealt: Any) -> Any:
        return dealt[0]
