"""PlanBatchSampler in torchdata's StatefulDataLoader, as docs/trainers.md says."""

from collections.abc import Iterator
from typing import Any

from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler
from tests.runs.running import Place, Saved, Stateful


class Loader(Stateful):
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
        sampler = PlanBatchSampler(plan, rank=place.rank, world_size=place.world)
        dataset: Any = range(place.n)
        self.left = saved is not None  # a state, whose pass comes first
        super().__init__(
            StatefulDataLoader(dataset, batch_sampler=sampler, num_workers=place.workers), saved
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Read what is left of the state's pass, and then epochs that are set."""
        left, self.left = self.left, False
        if left:
            rest = super().batches(epoch)
            first = next(rest, None)
            if first is not None:
                yield first
                yield from rest
                return
        self.loader.batch_sampler.set_epoch(epoch)
        yield from super().batches(epoch)
