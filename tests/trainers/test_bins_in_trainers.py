"""Plans of bins under trainers, two ranks: bins that are batches by themselves, and joined rows."""

from __future__ import annotations

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks
from tests.trainers.test_accelerate import ON_CPU

IMPORTED_BY_RANKS = ("accelerate", "lightning.pytorch", "transformers.trainer")

LENGTHS = [1 + i * 7 % 13 for i in range(104)]
ORDER = ip.LengthGrouped(LENGTHS, 8, num_buckets=3, seed=4)  # 13 bins, all full
PLANS = {
    name: ip.Plan(ORDER, batch_size=size, remainder=name)
    for name, size in (("drop", 1), ("pad", 1), ("carry", 1), ("spread", 3))
}
EPOCHS = 2


def accelerated() -> dict[str, Any]:
    """What Accelerate hands out, and what it gathers for metrics."""
    import torch
    from accelerate import Accelerator
    from torch.utils.data import default_collate

    from indexplan_torch import Bins, PlanLoader, join
    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator()
    samples = torch.arange(104)

    def read(plan: ip.Plan, dataset: Any, **options: Any) -> list[Any]:
        batches, gathered = [], []
        for batch in prepare(accelerator, PlanLoader(dataset, plan, **options)):
            rows = batch["input_ids"] if isinstance(batch, dict) else batch
            batches.append(rows.tolist())
            if plan.batch_size == 1:  # all ranks have as many rows
                gathered += accelerator.gather_for_metrics(rows).flatten().tolist()
        return [batches, gathered]

    seen: dict[str, Any] = {}
    ones = Bins([torch.tensor([i]) for i in range(104)])
    for name, plan in PLANS.items():
        seen[f"{name}, batches"] = read(plan, samples, keep_bins=False)
        seen[f"{name}, rows"] = read(plan, ones, collate_fn=join)
        if name != "spread":
            seen[f"{name}, stacked"] = read(plan, Bins(samples, default_collate))
    accelerator.end_training()
    return seen


@pytest.fixture(scope="module")
def under_accelerate() -> list[Any]:
    """What two ranks saw."""
    return run_ranks("tests.trainers.test_bins_in_trainers:accelerated", 2, **ON_CPU)


@pytest.mark.parametrize("form", ["batches", "rows", "stacked"])
@pytest.mark.parametrize("name", list(PLANS))
def test_accelerate(under_accelerate: list[Any], name: str, form: str) -> None:
    """Each rank has its bins whole; of metrics, no row is left out that is not padding."""
    plan = PLANS[name].replace(world_size=2)
    rows = [
        sample
        for step in range(plan.steps(0).stop)
        for rank in range(2)
        for sample in plan.batch(0, step=step, rank=rank)
        .reshape(-1, 8)[: plan.units(0, step=step, rank=rank).num_valid if form != "rows" else None]
        .ravel()
        .tolist()
    ]
    for rank, result in enumerate(under_accelerate):
        if f"{name}, {form}" not in result:
            assert (name, form) == ("spread", "stacked")
            continue
        batches, gathered = result[f"{name}, {form}"]
        expected = [batch.tolist() for batch in plan.batches(0, rank=rank)]
        assert expected == ([unit for (unit,) in batches] if form == "stacked" else batches)
        if plan.batch_size == 1:
            assert rows == gathered


class Numbers:
    """A dataset whose samples name themselves."""

    def __len__(self) -> int:
        return 104

    def __getitem__(self, index: int) -> dict[str, float]:
        return {"x": float(index), "labels": float(index)}


