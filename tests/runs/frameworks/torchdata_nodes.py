"""torchdata.nodes: a graph whose Loader has a state, in the same loop as StatefulDataLoader's."""

from __future__ import annotations

from typing import Any

import torch
from torchdata.nodes import Batcher, IterableWrapper, Loader, Mapper, SamplerWrapper
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from indexplan_torch import PlanLoader
from tests.runs.frameworks.loops import plan_of
from tests.runs.frameworks.torchdata_loader import trained
from tests.runs.row import Leg, Steps

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a graph over a PlanLoader."""
    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    return trained(leg, Loader(IterableWrapper(loader)))


def theirs(leg: Leg) -> Steps:
    """Read a graph over a StatefulDistributedSampler."""
    dataset = torch.arange(leg.samples)
    sampler: Any = StatefulDistributedSampler(dataset, seed=1)
    size = leg.global_batch // leg.world_size
    batches = Batcher(SamplerWrapper(sampler), size, drop_last=False)
    return trained(leg, Loader(Mapper(batches, torch.tensor)))
