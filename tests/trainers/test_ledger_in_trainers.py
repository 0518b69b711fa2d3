"""Trainers whose loader keeps a ledger: stopped past a checkpoint, resumed, and then asked."""

from __future__ import annotations

import warnings
from collections import Counter
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


def loader(folder: Path, plan: ip.Plan, ledger: Any) -> PlanLoader:
    """Make the loader of a process; None and False are passed as they are."""
    return PlanLoader(Rows(), plan, ledger=ledger and folder / ledger)


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


def by_lightning(
    folder: Path,
    plan: ip.Plan,
    checkpoint: str | None,
    stop: int | None,
    ledger: Any = "run.ledger",
) -> list[list[int]]:
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
        trainer.fit(module, loader(folder, plan, ledger), ckpt_path=path)
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
    folder: Path,
    plan: ip.Plan,
    checkpoint: str | None,
    stop: int | None,
    ledger: Any = "run.ledger",
) -> list[list[int]]:
    """Train; checkpoints are written every 15 steps."""

    class Own(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader(folder, plan, ledger)

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


def by_accelerate(
    folder: Path,
    plan: ip.Plan,
    checkpoint: str | None,
    stop: int | None,
    ledger: Any = "run.ledger",
) -> list[list[int]]:
    """Train; the loop saves after 15 steps."""
    accelerator = Accelerator(cpu=True)
    prepared = prepare(accelerator, loader(folder, plan, ledger))
    if checkpoint:
        accelerator.load_state(folder / "accelerate")

    def save() -> None:
        accelerator.save_state(folder / "accelerate")

    return _loop(prepared, save, checkpoint, stop)


def by_fabric(
    folder: Path,
    plan: ip.Plan,
    checkpoint: str | None,
    stop: int | None,
    ledger: Any = "run.ledger",
) -> list[list[int]]:
    """Train; the loop saves after 15 steps."""
    fabric = Fabric(accelerator="cpu", devices=1)
    ours = loader(folder, plan, ledger)
    batches = fabric.setup_dataloaders(ours)
    if checkpoint:
        ours.load_state_dict(fabric.load(folder / "fabric.ckpt")["loader"])

    def save() -> None:
        fabric.save(folder / "fabric.ckpt", {"loader": ours.state_dict()})

    return _loop(batches, save, checkpoint, stop)


def _loop(batches: Any, save: Any, checkpoint: str | None, stop: int | None) -> list[list[int]]:
    """Read the rest of three epochs, or up to a step."""
    read: list[list[int]] = []
    passes = EPOCHS - 1 if checkpoint else EPOCHS  # which lies in the second
    for batch in islice((batch for _ in range(passes) for batch in batches), stop):
        read.append(samples(batch))
        if not checkpoint and len(read) == SAVED:
            save()
    return read


HERE = PLAN.replace(world_size=1).cursor(1, step=4)  # the place of the checkpoint
GONE = [3, 17, 44]
PLANS = {
    "the same": PLAN,
    "without samples": PLAN.replace(order=ip.Without(PLAN.order, GONE, since=HERE)),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("train", [by_lightning, by_hf_trainer, by_accelerate, by_fabric])
def test_a_resumed_training_can_be_asked(train: Any, name: str, tmp_path: Path) -> None:
    """Each step that counts is in the ledger, what is left out is not, and all else is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = train(tmp_path, PLAN, None, STOPPED)
        rest = train(tmp_path, PLANS[name], "the first", None)
    read = first[:SAVED] + rest
    ledger = ip.Ledger(tmp_path / "run.ledger")
    assert ledger.verify().ok
    assert read == [ledger.batch(step, 0).tolist() for step in range(ledger.step)]
    counts = Counter(sample for batch in read for sample in batch)
    assert [counts[sample] for sample in range(53)] == ledger.seen(range(53)).tolist()
    account = ledger.account()
    left_out = account.num_excluded
    assert EPOCHS * 53 == account.num_read + left_out == counts.total() + left_out
    assert (account.num_dropped, account.num_left) == (0, 0)
    assert account.num_void_steps in (3, 4)  # a batch that the loop held when it stopped counts
    if name == "without samples":
        assert not {sample for batch in rest for sample in batch} & set(GONE)


@pytest.mark.parametrize("train", [by_lightning, by_hf_trainer, by_accelerate, by_fabric])
def test_a_checkpoint_of_a_run_with_a_ledger_needs_it(train: Any, tmp_path: Path) -> None:
    """The trainer passes the error on, reads nothing, and goes on where the ledger is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(tmp_path, PLAN, None, STOPPED)
        before = (tmp_path / "run.ledger").read_bytes()
        with pytest.raises(
            ip.IndexPlanError, match="as the state is that of a run which keeps one"
        ):
            train(tmp_path, PLAN, "the first", 0, ledger=None)
        rest = train(tmp_path, PLAN, "the first", None, ledger=False)
    whole = [PLAN.replace(world_size=1).batch(1, step=step, rank=0) for step in range(4, 11)]
    assert [batch.tolist() for batch in whole] == rest[:7]
    assert before == (tmp_path / "run.ledger").read_bytes()
