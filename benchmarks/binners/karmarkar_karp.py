"""VERL's balance of a step.

Of what its module imports, its protocol needs tensordict: left out here.
"""

from __future__ import annotations

import numpy as np

from benchmarks.binners import Case, Int64
from benchmarks.rivals import leave_out, name_packages

name_packages("verl", "verl.utils")
leave_out("verl.protocol", "verl.utils.tensordict_utils", "verl.utils.device")
from verl.utils.seqlen_balancing import (  # noqa: E402 (needs the names above)
    get_seqlen_balanced_partitions,
)


class Binner:
    def __init__(self, case: Case, lengths: Int64) -> None:  # noqa: ARG002 (as the others)
        self.case = case

    def parts(self, costs: Int64) -> Int64:
        ranks = np.empty(len(costs), np.int64)
        found = get_seqlen_balanced_partitions(costs.tolist(), self.case.ranks, equal_size=True)
        for rank, units in enumerate(found):
            ranks[units] = rank
        return ranks
