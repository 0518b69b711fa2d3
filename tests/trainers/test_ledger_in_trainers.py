"""Trainers whose loader keeps a ledger: stopped past a checkpoint, resumed, and then asked."""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch
from accelerate import Accelerator
from lightning.fabric import Fabric
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare
from indexplan_torch.transformers import KeepState

PLAN = ip.Plan(ip.Shuffle(53, seed=3), batch_size=5)  # 11 steps an epoch
SAVED, STOPPED, EPOCHS = 15, 18, 3


class Rows(torch.utils.data.Dataset[Any]):
    """53 numbers."""

    def __len__(self) -> int:
        return 53

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.tensor([float(index)])}


def loader(folder: Path) -> PlanLoader:
    """Make the loader of a process."""
    return PlanLoader(Rows(), PLAN, ledger=folder / "run.ledger")


def samples(batch: dict[str, Any]) -> list[int]:
    """Return the numbers of a batch."""
    return [int(each) for each in batch["x"][:, 0]]


class Module(pl.LightningModule):
    """A model that stops the process, as a kill would, after some steps."""

    def __init__(self, stop: int | None) -> None:
        super().__init__()
        self.layer, self.stop, self.read = torch.nn.Linear(1, 1), stop, list[list[int]]()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if len(self.read) == self.stop:
            raise KeyboardInterrupt
        self.read.append(samples(batch))
        return self.layer(batch["x"]).mean()


def by_lightning(folder: Path, checkpoint: str | None, stop: int | None) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""
    module = Module(stop)
    keep = pl.callbacks.ModelCheckpoint(
        folder, "kept-{step}", every_n_train_steps=SAVED, save_top_k=-1
    )
    trainer = pl.Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[keep],
    )
    path = folder / "kept-step=15.ckpt" if checkpoint else None
    try:
        trainer.fit(module, loader(folder), ckpt_path=path)
    except (KeyboardInterrupt, SystemExit):
        assert stop
    return module.read


class Model(PreTrainedModel):
    """A model of transformers with one number."""

    config_class = PretrainedConfig

    def __init__(self, stop: int | None) -> None:
        super().__init__(PretrainedConfig())
        self.layer, self.stop, self.read = torch.nn.Linear(1, 1), stop, list[list[int]]()
        self.post_init()

    def forward(self, x: Any) -> Any:
        if len(self.read) == self.stop:
            raise KeyboardInterrupt
        self.read.append(samples({"x": x}))
        return {"loss": self.layer(x).mean()}


def by_hf_trainer(folder: Path, checkpoint: str | None, stop: int | None) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""

    class Own(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader(folder)

    model = Model(stop)
    options: Any = {"save_steps": SAVED, "num_train_epochs": EPOCHS, "report_to": []}
    trainer = Own(
        model,
        TrainingArguments(str(folder / "hf"), use_cpu=True, disable_tqdm=True, **options),
        train_dataset=Rows(),
    )
    trainer.add_callback(KeepState(trainer))
    try:
        trainer.train(resume_from_checkpoint=checkpoint and str(folder / "hf" / "checkpoint-15"))
    except KeyboardInterrupt:
        assert stop
    return model.read


def by_accelerate(folder: Path, checkpoint: str | None, stop: int | None) -> list[list[int]]:
    """Train; the loop saves after 15 steps."""
    accelerator = Accelerator(cpu=True)
    prepared = prepare(accelerator, loader(folder))
    if checkpoint:
        accelerator.load_state(folder / "accelerate")

    def save() -> None:
        accelerator.save_state(folder / "accelerate")

    return _loop(prepared, save, checkpoint, stop)


def by_fabric(folder: Path, checkpoint: str | None, stop: int | None) -> list[list[int]]:
    """Train; the loop saves after 15 steps."""
    fabric = Fabric(accelerator="cpu", devices=1)
    ours = loader(folder)
    batches = fabric.setup_dataloaders(ours)
    if checkpoint:
        ours.load_state_dict(fabric.load(folder / "fabric.ckpt")["loader"])

    def save() -> None:
        fabric.save(folder / "fabric.ckpt", {"loader": ours.state_dict()})

    return _loop(batches, save, checkpoint, stop)


def _loop(batches: Any, save: Any, checkpoint: str | None, stop: int | None) -> list[list[int]]:
    """Read the rest of three epochs, or up to a step."""
    read: list[list[int]] = []
    total = 11 * EPOCHS - (SAVED if checkpoint else 0)
    endless = (batch for _ in range(EPOCHS) for batch in batches)
    for batch in islice(endless, total if stop is None else stop):
        read.append(samples(batch))
        if not checkpoint and len(read) == SAVED:
            save()
    return read


@pytest.mark.parametrize("train", [by_lightning, by_hf_trainer, by_accelerate, by_fabric])
def test_a_resumed_training_can_be_asked(train: Any, tmp_path: Path) -> None:
    """Each step of the training that counts is in the ledger, and those past the checkpoint not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = train(tmp_path, None, STOPPED)
        rest = train(tmp_path, "the first", None)
    read = first[:SAVED] + rest
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert ledger.verify().ok
    assert read == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]
    assert 11 * EPOCHS == ledger.step
    assert [EPOCHS] * 53 == ledger.seen().count(range(53)).tolist()
