"""Our balance of a plan's steps."""

from __future__ import annotations

import indexplan as ip
from benchmarks.contenders.binners import FLAT, Case, Int64


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        self.plan = ip.Plan(
            ip.Sequential(len(lengths)),
            world_size=case.ranks,
            batch_size=case.per_rank,
            balance=ip.Balance(lengths, linear=FLAT, quadratic=1),
        )

    def share(self, step: int, rank: int) -> Int64:
        return self.plan.batch(0, step=step, rank=rank)
