"""Errors of the adapters where a trainer's own loaders and loops meet them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from torch.utils.data import DataLoader

from indexplan_torch import GlobalPlanBatchSampler, PlanBatchSampler
from tests.errors.catalogue.made import OPEN, Case
from tests.errors.catalogue.torches import loader


def other_workers() -> None:
    """Load a state of StatefulDataLoader with more workers than it has."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*set_vital.*")  # of torch, about torchdata
        kept = StatefulDataLoader(range(10), batch_sampler=PlanBatchSampler(OPEN))
        state = kept.state_dict()
        kept = StatefulDataLoader(range(10), batch_sampler=PlanBatchSampler(OPEN), num_workers=1)
    kept.load_state_dict(state)
    iter(kept)


def split_once_more() -> None:
    """Prepare all ranks' batches with an option that cuts them."""
    from accelerate.data_loader import prepare_data_loader

    sampler = GlobalPlanBatchSampler(OPEN, world_size=1)
    prepare_data_loader(DataLoader(range(10), batch_sampler=sampler), split_batches=True)


def skipped_once_more() -> None:
    """Skip batches of a loader that Accelerate has prepared."""
    from accelerate import Accelerator

    import indexplan_torch.accelerate

    accelerator = Accelerator(cpu=True)
    prepared = indexplan_torch.accelerate.prepare(accelerator, loader())
    accelerator.skip_first_batches(prepared, 1)


def counted_by_nobody() -> None:
    """Ask a loader for its cursor, while another one draws its batches."""
    asked = loader()
    other = DataLoader(range(10), batch_sampler=Halved(asked.batch_sampler), num_workers=1)  # type: ignore[arg-type]
    batches = iter(other)
    next(batches)
    _ = asked.cursor


class Halved:
    """A wrapper that hands on half of each batch."""

    def __init__(self, batch_sampler: Any) -> None:
        self.batch_sampler = batch_sampler

    def __iter__(self) -> Iterator[Any]:
        return (batch[::2] for batch in self.batch_sampler)


def resumed_by_nobody() -> None:
    """Count a resume as a version would that names its checkpoint in no caller."""
    import indexplan_torch.transformers

    def set_initial_training_values(self: Any) -> None:
        indexplan_torch.transformers.refuse_counting(self.feed, sys._getframe())

    set_initial_training_values(loader())


def on_ray() -> None:
    """Prepare a loader of another kind."""
    import indexplan_torch.ray

    indexplan_torch.ray.prepare(DataLoader(range(10)))  # type: ignore[arg-type]


CASES: list[Case] = [
    (
        "a state of another number of workers",
        other_workers,
        "num_workers must be 0, that of the state that StatefulDataLoader is to load; got 1; keep "
        "the number, or use PlanLoader, whose state goes on under any",
    ),
    (
        "batches that are skipped once more",
        skipped_once_more,
        "a prepared PlanLoader must skip batches by its state, which accelerator.load_state loads; "
        "got skip_first_batches, whose loader counts none and would skip once more; use "
        "load_state_dict(state), or make the loader of plan.resume(cursor)",
    ),
    (
        "batches that nobody counts",
        counted_by_nobody,
        "a loader must hand its batches to the loop itself, to tell its state, cursor and "
        "step_size; got workers that draw ahead for another loader, such as that of "
        "skip_first_batches; use load_state_dict(state) instead, or a loader of "
        "plan.resume(cursor)",
    ),
    (
        "a resume of a Trainer that does not tell of what",
        resumed_by_nobody,
        "transformers must have a caller of Trainer.set_initial_training_values with "
        "resume_from_checkpoint, which indexplan_torch leans on; got transformers "
        f"{version('transformers')}, which has not; pip install 'transformers>=4.45,<=5.23.0', the "
        "versions that have",
    ),
    (
        "batches that are cut once more",
        split_once_more,
        "split_batches must be left out with GlobalPlanBatchSampler, as each batch is a rank's "
        "already, and would be cut once more; got True; use indexplan_torch.accelerate.prepare("
        "accelerator, PlanLoader(dataset, plan))",
    ),
    (
        "another loader for Ray",
        on_ray,
        "loader must be a PlanLoader; got DataLoader, which Ray would build anew without its "
        "batch sampler; use PlanLoader(dataset, plan)",
    ),
]
