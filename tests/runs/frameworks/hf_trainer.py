"""Hugging Face's Trainer on a tiny model: its checkpoints, and `resume_from_checkpoint`.

Beside row.py it needs `pip install torch transformers==5.23.0 accelerate`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", ACCELERATE_USE_CPU="true")

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from tests.runs.row import Leg, Numbered, Steps, line, plan_of

ENDLESS = False


def sample(index: int) -> dict[str, Any]:
    """Return a sample that is its number."""
    return {"x": torch.tensor(float(index)), "labels": torch.tensor(0.0)}


class Model(torch.nn.Module):
    """A line that notes what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.line, _ = line()
        self.read: Steps = []

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        """Return the loss of some samples."""
        self.read.append(x.int().tolist())
        return {"loss": (self.line(x[:, None])[:, 0] - labels).mean()}


class Stop(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Saves after a step, and stops there."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_step_end(self, _: Any, __: Any, control: Any, **___: Any) -> Any:
        """Count the steps of this leg."""
        self.steps -= 1
        if not self.steps:
            control.should_save = control.should_training_stop = True
        return control


def ours(leg: Leg) -> Steps:
    """Read by a plan."""
    from indexplan_torch.transformers import use_plan

    return _train(leg, lambda trainer: use_plan(trainer, plan_of(leg)))


def theirs(leg: Leg) -> Steps:
    """Read the dataset by its own loader, which a resume lets skip the batches of the epoch."""
    return _train(leg, lambda _: None)


def _train(leg: Leg, plan: Callable[[Trainer], object]) -> Steps:
    arguments = TrainingArguments(
        str(leg.save or leg.checkpoint or tempfile.gettempdir()),
        per_device_train_batch_size=leg.global_batch // leg.world_size,
        num_train_epochs=leg.epoch + 1,
        save_strategy="no",
        logging_strategy="no",
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )
    model = Model()
    trainer = Trainer(model=model, args=arguments, train_dataset=Numbered(leg.samples, sample))
    plan(trainer)
    if leg.steps is not None:
        trainer.add_callback(Stop(leg.before + leg.steps))
    saved = str(next(leg.checkpoint.glob("checkpoint-*"))) if leg.checkpoint else None
    trainer.train(resume_from_checkpoint=saved)
    return model.read[leg.before :]
