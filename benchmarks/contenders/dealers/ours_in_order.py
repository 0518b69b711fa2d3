"""Our mixture of sources that are read in their own order."""

from typing import Any

import indexplan as ip
from benchmarks.contenders.dealers import Case, ours


class Dealer(ours.Dealer):
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        sources = {f"{i}": ip.Sequential(n) for i, n in enumerate(given["sizes"].tolist())}
        weights = dict(zip(sources, given["shares"].tolist(), strict=True))
        order = ip.Mixture(sources, weights, epoch_size=case.size, seed=case.seed)
        self.plan = ip.Plan(order, world_size=1, batch_size=case.batch)
