"""torchdata's StatefulDataLoader over its StatefulDistributedSampler.

https://github.com/meta-pytorch/data/blob/v0.11.0/torchdata/stateful_dataloader/README.md: the state
is handled across workers, but not across ranks; so each rank saves and loads its own.
"""

from collections.abc import Iterator
from typing import Any

from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from benchmarks.contenders.planners import Sized
from tests.runs.running import Place, Saved, Stateful


class Loader(Stateful):
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        here: dict[str, Any] = {"num_replicas": place.world, "rank": place.rank, "seed": place.seed}
        sized: Any = Sized(place.n)
        self.sampler = StatefulDistributedSampler(sized, **here)
        rest: dict[str, Any] = {"batch_size": place.batch, "num_workers": place.workers}
        dataset: Any = range(place.n)
        loader = StatefulDataLoader(dataset, sampler=self.sampler, **rest)
        super().__init__(loader, saved, place.rank)

    def batches(self, epoch: int) -> Iterator[Any]:
        """Set the epoch and iterate."""
        self.sampler.set_epoch(epoch)
        yield from super().batches(epoch)
