"""Our windows of documents."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from benchmarks.contenders.binners import Case, Int64


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        self.order = ip.DocumentWindows(lengths, case.limit)

    def window(self, number: int, place: int) -> Int64:
        documents = self.order.take(number, place)
        return np.column_stack([documents, self.order.spans(number, place)])

    def num_windows(self) -> int:
        return self.order.num_units(0)
