"""A shuffle of ours that does not look at lengths, cut into batches."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from benchmarks.contenders.binners import BATCH, Case, Int64


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:  # noqa: ARG002 (as the others)
        self.order = ip.Shuffle(len(lengths))

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        n = self.order.num_units(number)
        return self.order.take(number, 0, n), np.append(np.arange(0, n, BATCH), n)
