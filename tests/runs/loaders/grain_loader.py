"""Grain's DataLoader over an IndexSampler, with checkpoints of its iterator.

https://google-grain.readthedocs.io/en/latest/tutorials/data_loader_tutorial.html: the iterator of
each process has `get_state` and `set_state`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from grain.python import DataLoader, RangeDataSource, ReadOptions
from grain.samplers import IndexSampler
from grain.sharding import ShardOptions
from grain.transforms import Batch

from tests.runs.running import Place, Saved

NO_THREADS = ReadOptions(num_threads=0, prefetch_buffer_size=0)
"""Nothing is read from anywhere, so nothing needs to be read ahead."""


class Loader:
    """One rank's: an iterator for each epoch."""

    own_state = True
    """Whether each rank takes the state that it saved itself."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        self.place, self.saved = place, saved
        self.iterator: Any = None
        if saved and not saved.after_pass:
            self.iterator = self.fresh(saved.epoch)
            self.iterator.set_state(saved.state(place.rank if self.own_state else 0))

    def fresh(self, epoch: int) -> Any:
        """Return an iterator of an epoch's start."""
        place = self.place
        shard = ShardOptions(place.rank, place.world, drop_remainder=False)
        seed = place.seed + epoch
        sampler = IndexSampler(place.n, shard, shuffle=True, num_epochs=1, seed=seed)
        return iter(
            DataLoader(
                data_source=RangeDataSource(0, place.n, 1),
                sampler=sampler,
                shard_options=shard,
                operations=[Batch(place.batch, drop_remainder=False)],
                worker_count=place.workers,
                read_options=NO_THREADS,
            )
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Go on with the iterator that was restored, or begin one."""
        if not (self.saved and epoch == self.saved.epoch and not self.saved.after_pass):
            self.iterator = self.fresh(epoch)
        yield from (np.asarray(batch) for batch in self.iterator)

    def state(self) -> Any:
        """Return the iterator's own."""
        return self.iterator.get_state()