def trained(folder: str) -> dict[str, Any]:
    """A training under Hugging Face Trainer, stopped and resumed, with two bins a step."""
    import torch
    import transformers

    from indexplan_torch import Bins, PlanLoader, join
    from indexplan_torch.transformers import KeepState

    class Model(torch.nn.Module):
        """A line that notes what it is trained on."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.batches: list[list[int]] = []

        def forward(self, x: Any, labels: Any, **_: Any) -> dict[str, Any]:
            self.batches.append(x.int().tolist())
            logits = self.line(x[:, None].float())[:, 0]
            return {"loss": ((logits - labels) ** 2).mean(), "logits": x}

    def fit(form: str, name: str, **options: Any) -> list[list[int]]:
        dataset: Any = Bins(Numbers(), join=as_row) if form == "rows" else Numbers()
        made = {"collate_fn": join} if form == "rows" else {"keep_bins": False}

        class Trainer(transformers.Trainer):
            """The trainer as one writes it for a plan."""

            def get_train_dataloader(self) -> Any:
                return PlanLoader(dataset, PLANS["spread"], **made)

        model = Model()
        arguments = transformers.TrainingArguments(
            output_dir=f"{folder}/{form}-{name}", disable_tqdm=True, num_train_epochs=EPOCHS
        )
        trainer = Trainer(model=model, args=arguments)
        trainer.args.set_save("steps" if name == "fit" else "no", steps=2)
        trainer.add_callback(KeepState(trainer))
        trainer.train(**options)
        return model.batches

    def as_row(samples: list[dict[str, float]]) -> Any:
        return join([{name: [value] for name, value in each.items()} for each in samples])

    seen = {}
    for form in ("batches", "rows"):
        seen[form] = fit(form, "fit")
        checkpoint = f"{folder}/{form}-fit/checkpoint-2"
        seen[f"{form}, resumed"] = fit(form, "rest", resume_from_checkpoint=checkpoint)
    return seen


def test_hugging_face_trainer(tmp_path: Any) -> None:
    """All bins of both epochs, as flat batches and as joined rows; from a checkpoint, the rest."""
    results = run_ranks("tests.trainers.test_bins_in_trainers:trained", 2, str(tmp_path), **ON_CPU)
    plan = PLANS["spread"].replace(world_size=2)
    for rank, result in enumerate(results):
        expected = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        for form in ("batches", "rows"):
            assert expected == result[form]
            assert expected[2:] == result[f"{form}, resumed"]


def lit(folder: str) -> dict[str, Any]:
    """A training under Lightning, stopped and resumed, with bins joined in workers."""
    import lightning.pytorch as pl
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint

    from indexplan_torch import Bins, PlanLoader, join

    ones = Bins([torch.tensor([i]) for i in range(104)])

    class Model(pl.LightningModule):
        """A line that notes what it is trained on."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.batches: list[list[int]] = []

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-6)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            rows = batch["input_ids"] if isinstance(batch, dict) else batch
            self.batches.append(rows.tolist())
            return self.line(rows[:, None].float()).mean()

    def fit(form: str, checkpoint: str | None) -> list[list[int]]:
        if form == "rows":
            loader = PlanLoader(ones, PLANS["spread"], collate_fn=join, num_workers=2)
        else:
            loader = PlanLoader(torch.arange(104), PLANS["spread"], keep_bins=False)
        keep = ModelCheckpoint(f"{folder}/{form}", "{step}", every_n_train_steps=2, save_top_k=-1)
        trainer = pl.Trainer(
            accelerator="cpu",
            devices=2,
            strategy="ddp",
            max_epochs=EPOCHS,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[keep] if checkpoint is None else [],
            enable_checkpointing=checkpoint is None,
        )
        model = Model()
        trainer.fit(model, loader, ckpt_path=checkpoint)
        return model.batches

    seen = {}
    for form in ("batches", "rows"):
        seen[form] = fit(form, None)
        seen[f"{form}, resumed"] = fit(form, f"{folder}/{form}/step=2.ckpt")
    return seen


def test_lightning(tmp_path: Any) -> None:
    """The same, with workers and by Lightning's own checkpoints."""
    results = run_ranks("tests.trainers.test_bins_in_trainers:lit", 2, str(tmp_path))
    plan = PLANS["spread"].replace(world_size=2)
    for rank, result in enumerate(results):
        expected = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        for form in ("batches", "rows"):
            assert expected == result[form]
            assert expected[2:] == result[f"{form}, resumed"]
