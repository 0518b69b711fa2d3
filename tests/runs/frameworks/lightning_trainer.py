"""Lightning's Trainer: its ModelCheckpoint saves after a step, and `ckpt_path` resumes.

With `estimating_`, `configure_optimizers` asks Trainer for `estimated_stepping_batches`, which
makes its loaders before it loads the checkpoint, and then drops a stateful loader's state:
https://github.com/Lightning-AI/pytorch-lightning/issues/20550.

Beside row.py it needs `pip install torch lightning==2.6.6 torchdata==0.11.0`.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from tests.runs.row import Leg, Steps, line, plan_of

ENDLESS = False


class Noting(pl.LightningModule):
    """A model that notes what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.line, _ = line()
        self.read: Steps = []

    def configure_optimizers(self) -> Any:
        """Return an optimizer."""
        return torch.optim.SGD(self.parameters(), lr=1e-6)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        """Train on some samples."""
        self.read.append(batch.tolist())
        return self.line(batch[:, None].float()).mean()


class Estimating(Noting):
    """One that asks how many steps there will be, as those with a schedule of learning rates do."""

    def configure_optimizers(self) -> Any:
        """Return an optimizer."""
        assert self.trainer.estimated_stepping_batches
        return super().configure_optimizers()


def ours(leg: Leg, model: type[Noting] = Noting) -> Steps:
    """Read a PlanLoader."""
    from indexplan_torch import PlanLoader

    return _train(leg, model(), PlanLoader(torch.arange(leg.samples), plan_of(leg)))


def theirs(leg: Leg, model: type[Noting] = Noting) -> Steps:
    """Read by the DistributedSampler that Lightning puts in."""
    size = leg.global_batch // leg.world_size
    return _train(leg, model(), DataLoader(torch.arange(leg.samples), size, shuffle=True))


def recommended(leg: Leg, model: type[Noting] = Noting) -> Steps:
    """Read by torchdata's loader, whose state Lightning's checkpoints keep."""
    dataset = torch.arange(leg.samples)
    sampler: Any = StatefulDistributedSampler(dataset, seed=1)
    loader = StatefulDataLoader(dataset, leg.global_batch // leg.world_size, sampler=sampler)
    return _train(leg, model(), loader, use_distributed_sampler=False)


estimating_ours = partial(ours, model=Estimating)
estimating_theirs = partial(theirs, model=Estimating)
estimating_recommended = partial(recommended, model=Estimating)


def _train(leg: Leg, model: Noting, loader: Any, **more: Any) -> Steps:
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ["TORCHELASTIC_RUN_ID"] = "none"  # as torchrun starts the processes that are there
    saved = next(leg.checkpoint.glob("*.ckpt")) if leg.checkpoint else None
    done = int(saved.stem.partition("step=")[2]) if saved else 0
    last = done + leg.before + leg.steps if leg.steps else -1
    saving: Any = {"save_top_k": -1, "every_n_train_steps": last}
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=leg.world_size,
        strategy="ddp",
        max_epochs=leg.epoch + 1,
        max_steps=last,
        callbacks=[ModelCheckpoint(leg.save, "{step}", **saving)] if leg.save else [],
        enable_checkpointing=leg.save is not None,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **more,
    )
    trainer.fit(model, loader, ckpt_path=saved)
    return model.read[leg.before :]
