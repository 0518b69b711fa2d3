"""Accelerate's loop: `prepare`, `save_state` and `load_state`, and its skipping of batches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ["ACCELERATE_USE_CPU"] = "true"

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, is_datasets_available, set_seed
from torch.utils.data import DataLoader

from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare
from tests.runs.frameworks.loops import line, plan_of, train
from tests.runs.row import Leg, Steps

if is_datasets_available():
    import datasets  # noqa: F401 (as the first `prepare` of a loader would in each rank)

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader in our `prepare`."""
    accelerator = Accelerator()
    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    model, optimizer, prepared = prepare(accelerator, *line(), loader)
    if leg.checkpoint:
        accelerator.load_state(str(leg.checkpoint))
    read = train(prepared, model, optimizer, leg.steps, accelerator.backward)
    if leg.save:
        accelerator.save_state(str(leg.save))
    return read


def theirs(leg: Leg) -> Steps:
    """Read what `prepare` deals out; `skip_first_batches`, with the folder's number of steps."""
    return _train(leg, DataLoaderConfiguration())


def recommended(leg: Leg) -> Steps:
    """Read what a stateful loader deals out, by a sampler that is seeded with the epoch."""
    return _train(
        leg, DataLoaderConfiguration(use_stateful_dataloader=True, use_seedable_sampler=True)
    )


def _train(leg: Leg, configuration: DataLoaderConfiguration) -> Steps:
    accelerator = Accelerator(dataloader_config=configuration)
    set_seed(1)
    size = leg.global_batch // leg.world_size
    loader: Any = DataLoader(torch.arange(leg.samples), size, shuffle=True)
    model, optimizer, rest = accelerator.prepare(*line(), loader)
    done = 0
    if leg.checkpoint:
        folder = next(leg.checkpoint.glob("step_*"))
        done = int(folder.name.partition("_")[2])
        accelerator.load_state(str(folder))
    if not configuration.use_stateful_dataloader:
        rest.set_epoch(0)
        rest = accelerator.skip_first_batches(rest, done)
    read = train(rest, model, optimizer, leg.steps, accelerator.backward)
    if leg.save:
        accelerator.save_state(str(Path(leg.save, f"step_{done + len(read)}")))
    return read
