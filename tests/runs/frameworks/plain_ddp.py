"""A loop of the user's own under DistributedDataParallel; the first rank writes its checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from indexplan_torch import PlanLoader
from tests.runs.frameworks.loops import line, load, plan_of, save, train
from tests.runs.row import Leg, Steps

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader, whose state is in the checkpoint."""
    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    saved = load(leg)
    if saved:
        loader.load_state_dict(saved["loader"])
    return _train(leg, saved, loader, lambda _: {"loader": loader.state_dict()})


def theirs(leg: Leg) -> Steps:
    """Read by DistributedSampler; the checkpoint has the number of steps, which are skipped."""
    dataset = torch.arange(leg.samples)
    sampler: Any = DistributedSampler(dataset, seed=1)
    loader = DataLoader(dataset, leg.global_batch // leg.world_size, sampler=sampler)
    sampler.set_epoch(0)
    saved = load(leg)
    done = saved.get("done", 0)
    rest = islice(loader, done, None)
    return _train(leg, saved, rest, lambda read: {"done": done + len(read)})


def _train(leg: Leg, saved: Any, batches: Any, state: Callable[[Steps], dict[str, Any]]) -> Steps:
    model, optimizer = line()
    parallel = DistributedDataParallel(model)
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    read = train(batches, parallel, optimizer, leg.steps)
    save(leg, model=model.state_dict(), optimizer=optimizer.state_dict(), **state(read))
    return read
