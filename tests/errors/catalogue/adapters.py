"""What errors of the adapters are provoked with: loaders, samplers, iterators and trainers."""

from __future__ import annotations

import contextlib
import io
import logging
import pickle
import sys
import warnings
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import grain
import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, SequentialSampler

import indexplan as ip
from indexplan_jax import steady
from indexplan_jax.grain import PlanIterDataset
from indexplan_jax.steps import Steps
from indexplan_torch import Bins, Piece, PlanBatchSampler, PlanLoader, PlanSampler, join
from indexplan_torch.causal import join_causal
from indexplan_torch.live import LiveLoader
from indexplan_torch.megatron import PlanIterator
from indexplan_torch.meshes import _dimensions
from indexplan_torch.ranks import discover
from indexplan_torch.seeding import SeedWorker
from indexplan_torch.versions import private
from tests.errors.catalogue.made import OPEN
from tests.histories.quorums import Rank, Told
from tests.support import bins
from tests.support.bins import Shrinking

OF_TWO = OPEN.replace(world_size=2)


def loader(size: int = 10, plan: ip.Plan = OPEN, **options: Any) -> PlanLoader:
    """Make a loader."""
    return PlanLoader(range(size), plan, **options)


def first(batches: Any) -> Any:
    """Return the first of some batches."""
    return next(iter(batches))


def in_a_turn(again: int = 4, size: int = 4, dealt: Any = None) -> None:
    """Load a state of a step that was dealt 3 of 4 times, with something else."""
    plan = ip.Plan(ip.Sequential(10), global_batch_size=4)
    saved = loader(plan=plan, again=4)
    for _ in zip(range(3), saved):  # noqa: B905 (the first ends it)
        pass
    state = saved.state_dict()
    if dealt is not None:
        state["dealt"] = dealt
    loader(plan=plan.replace(global_batch_size=size), again=again).load_state_dict(state)


def without_names(count: int) -> Any:
    """Ask for the dimensions of the meshes that run where groups have no names, as in torch 2.2."""
    groups = {object(): None for _ in range(count)}
    with patch.dict(torch.distributed.distributed_c10d._world.pg_map, groups, clear=True):
        return _dimensions()


def other_length(num: int) -> None:
    """Read a dataset a second time, with another number of samples."""
    data = list(range(10))
    made = PlanLoader(data, OPEN)
    list(made)
    data[:] = range(num)
    list(made)


OF_BINS = ip.Plan(bins.Bins(10), batch_size=2)
NO_FUNCTION: Any = "tuple"
PIECES = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], length=10), world_size=1, batch_size=1)


def kept(**options: Any) -> Any:
    """Make a loader that keeps a ledger."""
    return loader(ledger="run.ledger", **options)


def continued() -> Any:
    """Have another loader continue the run of one that is in a pass; return them, and the pass."""
    made, resumed = kept(), kept()
    batches = iter(made)
    next(batches)
    resumed.load_state_dict(made.state_dict())
    first(resumed)
    return made, resumed, batches


LIVE = ip.Plan(ip.Sequential(10), global_batch_size=4)


def live(plan: Any, **options: Any) -> LiveLoader:
    """Make a loader that is refused before it asks its manager."""
    return LiveLoader(range(10), plan, None, **options)


def stepped(rank: Rank, ranks: int = 1, steps: int = 1) -> Rank:
    """Read some steps as the first of so many ranks."""
    for _ in range(steps):
        rank.read(Told(ranks, 0, sync=True), again=False)
        rank.decide(counts=True)
    return rank


TEN = ip.Shuffle(10)


def iterator(micro_batch_size: int = 2, **options: Any) -> PlanIterator:
    """Return the only rank's iterator."""
    given: dict[str, Any] = {"micro_batch_size": micro_batch_size, "consumed_samples": 0}
    return PlanIterator(range(10), TEN, rank=0, world_size=1, **given, **options)


def trainer(**options: Any) -> Any:
    """Make a Hugging Face Trainer."""
    import transformers

    arguments = transformers.TrainingArguments(output_dir=".", use_cpu=True, **options)
    return transformers.Trainer(model=torch.nn.Linear(1, 1), args=arguments)


PROMPTS: dict[str, Any] = {
    "num_generations": 2,
    "num_iterations": 1,
    "args": SimpleNamespace(generation_batch_size=8),
    "_step": 0,
    "_buffered_inputs": None,
}


def use_plan_of(order: Any, **trainer: Any) -> None:
    """Use a plan in a trainer that can't train by it."""
    from indexplan_torch.transformers import use_plan

    use_plan(SimpleNamespace(train_dataset=range(9), **trainer), ip.Plan(order, batch_size=1))


CARRIED = ip.Plan(ip.Sequential(12), batch_size=2, remainder="carry")


def of_grain(plan: Any = CARRIED, samples: Any = range(12), rank: int = 0) -> Any:
    """Return the iterator of a process's dataset."""
    world_size = plan.world_size or 2
    return iter(PlanIterDataset(samples, plan, grain.sharding.ShardOptions(rank, world_size)))


FULL = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=3, remainder="drop")
FLOAT = np.dtype(np.float32)


def of_a_rank(plan: ip.Plan) -> None:
    """Ask for the indices of a rank."""
    steady.share_of(plan, steady.steady_of(plan))
