"""Composer's Trainer: its checkpoints and `load_path`, which skips the batches of the epoch.

Beside row.py it needs `pip install torch mosaicml==0.32.1`.
"""

# ruff: noqa: E402 (operators come before what imports torchvision)

from __future__ import annotations

from typing import Any

import torch

for _name in ("torchvision::nms", "torchvision::qnms"):
    # operators of torchvision's library, which does not load beside a torch of another build
    torch.library.define(_name, "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import composer.algorithms  # noqa: F401 (as the first Trainer would in each rank)
from composer import Event, Trainer
from composer.models import ComposerModel
from composer.utils import dist as composer_dist
from torch.utils.data import DataLoader

from tests.runs.row import Leg, Steps, line, plan_of

ENDLESS = False


class Model(ComposerModel):  # type: ignore[misc, unused-ignore]
    """A line that notes what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.line, _ = line()
        self.read: Steps = []

    def forward(self, batch: Any) -> Any:
        """Train on some samples."""
        self.read.append(batch.tolist())
        return self.line(batch[:, None].float())[:, 0]

    def loss(self, outputs: Any, batch: Any, *_: Any, **__: Any) -> Any:
        """Return their loss."""
        return outputs.mean()


def ours(leg: Leg) -> Steps:
    """Read a PlanLoader."""
    from indexplan_torch import PlanLoader
    from indexplan_torch.composer import KeepState

    loader = PlanLoader(torch.arange(leg.samples), plan_of(leg))
    return _train(leg, loader, [KeepState()])


def theirs(leg: Leg) -> Steps:
    """Read by the sampler that Composer's `dist.get_sampler` makes."""
    dataset: Any = torch.arange(leg.samples)
    sampler = composer_dist.get_sampler(dataset, shuffle=True)
    return _train(leg, DataLoader(dataset, leg.global_batch // leg.world_size, sampler=sampler), [])


def _train(leg: Leg, loader: Any, callbacks: list[Any]) -> Steps:
    def due(_: Any, event: Any) -> bool:
        return event == Event.BATCH_CHECKPOINT and len(model.read) == steps

    steps = leg.steps and leg.before + leg.steps
    model = Model()
    trainer = Trainer(
        model=model,
        train_dataloader=loader,
        max_duration=f"{leg.epoch + 1}ep",
        load_path=str(leg.checkpoint / "saved.pt") if leg.checkpoint else None,
        save_folder=str(leg.save) if leg.save else None,
        save_filename="saved.pt",
        save_interval=due,
        callbacks=callbacks,
        seed=1,
        progress_bar=False,
    )
    trainer.fit(duration=f"{steps}ba" if steps else None)
    trainer.close()
    return model.read[leg.before :]
