"""Grain's ElasticIterator, whose state is a global position.

https://google-grain.readthedocs.io/en/latest/grain.experimental.html and its own docstring: it
takes a dataset that is neither batched nor sharded, and the state of any shard restores all of
them after changes of the shards and of the global batch size, which the shards have to divide.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from grain.experimental import ElasticIterator
from grain.multiprocessing import MultiprocessingOptions
from grain.python import MapDataset, ReadOptions
from grain.sharding import ShardOptions

from benchmarks.torture.running import Place, Saved

NO_THREADS = ReadOptions(num_threads=0, prefetch_buffer_size=0)
"""Nothing is read from anywhere, so nothing needs to be read ahead."""


class Loader:
    """One rank's: an iterator for each epoch."""

    def __init__(self, place: Place, saved: Saved | None) -> None:
        self.place, self.saved = place, saved
        self.iterator: Any = None
        if saved and not saved.after_pass:
            self.iterator = self.fresh(saved.epoch)
            self.iterator.set_state(saved.state(0))

    def fresh(self, epoch: int) -> Any:
        """Return an iterator of an epoch's start."""
        place = self.place
        workers = MultiprocessingOptions(num_workers=place.workers) if place.workers else None
        return ElasticIterator(
            MapDataset.range(place.n).shuffle(seed=place.seed + epoch),
            place.world * place.batch,
            ShardOptions(place.rank, place.world),
            read_options=NO_THREADS,
            multiprocessing_options=workers,
        )

    def batches(self, epoch: int) -> Iterator[Any]:
        """Go on with the iterator that was restored, or begin one."""
        if not (self.saved and epoch == self.saved.epoch and not self.saved.after_pass):
            self.iterator = self.fresh(epoch)
        yield from (np.asarray(batch) for batch in self.iterator)

    def state(self) -> Any:
        """Return the iterator's own."""
        return self.iterator.get_state()
