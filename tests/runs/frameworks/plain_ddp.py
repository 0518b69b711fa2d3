"""A loop of the user's own under DistributedDataParallel; the first rank writes its checkpoints.

Beside row.py it needs `pip install torch`.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from tests.runs.row import Leg, Steps, line, load, plan_of, save, train

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader, whose state is in the checkpoint."""
    from indexplan_torch import PlanLoader

    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    parallel, optimizer, saved = _loaded(leg)
    if saved:
        loader.load_state_dict(saved["loader"])
    for epoch in leg.epochs:
        read = train(loader, parallel, optimizer, leg.limit(epoch))
    _save(leg, parallel, optimizer, loader=loader.state_dict())
    return read


def theirs(leg: Leg) -> Steps:
    """Read by DistributedSampler; the checkpoint has the number of steps, which are skipped."""
    dataset = torch.arange(leg.samples)
    sampler: Any = DistributedSampler(dataset, seed=1)
    loader = DataLoader(dataset, leg.global_batch // leg.world_size, sampler=sampler)
    parallel, optimizer, saved = _loaded(leg)
    done = saved.get("done", 0)
    for epoch in leg.epochs:
        sampler.set_epoch(epoch)
        read = train(islice(loader, done, None), parallel, optimizer, leg.limit(epoch))
    _save(leg, parallel, optimizer, done=done + len(read))
    return read


def _loaded(leg: Leg) -> tuple[Any, Any, dict[str, Any]]:
    """Return the model, its optimizer, and what was saved."""
    (model, optimizer), saved = line(), load(leg)
    if saved:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    return DistributedDataParallel(model), optimizer, saved


def _save(leg: Leg, parallel: Any, optimizer: Any, **more: Any) -> None:
    parts = {"model": parallel.module.state_dict(), "optimizer": optimizer.state_dict()}
    save(leg, **parts, **more)
