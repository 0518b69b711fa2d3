"""fairseq's batch_by_size, by its own Cython."""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import name_packages
from benchmarks.contenders.binners import MULTIPLE, Case, Int64, joined

name_packages("fairseq", "fairseq.data")
from fairseq.data.data_utils_fast import batch_by_size_vec  # noqa: E402 (needs the names above)


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        rows = np.random.default_rng(0).permutation(len(lengths))
        rows = rows[np.argsort(lengths[rows], kind="stable")]  # as its datasets of pairs do
        self.bins = batch_by_size_vec(rows, lengths[rows], case.limit, -1, MULTIPLE)

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        return joined(self.bins, number)
