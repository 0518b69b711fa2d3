"""What trainings under Lightning on ranks share: a model that records, and a quiet Trainer."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

import lightning.pytorch as pl
import torch

QUIET = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}


class Recording:
    """What a model has to record its batches, and when it was validated.

    One that makes its loader asks Lightning for the number of steps, as many schedules do: it
    counts them before it loads a state, which costs other loaders theirs.
    """

    def __init__(self, make: Any = None) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.story: list[Any] = []
        self.validated: list[Any] = []
        self.refused = ""
        if make is not None:
            self.train_dataloader = make

    def configure_optimizers(self) -> Any:
        if "train_dataloader" in vars(self):
            assert self.trainer.estimated_stepping_batches > 0
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        self.story.append(batch.tolist())
        return self.layer(batch[:, None].float()).mean()

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.validated.append(batch.tolist())

    def on_validation_epoch_end(self) -> None:
        if not self.trainer.sanity_checking:
            self.story.append("validated")

    def predict_step(self, batch: Any, batch_idx: int) -> Any:
        return batch


class Recorder(Recording, pl.LightningModule):
    """A model that records."""


def trainer(package: Any = pl, **options: Any) -> Any:
    """A Trainer with the default settings, on all ranks."""
    ranks = {"accelerator": "cpu", "devices": int(os.environ["RANKS"]), "strategy": "ddp"}
    return package.Trainer(**{**QUIET, **ranks, **options})


def prepare() -> None:
    """Settle what all runs share."""
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.pop("RANK", None)  # which Lightning's own launcher does not set
