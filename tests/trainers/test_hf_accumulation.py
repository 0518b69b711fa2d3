"""Hugging Face Trainer with gradient accumulation: what a loader says of the batch in hand."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.transformers import KeepState
from tests.trainers.test_hf_trainer import Numbers

ORDER = ip.Mixture({"a": ip.Shuffle(60), "b": ip.Shuffle(37)}, weights={"a": 0.7, "b": 0.3})
PLAN = ip.Plan(ORDER, batch_size=5, world_size=1)
COLUMN = torch.arange(97).square()
REFUSED = (
    "transformers.Trainer must be given a plan by use_plan, as it resumes by its own count of "
    "steps; got a loader of a plan without it; use "
    "indexplan_torch.transformers.use_plan(trainer, plan)"
)
SAID = {
    "groups": lambda loader: loader.groups.tolist(),
    "shares": lambda loader: loader.shares,
    "step_total": lambda loader: loader.step_total(COLUMN.numpy()),
    "step_size": lambda loader: loader.step_size,
    "cursor": lambda loader: loader.cursor.step,
    "state": lambda loader: loader.state_dict()["cursor"]["step"],
}


class Line(torch.nn.Module):
    """A model of one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        return {"loss": ((self.line(x[:, None].float())[:, 0] - labels) / 100).square().mean()}


class Trainer(transformers.Trainer):
    """A trainer that notes, for each micro-batch, its samples and what the loader says of it."""

    loader: Any
    train_loader: Any = None
    asked: tuple[str, ...] = tuple(SAID)

    def get_train_dataloader(self) -> Any:
        return self.train_loader or self.loader

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        held = {"batch": inputs["x"].int().tolist()}
        for name in self.asked:
            try:
                held[name] = SAID[name](self.loader)
            except ip.IndexPlanError as error:
                held[name] = str(error)
        self.seen.append(held)
        return super().compute_loss(model, inputs, *args, **kwargs)


def seen(folder: Path, size: int, *, keep: bool, **loaders: Any) -> list[dict[str, Any]]:
    """Train for an epoch with so many micro-batches in an update; return what was noted."""
    arguments = transformers.TrainingArguments(
        output_dir=str(folder),
        gradient_accumulation_steps=size,
        num_train_epochs=1,
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
    )
    trainer = Trainer(model=Line(), args=arguments)
    trainer.seen = []
    vars(trainer).update({"loader": PlanLoader(Numbers(), PLAN), **loaders})
    if keep:
        trainer.add_callback(KeepState(trainer))
    trainer.train()
    return trainer.seen


def of_plan(step: int) -> dict[str, Any]:
    """What a loader has to say of a step."""
    batch = PLAN.batch(0, step=step, rank=0)
    return {
        "batch": batch.tolist(),
        "groups": ORDER.group_of(batch).tolist(),
        "shares": {"a": pytest.approx(0.7), "b": pytest.approx(0.3)},
        "step_total": int(COLUMN.numpy()[batch].sum()),
        "step_size": len(batch),
        "cursor": PLAN.cursor(0, step=step + 1).step,
        "state": PLAN.cursor(0, step=step + 1).step,
    }


@pytest.mark.parametrize("size", [1, 4])
def test_with_the_callback_all_is_of_the_micro_batch(tmp_path: Path, size: int) -> None:
    """Groups, shares, totals and the cursor are those of the batch that is trained on."""
    assert [of_plan(step) for step in range(20)] == seen(tmp_path, size, keep=True)


@pytest.mark.parametrize("make", ["loader", "batch sampler", "sampler"])
@pytest.mark.parametrize("size", [1, 3])
def test_without_the_callback_a_plan_is_refused(tmp_path: Path, size: int, make: str) -> None:
    """Also a DataLoader around one of its samplers, which Trainer would skip batches of."""
    loaders: dict[str, Any] = {}
    if make == "batch sampler":
        loaders["train_loader"] = DataLoader(Numbers(), batch_sampler=PlanBatchSampler(PLAN))
    elif make == "sampler":
        sampler = PlanSampler(PLAN.replace(remainder="drop"))
        loaders["train_loader"] = DataLoader(Numbers(), sampler=sampler, batch_size=5)
    with pytest.raises(ip.IndexPlanError) as refused:
        seen(tmp_path, size, keep=False, **loaders)
    assert REFUSED == str(refused.value)


def test_another_loader_is_answered(tmp_path: Path) -> None:
    """A loader that the Trainer does not read tells of its own batch, inside an update too."""
    other = PlanLoader(Numbers(), PLAN, partial=True)
    batches = iter(other)
    next(batches)
    loaders = {"loader": other, "train_loader": PlanLoader(Numbers(), PLAN)}
    for held in seen(tmp_path, 3, keep=True, **loaders):
        assert of_plan(0) == {**held, "batch": of_plan(0)["batch"]}
