"""Lightning Fabric's loop: it sets up model, optimizer and loader, and saves and loads them.

Beside row.py it needs `pip install torch lightning==2.6.6`.
"""

from __future__ import annotations

import logging
import os
from itertools import islice
from typing import Any

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

from tests.runs.row import Leg, Steps, line, plan_of, train

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader, whose state is in the checkpoint."""
    from indexplan_torch import PlanLoader

    fabric, parts, saved = _set_up(leg)
    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    if saved:
        loader.load_state_dict(saved["loader"])
    batches = fabric.setup_dataloaders(loader)
    for epoch in leg.epochs:
        read = train(batches, *parts.values(), leg.limit(epoch), fabric.backward)
    if leg.save:
        fabric.save(leg.save, {**parts, "loader": loader.state_dict()})
    return read


def theirs(leg: Leg) -> Steps:
    """Read by the DistributedSampler that Fabric puts in; the steps that were done are skipped."""
    fabric, parts, saved = _set_up(leg)
    size = leg.global_batch // leg.world_size
    loader = fabric.setup_dataloaders(DataLoader(torch.arange(leg.samples), size, shuffle=True))
    done = saved.get("done", 0)
    for epoch in leg.epochs:
        rest = islice(loader, done, None)
        read = train(rest, *parts.values(), leg.limit(epoch), fabric.backward)
    if leg.save:
        fabric.save(leg.save, {**parts, "done": done + len(read)})
    return read


def _set_up(leg: Leg) -> tuple[Fabric, dict[str, Any], dict[str, Any]]:
    """Return a Fabric of the processes that are there, the model and optimizer, and the rest."""
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    os.environ["TORCHELASTIC_RUN_ID"] = "none"  # as torchrun starts them
    fabric = Fabric(accelerator="cpu", devices=leg.world_size, strategy="ddp")
    fabric.launch()
    model, optimizer = fabric.setup(*line())
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer}
    saved = fabric.load(leg.checkpoint) if leg.checkpoint else {}
    for name in parts if leg.checkpoint else ():
        parts[name].load_state_dict(saved[name])
    return fabric, parts, saved
