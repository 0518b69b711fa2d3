"""Trainings under Lightning: what the ranks of test_lightning.py run, each in its own process."""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

import lightning.pytorch as pl
import pytorch_lightning
import torch
from lightning.fabric import Fabric
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
    package: Any = pl,
    alone: bool = False,
    **options: Any,
) -> Any:
    """Train with what `make` returns, inside the hook or outside; return the model.

    `alone` leaves out the callback that trainers put in by themselves.
    """
    model = (Recorder if package is pl else OlderRecorder)(make if inside else None)
    valid = loader(given.VALID) if validate else None
    fitting = trainer(package, **{"max_epochs": 4, **options})
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
    told: dict[str, Any] = {}

    def fits(name: str, what: str, ckpt: Any = None, **more: Any) -> None:
        """Train as a line of the table has it, and tell the story."""
        each = given.FITS[name]
        workers: Any = {"num_workers": each.workers}
        workers["persistent_workers"] = bool(each.workers) and each.inside
        callbacks = [RefreshStepCounts()] * each.passed + more.pop("callbacks", [])
        options = {**each.options, **more, "callbacks": callbacks, "inside": each.inside}
        options["package"] = pytorch_lightning if name == "older name" else pl
        model = fit(lambda: loader(each.plan, **workers), ckpt=ckpt, **options)
        told[what] = [model.story, model.trainer.global_step, model.validated]

    for name in given.FITS:
        if name in given.PLACES:
            saving = {"callbacks": checkpoints(folder, name), "enable_checkpointing": True}
            fits(name, f"fit {name}", **saving)
        elif not name.startswith("by steps"):
            fits(name, f"fit {name}")
    for saved, place, name in given.RESUMES:
        path = f"{folder}/{saved}-{place}.ckpt"
        fits(name, f"resume {saved} {place} {name}", path)

    for inside in (False, True):
        where: dict[str, Any] = {"inside": inside, "max_epochs": 1}
        plain = fit(lambda: loader(given.PLAN, plain=True), **where)
        overfit = fit(lambda: loader(given.PLAN), validate=False, overfit_batches=2, **where)
        told[f"made again {inside}"] = [plain.refused, overfit.refused]
    for workers in (0, 2):
        writer = Indices()
        trainer(callbacks=[writer]).predict(Recorder(), loader(given.EXACT, workers))
        told[f"writer {workers}"] = [writer.batches, writer.epoch]
    model = fit(lambda: loader(given.CHANGING), alone=True)
    told["not refreshed"] = [model.story, model.refused]
    model = fit(lambda: loader(given.PLAN), max_epochs=1, strategy=Elsewhere())
    told["another strategy"] = model.refused
    return told


def in_fabric() -> list[Any]:
    """Read in a function that Fabric launches, where it records what is set on samplers."""
    prepare()
    told: list[Any] = []

    def read(fabric: Any) -> None:
        loader = fabric.setup_dataloaders(PlanLoader(range(103), given.SCHEDULED))
        for _ in range(5):
            batches = [batch.tolist() for batch in loader]
            told.append([len(loader), batches])
        try:
            fabric.setup_dataloaders(
                DataLoader(range(103), batch_sampler=PlanBatchSampler(given.SCHEDULED))
            )  # type: ignore[arg-type]
        except ip.IndexPlanError as error:
            told.append(error.what)

    fabric = Fabric(accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp")
    fabric.launch(read)
    return told
