"""torch's DistributedSampler: the order is made again, and what was read is skipped.

https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler says
to call `set_epoch`, and that samples are added until the ranks divide them; of resuming it says
nothing. A batch of all ranks is a stretch of one order, so what was read is a prefix of it.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from torch.utils.data import BatchSampler, DataLoader
from torch.utils.data.distributed import DistributedSampler

from benchmarks.contenders.planners import Sized
from tests.runs.running import Place, Saved


class Loader:
    """One rank's."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        self.place = place
        here: dict[str, Any] = {"num_replicas": place.world, "rank": place.rank, "seed": place.seed}
        sized: Any = Sized(place.n)
        self.sampler: Any = DistributedSampler(sized, **here)
        self.read = 0  # samples of the pass, on all ranks
        self.resumed, self.skip = -1, 0
        if saved and not saved.after_pass:
            self.resumed = saved.epoch
            self.skip = saved.state(0) // (place.world * place.batch)

    def batches(self, epoch: int) -> Iterator[Any]:
        """Skip in the sampler, so that nothing is loaded to be thrown away."""
        self.sampler.set_epoch(epoch)
        batches: Any = BatchSampler(self.sampler, self.place.batch, drop_last=False)
        skip = self.skip if epoch == self.resumed else 0
        step = self.place.world * self.place.batch
        self.read = skip * step
        dataset: Any = range(self.place.n)
        rest: Any = list(islice(batches, skip, None))
        for batch in DataLoader(dataset, batch_sampler=rest, num_workers=self.place.workers):
            self.read += step
            yield batch

    def state(self) -> int:
        """Return how many samples the pass has read."""
        return self.read
