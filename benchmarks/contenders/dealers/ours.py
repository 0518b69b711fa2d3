"""Our orders, each in a plan."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import indexplan as ip
from benchmarks.contenders.dealers import CLASSES, COPIES, PER_CLASS, THRESHOLD, Case


def order_of(case: Case, given: dict[str, Any]) -> ip.Order:
    if case.need == "weights":
        return ip.Weighted(given["weights"], seed=case.seed)
    if case.need == "repeat factors":
        pairs = np.unique(np.stack([given["images"], given["categories"]]), axis=1)
        _, category, shown_in = np.unique(pairs[1], return_inverse=True, return_counts=True)
        factors = np.ones(case.n)  # as docs/classes.md makes them
        np.maximum.at(factors, pairs[0], np.sqrt(THRESHOLD / (shown_in / case.n))[category])
        return ip.Weighted(factors, epoch_size=round(factors.sum()), seed=case.seed)
    if case.need == "equal classes":
        return ip.ClassBalanced(given["labels"], seed=case.seed)
    if case.need == "class batches":
        return ip.ClassBatches(given["labels"], CLASSES, PER_CLASS, seed=case.seed)
    if case.need == "repeats":
        epochs = ip.Epochs(ip.Shuffle(case.n, seed=case.seed), case.n // COPIES)
        return ip.Repeat(epochs, COPIES, span=case.world * case.batch)
    sources = {f"{i}": ip.Shuffle(n, seed=i) for i, n in enumerate(given["sizes"].tolist())}
    weights = dict(zip(sources, given["shares"].tolist(), strict=True))
    size = case.size or case.need.replace(" ", "_")
    return ip.Mixture(sources, weights, epoch_size=size, seed=case.seed)


class Dealer:
    def __init__(self, case: Case, given: dict[str, Any]) -> None:
        order = order_of(case, given)
        batch = 1 if order.traits.deals_bins else case.batch
        self.plan = ip.Plan(order, world_size=case.world, batch_size=batch)

    def batches(self, step: int) -> Iterator[Any]:
        return (self.plan.batch(0, step=i, rank=0) for i in range(step, self.plan.steps(0).stop))

    def epoch(self, limit: int) -> Any:
        return self.plan.indices(0, rank=0)[:limit]

    def sources(self, dealt: Any) -> Any:
        return self.plan.order.split(dealt)[0]
