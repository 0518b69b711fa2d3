"""Our orders of bins."""

from __future__ import annotations

import indexplan as ip
from benchmarks.contenders.binners import BATCH, MULTIPLE, Case, Int64


def order_of(case: Case, lengths: Int64, num_buckets: int = 64) -> ip.Order:
    if case.need == "packing":
        return ip.Packed(lengths, case.limit)
    if case.need == "batches":
        return ip.LengthGrouped(lengths, BATCH, num_buckets=num_buckets)
    return ip.TokenBudget(lengths, case.limit, multiple_of=MULTIPLE, num_buckets=num_buckets)


class Binner:
    def __init__(self, case: Case, lengths: Int64, **options: int) -> None:
        self.order = order_of(case, lengths, **options)
        self.num = self.order.num_units(0)

    def epoch(self, number: int) -> tuple[Int64, Int64]:
        samples = self.order.take(number, 0, self.num)
        return samples, self.order.offsets(number, 0, self.num)
