"""VERL's balance of a step.

Of what its module imports, its protocol needs tensordict: left out here.
"""

from __future__ import annotations

import numpy as np

from benchmarks.contenders import leave_out, name_packages
from benchmarks.contenders.binners import FLAT, Case, Int64

name_packages("verl", "verl.utils")
leave_out("verl.protocol", "verl.utils.tensordict_utils", "verl.utils.device")
from verl.utils.seqlen_balancing import (  # noqa: E402 (needs the names above)
    get_seqlen_balanced_partitions,
)


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:
        self.case, self.costs = case, FLAT * lengths + lengths**2

    def share(self, step: int, rank: int) -> Int64:
        units = self.case.ranks * self.case.per_rank
        costs = self.costs[step * units : (step + 1) * units].tolist()
        found = get_seqlen_balanced_partitions(costs, self.case.ranks, equal_size=True)
        return step * units + np.array(found[rank])
