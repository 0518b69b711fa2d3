"""OnDevice under trainers, which take it for the PlanLoader that it is; and compiled, slowly."""

from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from lightning.pytorch import LightningModule
from lightning.pytorch import Trainer as LightningTrainer
from lightning.pytorch.callbacks import ModelCheckpoint
from transformers import Trainer, TrainingArguments

import indexplan as ip
from indexplan_torch import OnDevice
from indexplan_torch.accelerate import prepare
from indexplan_torch.lightning import RefreshStepCounts
from indexplan_torch.transformers import KeepState

PLAN = ip.Plan(ip.Shuffle(103, seed=3), batch_size=10, sub_epochs=2)
ROWS = torch.arange(103)


def of_plan(num_passes: int) -> list[list[int]]:
    """The batches of some passes."""
    plan = PLAN.replace(world_size=1)
    where = [divmod(number, PLAN.sub_epochs) for number in range(num_passes)]
    return [batch.tolist() for each in where for batch in plan.batches(*each, rank=0)]


class Seen(LightningModule):
    """A model that notes what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def training_step(self, batch: Any, _: int) -> Any:
        self.seen.append(batch.tolist())
        return self.weight * batch.sum()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path: Path) -> None:
    """A fit reads pass after pass, and another goes on where a checkpoint of it stands."""
    options: dict[str, Any] = {
        "accelerator": "cpu", "devices": 1, "logger": False, "enable_progress_bar": False,
        "enable_model_summary": False, "default_root_dir": tmp_path,
    }  # fmt: skip
    save = ModelCheckpoint(tmp_path, every_n_train_steps=3, save_top_k=-1)
    first = Seen()
    trainer = LightningTrainer(max_epochs=4, callbacks=[save, RefreshStepCounts()], **options)
    trainer.fit(first, OnDevice(PLAN, ROWS))
    assert of_plan(4) == first.seen
    (checkpoint,) = tmp_path.glob("*step=9.ckpt")
    rest = Seen()
    trainer = LightningTrainer(max_epochs=4, callbacks=[RefreshStepCounts()], **options)
    trainer.fit(rest, OnDevice(PLAN, ROWS), ckpt_path=checkpoint)
    assert of_plan(4)[9:] == rest.seen


def test_accelerate() -> None:
    """A prepared loader hands out the plan's batches, and its state goes on."""
    loader = prepare(Accelerator(cpu=True), OnDevice(PLAN, {"x": ROWS}))
    seen = []
    for batch in loader:
        seen.append(batch["x"].tolist())
        if len(seen) == 2:
            break
    rest = prepare(Accelerator(cpu=True), OnDevice(PLAN, {"x": ROWS}))
    rest.load_state_dict(loader.state_dict())
    seen += [batch["x"].tolist() for _ in range(2) for batch in rest]
    assert of_plan(2) == seen


class Model(torch.nn.Module):
    """A model as HF Trainer wants it, that notes what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))
        self.seen: list[list[int]] = []

    def forward(self, x: Any) -> dict[str, Any]:
        self.seen.append(x.tolist())
        return {"loss": self.weight * x.sum()}


class FromPlan(Trainer):
    """A Trainer of tensors on a device."""

    def get_train_dataloader(self) -> Any:
        return OnDevice(PLAN, {"x": ROWS})


@pytest.mark.filterwarnings("ignore")
def test_hf_trainer(tmp_path: Path) -> None:
    """A training reads pass after pass, and goes on where its checkpoint stands."""
    arguments = TrainingArguments(
        str(tmp_path), use_cpu=True, num_train_epochs=4, save_steps=9, report_to="none",
        disable_tqdm=True,
    )  # fmt: skip
    seen = []
    for resume in (False, str(tmp_path / "checkpoint-9")):
        trainer = FromPlan(Model(), arguments)
        trainer.add_callback(KeepState(trainer))
        trainer.train(resume_from_checkpoint=resume)
        seen.append(trainer.model.seen)
    assert [of_plan(4), of_plan(4)[9:]] == seen


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")  # inductor calls it
def test_compiled() -> None:
    """A loader whose arithmetic is one kernel reads the same."""
    plan = ip.Plan(ip.Shuffle(2**20, seed=5), batch_size=300_000)
    loader = OnDevice(plan, torch.arange(2**20), compiled=True)
    for epoch in range(2):
        expected = plan.replace(world_size=1).batches(epoch, rank=0)
        assert [batch.tolist() for batch in expected] == [batch.tolist() for batch in loader]
