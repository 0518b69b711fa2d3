"""Trainings under Lightning: what the ranks of test_lightning.py run, each in its own process."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

import lightning.pytorch as pl
import pytorch_lightning
import torch
from lightning.pytorch.callbacks import BasePredictionWriter, ModelCheckpoint
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.lightning import RefreshStepCounts
from tests.trainers import test_lightning as given

QUIET = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}


class Recording:
    """What a model has to record its batches, and when it was validated."""

    def __init__(self, make: Any = None) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.story: list[Any] = []
        self.validated: list[Any] = []
        self.refused = ""
        if make is not None:
            self.train_dataloader = make

    def configure_optimizers(self) -> Any:
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


class OlderRecorder(Recording, pytorch_lightning.LightningModule):
    """The same for the package by its older name."""


class Indices(BasePredictionWriter):
    """A writer that keeps the indices of what it would write."""

    def __init__(self) -> None:
        super().__init__("batch_and_epoch")
        self.batches: list[Any] = []
        self.epoch: Any = None

    def write_on_batch_end(self, trainer: Any, pl_module: Any, *what: Any) -> None:
        self.batches.append(what[1])

    def write_on_epoch_end(self, trainer: Any, pl_module: Any, *what: Any) -> None:
        self.epoch = what[1][0]


def loader(plan: Any, num_workers: int = 0, *, plain: bool = False, **options: Any) -> Any:
    """A loader of a plan whose samples are their indices."""
    data = range(plan.order.num_samples)
    options["num_workers"] = num_workers
    if plain:
        return DataLoader(data, batch_sampler=PlanBatchSampler(plan), **options)
    return PlanLoader(data, plan, **options)


def trainer(package: Any = pl, **options: Any) -> Any:
    """A Trainer with the default settings, on all ranks."""
    ranks = {"accelerator": "cpu", "devices": int(os.environ["RANKS"]), "strategy": "ddp"}
    return package.Trainer(**{**QUIET, **ranks, **options})


def fit(
    make: Any,
    *,
    inside: bool = False,
    validate: bool = True,
    ckpt: Any = None,
    alone: bool = False,
    **options: Any,
) -> Recorder:
    """Train with what `make` returns, inside the hook or outside; return the model.

    `alone` leaves out the callback that trainers put in by themselves.
    """
    model = Recorder(make if inside else None)
    valid = loader(given.VALID) if validate else None
    fitting = trainer(**options)
    if alone:
        others = [each for each in fitting.callbacks if not isinstance(each, RefreshStepCounts)]
        fitting.callbacks = others
    try:
        fitting.fit(model, None if inside else make(), valid, ckpt_path=ckpt)
    except ip.IndexPlanError as error:
        model.refused = str(error)
    return model


class Elsewhere(DDPStrategy):
    """A strategy that deals data to fewer ranks than run, and tells Lightning's samplers alone."""

    @property
    def distributed_sampler_kwargs(self) -> dict[str, Any]:
        """All ranks are peers."""
        return {"num_replicas": 1, "rank": 0}


def checkpoints(folder: str, name: str) -> list[Any]:
    """Checkpoints of every second step, of every validation's end and of every epoch's end."""
    kinds: dict[str, Any] = {
        "step": {"filename": f"{name}-{{step}}", "every_n_train_steps": 2},
        "validation": {
            "filename": f"{name}-validation-{{epoch}}",
            "mode": "max",  # only to tell it from the next one
            "save_on_train_epoch_end": False,
        },
        "end": {"filename": f"{name}-end-{{epoch}}", "save_on_train_epoch_end": True},
    }
    return [ModelCheckpoint(folder, save_top_k=-1, **kind) for kind in kinds.values()]


def prepare() -> None:
    """Settle what all runs share."""
    warnings.simplefilter("ignore")
    for name in ("lightning.pytorch", "lightning.fabric", "pytorch_lightning"):
        logging.getLogger(name).setLevel(logging.ERROR)
    os.environ.pop("RANK", None)  # which Lightning's own launcher does not set


def everything(folder: str) -> dict[str, Any]:
    """Run all that two ranks run, in one pair of processes; return the stories by name."""
    prepare()
    return {**train(folder), **evaluate(), **changing(folder)}


