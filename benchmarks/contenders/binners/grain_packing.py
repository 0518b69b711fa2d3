"""Grain's packing by first fit."""

from __future__ import annotations

import grain
import numpy as np
from grain.experimental import FirstFitPackIterDataset

from benchmarks.contenders.binners import Case, Int64, joined


class Binner:
    def __init__(self, case: Case, lengths: Int64, num_packing_bins: int) -> None:
        self.case, self.lengths, self.open = case, lengths, num_packing_bins

    def tokens(self, sample: int) -> dict[str, Int64]:
        return {"tokens": np.full(self.lengths[sample], sample)}

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        samples = grain.MapDataset.range(len(self.lengths)).shuffle(seed=number)
        read = grain.ReadOptions(num_threads=0)
        rows = FirstFitPackIterDataset(
            samples.map(self.tokens).to_iter_dataset(read),
            length_struct={"tokens": self.case.limit},
            num_packing_bins=self.open,
            seed=number,
        )
        bins = []
        for row in rows:
            cuts = np.flatnonzero(np.diff(row["tokens_segment_ids"], append=0))
            tokens = row["tokens"][cuts]
            bins.append(tokens[row["tokens_segment_ids"][cuts] > 0])
        return joined(bins)
