"""PlanBatchSampler in torchdata's StatefulDataLoader, as docs/trainers.md says."""

from collections.abc import Iterator
from typing import Any

from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from benchmarks.torture.running import Place, Saved, Stateful
from indexplan_torch import PlanBatchSampler


class Loader(Stateful):
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
        sampler = PlanBatchSampler(plan, rank=place.rank, world_size=place.world)
        dataset: Any = range(place.n)
        super().__init__(
            StatefulDataLoader(dataset, batch_sampler=sampler, num_workers=place.workers), saved
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Set the epoch, as loops do that count themselves, and iterate."""
        self.loader.batch_sampler.set_epoch(epoch)
        yield from super().batches(epoch)