def train(folder: str) -> dict[str, Any]:
    """Train, save and resume; return the stories by name."""
    stories: dict[str, Any] = {}

    def fits(workers: int, where: str, **options: Any) -> None:
        """Train for four passes; leave checkpoints."""
        name = f"loader-{workers}-{where}"
        saving = {"callbacks": checkpoints(folder, name), "enable_checkpointing": True}

        def make() -> Any:
            return loader(given.PLAN, workers, **options)

        model = fit(make, inside=where == "inside", max_epochs=4, **saving)
        stories[f"fit {name}"] = model.story
        stories[f"validated {name}"] = model.validated

    for where in ("outside", "inside"):
        fits(0, where)
        inside: dict[str, Any] = {"inside": where == "inside", "max_epochs": 1}
        model = fit(lambda: loader(given.PLAN, plain=True), **inside)
        stories[f"plain {where}"] = model.refused
        model = fit(lambda: loader(given.PLAN), validate=False, overfit_batches=2, **inside)
        stories[f"overfit {where}"] = model.refused
    fits(2, "outside")
    fits(2, "inside", persistent_workers=True)

    for name, (saved, workers, where) in given.RESUMES.items():
        options = {"persistent_workers": True} if workers and where == "inside" else {}

        def make(workers: int = workers, options: Any = options) -> Any:
            return loader(given.PLAN, workers, **options)

        path = f"{folder}/{saved}-{name.split()[0]}.ckpt"
        inside = where == "inside"
        stories[f"resume {name}"] = fit(make, inside=inside, ckpt=path, max_epochs=4).story

    for name in ("step=6", "step=8", "validation-epoch=1", "end-epoch=1"):
        path = f"{folder}/loader-0-outside-{name}.ckpt"
        for validate in (True, False):
            options = {"ckpt": path, "max_steps": 16, "validate": validate}
            model = fit(lambda: loader(given.PLAN), callbacks=[RefreshStepCounts()], **options)
            stories[f"max_steps {name} {validate}"] = model.story
    return stories


def evaluate() -> dict[str, Any]:
    """Predict, and validate inside an epoch; return what was seen by name."""
    stories: dict[str, Any] = {}
    for workers in (0, 2):
        name = f"loader {workers}"
        writer = Indices()
        trainer(callbacks=[writer]).predict(Recorder(), loader(given.EXACT, workers))
        stories[f"writer {name}"] = [writer.batches, writer.epoch]
    model = fit(lambda: loader(given.PLAN), max_epochs=1, val_check_interval=0.5)
    stories["validated twice"] = [model.story, model.validated]
    return stories


def changing(folder: str) -> dict[str, Any]:
    """Train a schedule that changes the number of steps; return the stories by name."""
    stories: dict[str, Any] = {}

    def counted(name: str, workers: int = 0, **options: Any) -> None:
        options = {"max_epochs": 4, **options}
        options["callbacks"] = [RefreshStepCounts(), *options.get("callbacks", [])]
        model = fit(lambda: loader(given.CHANGING, workers), **options)
        stories[f"changing {name}"] = [model.story, model.trainer.global_step]

    saving = {"callbacks": checkpoints(folder, "changing"), "enable_checkpointing": True}
    counted("refreshed", **saving)
    counted("workers", workers=2)
    counted("at most 5", limit_train_batches=5)
    counted("half", limit_train_batches=0.5)
    counted("accumulated", accumulate_grad_batches=4)
    counted("twice", val_check_interval=0.5)
    for name, _ in given.CHANGING_RESUMES:
        counted(f"resume {name}", ckpt=f"{folder}/changing-{name}.ckpt")
    model = fit(lambda: loader(given.CHANGING), max_epochs=4)
    stories["changing by itself"] = [model.story, model.trainer.global_step]
    model = fit(lambda: loader(given.CHANGING), max_epochs=4, limit_train_batches=5)
    stories["changing at most 5, by itself"] = [model.story, model.trainer.global_step]
    model = fit(lambda: loader(given.CHANGING), max_epochs=4, alone=True)
    stories["changing not refreshed"] = [model.story, model.refused]
    stories["another strategy"] = fit(
        lambda: loader(given.PLAN), max_epochs=1, strategy=Elsewhere()
    ).refused

    older = OlderRecorder()
    options = {"callbacks": [RefreshStepCounts()], "max_epochs": 4}
    trainer(pytorch_lightning, **options).fit(older, loader(given.CHANGING), loader(given.VALID))
    stories["changing older name"] = [older.story, older.trainer.global_step]
    return stories


class Estimating(Recorder):
    """A model whose schedule asks Lightning for the number of steps, as many schedules do."""

    def configure_optimizers(self) -> Any:
        assert self.trainer.estimated_stepping_batches > 0
        return super().configure_optimizers()


def estimated(folder: str, stop: int, workers: int) -> list[Any]:
    """Save after some steps, and resume; return what each of the two was trained on."""
    prepare()
    told = []
    for ckpt in (None, f"{folder}/step={stop}.ckpt"):
        model = Estimating()
        saving = ModelCheckpoint(folder, filename="{step}", every_n_train_steps=stop)
        options = {"callbacks": [saving], "enable_checkpointing": True}
        fitting = trainer(max_epochs=3, max_steps=-1 if ckpt else stop, **options)
        fitting.fit(model, loader(given.EXACT, workers), ckpt_path=ckpt)
        told.append(model.story)
    return told
