"""One run of each trainer, which stops, resumes, or changes its plan at a step, in one process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from accelerate import Accelerator
from lightning.fabric import Fabric
from transformers import (
    PretrainedConfig,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import prepare
from indexplan_torch.transformers import KeepState

SAVED, EPOCHS = 15, 3  # after so many steps, of 11 an epoch, the run saves and may move
Driver = Callable[..., list[list[int]]]


class Rows(torch.utils.data.Dataset[Any]):
    """53 numbers."""

    def __len__(self) -> int:
        return 53

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.tensor([float(index)])}


def samples(batch: dict[str, Any]) -> list[int]:
    """Return the numbers of a batch."""
    return [int(each) for each in batch["x"][:, 0]]


class Module(pl.LightningModule):
    """A model that stops the process, as a kill would, before a step, and moves after one."""

    def __init__(self, stop: int | None, move: Any) -> None:
        super().__init__()
        self.layer, self.stop, self.read = torch.nn.Linear(1, 1), stop, list[list[int]]()
        self.move = move

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        if len(self.read) == self.stop:
            raise KeyboardInterrupt
        self.read.append(samples(batch))
        return self.layer(batch["x"]).mean()

    def on_train_batch_end(self, *_: Any) -> None:
        if self.trainer.global_step == SAVED:
            self.move()


def by_lightning(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""
    module = Module(stop, lambda: move(loader))
    keep = pl.callbacks.ModelCheckpoint(
        folder, "kept-{step}", every_n_train_steps=SAVED, save_top_k=-1
    )
    quiet: Any = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = pl.Trainer(max_epochs=EPOCHS, accelerator="cpu", callbacks=[keep], **quiet)
    try:
        trainer.fit(module, loader, ckpt_path=folder / "kept-step=15.ckpt" if resumed else None)
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


def by_hf_trainer(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""

    class Own(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    class Moves(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step == SAVED:
                move(loader)

    model = Model(stop)
    options: Any = {"save_steps": SAVED, "num_train_epochs": EPOCHS, "report_to": []}
    arguments = TrainingArguments(str(folder / "hf"), use_cpu=True, disable_tqdm=True, **options)
    trainer = Own(model, arguments, train_dataset=Rows())
    trainer.add_callback(KeepState(trainer))
    trainer.add_callback(Moves())
    try:
        trainer.train(
            resume_from_checkpoint=str(folder / "hf" / "checkpoint-15") if resumed else None
        )
    except KeyboardInterrupt:
        assert stop
    return model.read


def by_accelerate(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train on a prepared loader, which has fetched the next batch; the loop saves."""
    accelerator = Accelerator(cpu=True)
    others = [*accelerator.gradient_state.dataloader_references]
    prepared = prepare(accelerator, loader)
    if resumed:
        accelerator.load_state(folder / "accelerate")

    def save() -> None:
        accelerator.save_state(folder / "accelerate")

    read = by_hand(prepared, save, resumed, stop, lambda: move(prepared))
    if stop is None:  # each loop has left it
        assert others == accelerator.gradient_state.dataloader_references
    return read


def by_fabric(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train; the loop saves."""
    fabric = Fabric(accelerator="cpu", devices=1)
    batches = fabric.setup_dataloaders(loader)
    if resumed:
        loader.load_state_dict(fabric.load(folder / "fabric.ckpt")["loader"])

    def save() -> None:
        fabric.save(folder / "fabric.ckpt", {"loader": loader.state_dict()})

    return by_hand(batches, save, resumed, stop, lambda: move(loader))


def by_a_loop(
    loader: PlanLoader, folder: Path, resumed: bool, stop: int | None, move: Any
) -> list[list[int]]:
    """Train in a plain loop."""
    if resumed:
        loader.load_state_dict(torch.load(folder / "run.pt"))

    def save() -> None:
        torch.save(loader.state_dict(), folder / "run.pt")

    return by_hand(loader, save, resumed, stop, lambda: move(loader))


def by_hand(batches: Any, save: Any, resumed: bool, stop: int | None, move: Any) -> list[list[int]]:
    """Read the rest of three epochs, or up to a step."""
    read: list[list[int]] = []
    passes = EPOCHS - 1 if resumed else EPOCHS  # the checkpoint lies in the second
    for batch in islice((batch for _ in range(passes) for batch in batches), stop):
        read.append(samples(batch))
        if not resumed and len(read) == SAVED:
            save()
            move()
    return read


TRAINERS = {
    each.__name__: each
    for each in (by_lightning, by_hf_trainer, by_accelerate, by_fabric, by_a_loop)
}


def train(
    by: str,
    loader: PlanLoader,
    folder: Path,
    *,
    resumed: bool = False,
    stop: int | None = None,
    move: Any = lambda _: None,
) -> list[list[int]]:
    """Train for three epochs, or up to a step; return the batches that the loop or model got."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TRAINERS[by](loader, folder, resumed, stop, move)
