"""Grain's ElasticIterator, whose state is a global position.

https://google-grain.readthedocs.io/en/latest/grain.experimental.html and its own docstring: it
takes a dataset that is neither batched nor sharded, and the state of any shard restores all of
them after changes of the shards and of the global batch size, which the shards have to divide.
"""

from typing import Any

from grain.experimental import ElasticIterator
from grain.multiprocessing import MultiprocessingOptions
from grain.python import MapDataset
from grain.sharding import ShardOptions

from tests.runs.loaders import grain_loader


class Loader(grain_loader.Loader):
    """One rank's: an iterator for each epoch, which takes rank 0's state."""

    own_state = False

    def fresh(self, epoch: int) -> Any:
        """Return an iterator of an epoch's start."""
        place = self.place
        workers = MultiprocessingOptions(num_workers=place.workers) if place.workers else None
        return ElasticIterator(
            MapDataset.range(place.n).shuffle(seed=place.seed + epoch),
            place.world * place.batch,
            ShardOptions(place.rank, place.world),
            read_options=grain_loader.NO_THREADS,
            multiprocessing_options=workers,
        )
