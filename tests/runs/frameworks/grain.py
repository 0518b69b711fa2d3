"""Grain's iterators over a plan and over a sliced dataset; its CheckpointHandler saves both.

Each process has a folder of its own, as Grain tells processes apart by JAX, which is not here.

Beside row.py it needs `pip install torch grain==0.2.18`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import grain

from tests.runs.row import Leg, Steps, plan_of

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanIterDataset."""
    from indexplan_jax.grain import PlanIterDataset

    shard = grain.sharding.ShardOptions(leg.rank, leg.world_size)
    samples = grain.MapDataset.range(leg.samples)
    return _train(leg, PlanIterDataset(samples, plan_of(leg), shard, num_epochs=leg.epoch + 1))


def theirs(leg: Leg) -> Steps:
    """Read a slice of a shuffled dataset, in batches; another order in each epoch."""
    shuffled = grain.MapDataset.range(leg.samples).shuffle(seed=1)
    mine = shuffled[leg.rank :: leg.world_size].batch(leg.global_batch // leg.world_size)
    return _train(leg, mine.repeat(leg.epoch + 1).to_iter_dataset())


def _train(leg: Leg, dataset: Any) -> Steps:
    """Take steps, and let Grain save where the iterator stands."""
    iterator, handler = iter(dataset), grain.checkpoint.CheckpointHandler()
    if leg.checkpoint:
        saved = leg.checkpoint / str(leg.rank)
        handler.restore(saved if saved.exists() else leg.checkpoint / "0", iterator)
    steps = leg.steps and leg.before + leg.steps
    read = [batch.tolist() for batch in islice(iterator, steps)]
    if leg.save:
        folder = leg.save / str(leg.rank)
        folder.mkdir(parents=True)
        handler.save(folder, iterator)
    return read[leg.before :]


def drawn(*, elastic: bool = False) -> Any:
    """Grain's DataLoader over an IndexSampler, with checkpoints of its iterator.

    Elastic is its ElasticIterator, whose state is a global position: it takes a dataset that is
    neither batched nor sharded, and the state of any shard restores all of them after changes of
    the shards and of the global batch size, which the shards have to divide.
    """
    from grain.experimental import ElasticIterator
    from grain.multiprocessing import MultiprocessingOptions
    from grain.python import DataLoader, MapDataset, RangeDataSource, ReadOptions
    from grain.samplers import IndexSampler
    from grain.sharding import ShardOptions
    from grain.transforms import Batch

    from tests.runs.running import Place, Saved

    # nothing is read from anywhere, so nothing needs to be read ahead
    ahead = ReadOptions(num_threads=0, prefetch_buffer_size=0)

    class OfIterators:
        def __init__(self, place: Place, saved: Saved | None) -> None:
            self.place, self.saved = place, saved
            self.iterator: Any = None
            if saved and not saved.after_pass:
                self.iterator = self.fresh(saved.epoch)
                self.iterator.set_state(saved.state(0 if elastic else place.rank))

        def fresh(self, epoch: int) -> Any:
            """Return an iterator of an epoch's start."""
            place = self.place
            seed = place.seed + epoch
            if elastic:
                workers = (
                    MultiprocessingOptions(num_workers=place.workers) if place.workers else None
                )
                return ElasticIterator(
                    MapDataset.range(place.n).shuffle(seed=seed),
                    place.world * place.batch,
                    ShardOptions(place.rank, place.world),
                    read_options=ahead,
                    multiprocessing_options=workers,
                )
            shard = ShardOptions(place.rank, place.world, drop_remainder=False)
            return iter(
                DataLoader(
                    data_source=RangeDataSource(0, place.n, 1),
                    sampler=IndexSampler(place.n, shard, shuffle=True, num_epochs=1, seed=seed),
                    shard_options=shard,
                    operations=[Batch(place.batch, drop_remainder=False)],
                    worker_count=place.workers,
                    read_options=ahead,
                )
            )

        def batches(self, epoch: int) -> Iterator[Any]:
            """Go on with the iterator that was restored, or begin one."""
            if not (self.saved and epoch == self.saved.epoch and not self.saved.after_pass):
                self.iterator = self.fresh(epoch)
            yield from self.iterator

        def state(self) -> Any:
            """Return the iterator's own."""
            return self.iterator.get_state()

    return OfIterators


def drawn_elastic() -> Any:
    """Grain's ElasticIterator."""
    return drawn(elastic=True)
