"""Grain's iterators over a plan and over a sliced dataset; its CheckpointHandler saves both.

Each process has a folder of its own, as Grain tells processes apart by JAX, which is not here.

Beside row.py it needs `pip install torch grain==0.2.18`.
"""

from __future__ import annotations

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
    read: Steps = []
    while leg.steps is None or len(read) < leg.before + leg.steps:
        batch = next(iterator, None)
        if batch is None:
            break
        read.append(batch.tolist())
    if leg.save:
        folder = leg.save / str(leg.rank)
        folder.mkdir(parents=True)
        handler.save(folder, iterator)
    return read[leg.before :]
