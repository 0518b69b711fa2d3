"""torchdata's StatefulDataLoader in a loop under DistributedDataParallel.

Each rank saves the state of its own loader, and loads the one of its number.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from indexplan_torch import PlanBatchSampler
from tests.runs.frameworks.loops import line, plan_of, train
from tests.runs.row import Leg, Steps

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read by a PlanBatchSampler."""
    sampler: Any = PlanBatchSampler(plan_of(leg))
    return trained(leg, StatefulDataLoader(torch.arange(leg.samples), batch_sampler=sampler))


def theirs(leg: Leg) -> Steps:
    """Read by its StatefulDistributedSampler."""
    dataset = torch.arange(leg.samples)
    sampler: Any = StatefulDistributedSampler(dataset, seed=1)
    size = leg.global_batch // leg.world_size
    return trained(leg, StatefulDataLoader(dataset, size, sampler=sampler))


def trained(leg: Leg, loader: Any) -> Steps:
    """Load the loader's state, train, and save it."""
    model, optimizer = line()
    if leg.checkpoint:
        saved = torch.load(leg.checkpoint / f"{leg.rank}.pt")
        model.load_state_dict(saved["model"])
        loader.load_state_dict(saved["loader"])
    read = train(loader, DistributedDataParallel(model), optimizer, leg.steps)
    if leg.save:
        leg.save.mkdir(exist_ok=True)
        parts = {"model": model.state_dict(), "loader": loader.state_dict()}
        torch.save(parts, leg.save / f"{leg.rank}.pt")
    return read
