"""Hugging Face's interleave_datasets."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from datasets import Dataset, interleave_datasets

from benchmarks.contenders.dealers import Case


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        self.case, self.ends = case, np.cumsum(given["sizes"])
        self.shares = given["shares"] / given["shares"].sum()
        self.datasets = [Dataset.from_dict({"x": np.arange(n)}) for n in given["sizes"]]
        self.indices = self.interleaved()

    def interleaved(self) -> Any:
        mixed = interleave_datasets(
            self.datasets,
            self.shares.tolist(),
            seed=self.case.seed,
            stopping_strategy=self.case.need.replace(" ", "_"),
        )
        return mixed._indices.column(0)  # noqa: SLF001 (not the rows)

    def epoch(self, limit: int) -> Any:
        return self.interleaved()[:limit].to_numpy()

    def batches(self, step: int) -> Iterator[Any]:
        for start in range(step * self.case.batch, len(self.indices), self.case.batch):
            yield self.indices[start : start + self.case.batch].to_numpy()

    def sources(self, dealt: Any) -> Any:
        return np.searchsorted(self.ends, dealt, side="right")
