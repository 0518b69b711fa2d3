"""Accelerate's loop: `prepare`, `save_state` and `load_state`, and its skipping of batches.

Beside row.py it needs `pip install torch accelerate==1.15.0 torchdata`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["ACCELERATE_USE_CPU"] = "true"

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, is_datasets_available, set_seed
from torch.utils.data import DataLoader

from tests.runs.row import Leg, Steps, line, plan_of, train

if is_datasets_available():
    import datasets  # noqa: F401 (as the first `prepare` of a loader would in each rank)

ENDLESS = False


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader in our `prepare`."""
    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator()
    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    model, optimizer, prepared = prepare(accelerator, *line(), loader)
    if leg.checkpoint:
        accelerator.load_state(str(leg.checkpoint))
    for epoch in leg.epochs:
        read = train(prepared, model, optimizer, leg.limit(epoch), accelerator.backward)
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
    model, optimizer, loader = accelerator.prepare(*line(), loader)
    done = 0
    if leg.checkpoint:
        folder = next(leg.checkpoint.glob("step_*"))
        done = int(folder.name.partition("_")[2])
        accelerator.load_state(str(folder))
    for epoch in leg.epochs:
        loader.set_epoch(epoch)
        skips = done and not configuration.use_stateful_dataloader
        rest = accelerator.skip_first_batches(loader, done) if skips else loader
        read = train(rest, model, optimizer, leg.limit(epoch), accelerator.backward)
    if leg.save:
        accelerator.save_state(str(Path(leg.save, f"step_{done + len(read)}")))
    return read


def drawn() -> Any:
    """Accelerate: a prepared loader, and `skip_first_batches` after a resume.

    As its page says: skip the batches of the pass that were done, and go back to the prepared
    loader for the next one. `save_state` keeps the sampler's epoch and seed, which are given here.
    """
    from accelerate import PartialState
    from accelerate.data_loader import prepare_data_loader, skip_first_batches

    from tests.runs.running import Place, Saved

    PartialState(cpu=True)

    class Skipping:
        def __init__(self, place: Place, saved: Saved | None) -> None:
            self.saved = saved
            dataset: Any = range(place.n)
            self.loader: Any = prepare_data_loader(
                DataLoader(dataset, place.batch, shuffle=True, num_workers=place.workers),
                num_processes=place.world,
                process_index=place.rank,
                put_on_device=False,
                use_seedable_sampler=True,
                data_seed=place.seed,
            )

        def batches(self, epoch: int) -> Iterator[Any]:
            """Set the epoch, skip what is done of it, and iterate."""
            self.loader.set_epoch(epoch)
            if self.saved and epoch == self.saved.epoch and self.saved.batches:
                yield from skip_first_batches(self.loader, self.saved.batches)
            else:
                yield from self.loader

        def state(self) -> None:
            """Need nothing but what the loop counts."""

    return Skipping
