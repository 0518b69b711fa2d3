"""Megatron-LM's indices of GPTDataset: its own C++ cuts the windows, NumPy shuffles, as there."""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import name_packages
from benchmarks.contenders.binners import Case, Int64

name_packages("megatron", "megatron.core", "megatron.core.datasets")
from megatron.core.datasets.helpers_cpp import (  # noqa: E402 (needs the names above)
    build_sample_idx_int32,
)


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        self.case, self.lengths, self.number = case, lengths.astype(np.int32), -1

    def window(self, number: int, place: int) -> Int64:
        if number != self.number:
            self.number = number
            rng = np.random.RandomState(number)
            self.documents = np.arange(len(self.lengths), dtype=np.int32)
            rng.shuffle(self.documents)
            total = int(self.lengths.sum(dtype=np.int64))
            self.cuts = build_sample_idx_int32(
                self.lengths, self.documents, self.case.limit, 1, total, True, 1
            )
            self.order = np.arange(len(self.cuts) - 1, dtype=np.uint32)
            rng.shuffle(self.order)
        (first, start), (last, stop) = self.cuts[self.order[place] :][:2].tolist()
        documents = self.documents[first : last + 1].astype(np.int64)
        stops = self.lengths[documents].astype(np.int64)
        starts = np.zeros_like(stops)
        starts[0], stops[-1] = start, stop + 1
        return np.stack([documents, starts, stops], axis=1)

    def num_windows(self) -> int:
        return len(self.order)
