"""Lightning Fabric's loop: it sets up model, optimizer and loader, and saves and loads them."""

from __future__ import annotations

import logging
import os
from itertools import islice
from typing import Any

import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

from indexplan_torch import PlanLoader
from tests.runs.frameworks.loops import line, plan_of, train
from tests.runs.row import Leg, Steps

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader, whose state is in the checkpoint."""
    fabric, loader = _launched(), PlanLoader(torch.arange(leg.samples), plan_of(leg))
    saved = fabric.load(leg.checkpoint) if leg.checkpoint else {}
    if saved:
        loader.load_state_dict(saved["loader"])
    read, parts = _train(fabric, leg, saved, fabric.setup_dataloaders(loader))
    if leg.save:
        fabric.save(leg.save, {**parts, "loader": loader.state_dict()})
    return read


def theirs(leg: Leg) -> Steps:
    """Read by the DistributedSampler that Fabric puts in; the steps that were done are skipped."""
    fabric, size = _launched(), leg.global_batch // leg.world_size
    loader = fabric.setup_dataloaders(DataLoader(torch.arange(leg.samples), size, shuffle=True))
    saved = fabric.load(leg.checkpoint) if leg.checkpoint else {"done": 0}
    done = saved["done"]
    read, parts = _train(fabric, leg, saved, islice(loader, done, None))
    if leg.save:
        fabric.save(leg.save, {**parts, "done": done + len(read)})
    return read


def _launched() -> Fabric:
    """Return a Fabric of the processes that are there, as torchrun starts them."""
    logging.getLogger("lightning.fabric").setLevel(logging.ERROR)
    os.environ["TORCHELASTIC_RUN_ID"] = "none"
    devices = int(os.environ["WORLD_SIZE"])
    fabric = Fabric(accelerator="cpu", devices=devices, strategy="ddp")
    fabric.launch()
    return fabric


def _train(fabric: Fabric, leg: Leg, saved: Any, batches: Any) -> tuple[Steps, dict[str, Any]]:
    model, optimizer = fabric.setup(*line())
    parts = {"model": model, "optimizer": optimizer}
    for name in parts if leg.checkpoint else ():
        parts[name].load_state_dict(saved[name])
    return train(batches, model, optimizer, leg.steps, fabric.backward), parts
