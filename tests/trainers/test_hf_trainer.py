"""Hugging Face Trainer: a PlanLoader from get_train_dataloader, default settings, two ranks."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("transformers.trainer",)

EPOCHS = 3
PLAN = ip.Plan(ip.Shuffle(97, seed=5), batch_size=5)
NUM_STEPS = 10
ON_CPU = {"ACCELERATE_USE_CPU": "true"}  # as `accelerate launch --cpu` sets it


class Numbers:
    """A dataset whose samples name themselves."""

    def __len__(self) -> int:
        return 97

    def __getitem__(self, index: int) -> dict[str, float]:
        return {"x": float(index), "labels": float(index)}


def runs(folder: str, num_workers: int) -> dict[str, Any]:
    """Fit, resume in mid-epoch and at an epoch's end, and evaluate."""
    import functools

    import torch
    import transformers

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import gather

    class Model(torch.nn.Module):
        """A line that notes what it is trained on."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.batches: list[list[int]] = []

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            if self.training:
                self.batches.append(x.int().tolist())
            logits = self.line(x[:, None].float())[:, 0]
            return {"loss": ((logits - labels) ** 2).mean(), "logits": x}

    class Trainer(transformers.Trainer):
        """The trainer as one writes it for a plan."""

        def get_train_dataloader(self) -> Any:
            return PlanLoader(Numbers(), PLAN, num_workers=num_workers)

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            plan = ip.Plan(ip.Sequential(97), batch_size=5)  # "spread": each sample once
            return PlanLoader(Numbers(), plan, num_workers=num_workers)

        def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
            self.gather_function = functools.partial(gather, self.accelerator)
            return super().evaluation_loop(*args, **kwargs)

    def trainer(name: str, **options: Any) -> tuple[Any, Model]:
        model = Model()
        options = {"num_train_epochs": EPOCHS, "learning_rate": 1e-6, **options}
        arguments = transformers.TrainingArguments(
            output_dir=f"{folder}/{name}", disable_tqdm=True, **options
        )
        return Trainer(model=model, args=arguments, compute_metrics=noted), model

    def noted(prediction: Any) -> dict[str, Any]:
        return {
            "read": prediction.predictions.astype(int).tolist(),
            "labels": prediction.label_ids.astype(int).tolist(),
        }

    seen: dict[str, Any] = {}
    fit, model = trainer("fit", save_steps=5)
    fit.train()
    seen["fit"] = model.batches
    for step in (15, 20):
        resumed, model = trainer("resumed", save_strategy="no")
        resumed.train(resume_from_checkpoint=f"{folder}/fit/checkpoint-{step}")
        seen[f"resumed at {step}"] = model.batches
    if not num_workers:
        options = {"gradient_accumulation_steps": 3, "num_train_epochs": 2}
        fit, _ = trainer("accumulated", save_steps=6, **options)
        fit.train()
        resumed, model = trainer("resumed", save_strategy="no", **options)
        resumed.train(resume_from_checkpoint=f"{folder}/accumulated/checkpoint-6")
        seen["accumulated"] = model.batches
    metrics = [fit.evaluate() for _ in range(2)]
    seen["evaluated"] = [[each["eval_read"], each["eval_labels"]] for each in metrics]
    return seen


def test_an_evaluation_of_a_part_is_refused(tmp_path: Any) -> None:
    """A plan of several sub-epochs would evaluate another part of the data each time."""
    import torch
    import transformers

    from indexplan_torch import PlanLoader

    class Trainer(transformers.Trainer):
        """Evaluates what it is given as it is."""

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            return eval_dataset

        get_test_dataloader = get_eval_dataloader

    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    trainer = Trainer(model=torch.nn.Linear(1, 1), args=arguments)
    loader = PlanLoader(Numbers(), PLAN.replace(sub_epochs=2))
    for ask in (trainer.evaluate, trainer.predict):
        with pytest.raises(ip.IndexPlanError) as error:
            ask(loader)
        assert str(error.value) == (
            "an evaluation's plan must have sub_epochs=1 under transformers.Trainer, as each "
            "evaluation is one pass; got sub_epochs=2; use plan.replace(sub_epochs=1)"
        )


def every(folder: str) -> dict[str, Any]:
    """All of it without and with workers, in one process."""
    return {str(n): runs(f"{folder}/{n}", n) for n in (0, 2)}


def test_trainer_keeps_the_plan(tmp_path: Any) -> None:
    """Fit and resumes read the plan; evaluation sees each sample once, whatever the ranks."""
    results = run_ranks("tests.trainers.test_hf_trainer:every", 2, str(tmp_path), **ON_CPU)
    plan = PLAN.replace(world_size=2)
    assert plan.steps(0).stop == NUM_STEPS
    for rank, result in enumerate(results):
        fit = [b.tolist() for epoch in range(EPOCHS) for b in plan.batches(epoch, rank=rank)]
        for num_workers in ("0", "2"):
            seen = result[num_workers]
            assert fit == seen["fit"]
            assert fit[15:] == seen["resumed at 15"]
            assert fit[20:] == seen["resumed at 20"]
            for read, labels in seen["evaluated"]:
                assert list(range(97)) == sorted(read)
                assert read == labels
        # three batches an update: six updates are the first epoch's four and six batches more
        assert fit[16 : 2 * NUM_STEPS] == result["0"]["accumulated"]


def test_a_plan_leaves_the_class_and_the_evaluation_alone(tmp_path: Any) -> None:
    """Also in a class of one's own; the last plan is used, and a stream is refused."""
    import torch
    import transformers

    from indexplan_torch.transformers import use_plan

    class Own(transformers.Trainer):  # type: ignore[misc]
        """A trainer of one's own, as on the page."""

        def __init__(self, *args: Any, plan: ip.Plan, **options: Any) -> None:
            super().__init__(*args, **options)
            use_plan(self, plan)

    class Stream(torch.utils.data.IterableDataset[int]):
        """A dataset without indices."""

        def __iter__(self) -> Any:
            return iter(range(97))

    arguments = transformers.TrainingArguments(output_dir=str(tmp_path), use_cpu=True)
    given = {"model": torch.nn.Linear(1, 1), "args": arguments, "train_dataset": Numbers()}
    plain, own = transformers.Trainer(**given), Own(**given, plan=PLAN)
    for plan in (PLAN, PLAN.replace(batch_size=7)):
        use_plan(plain, plan)
        assert plain.get_train_dataloader().plan is plan
    assert [transformers.Trainer, Own] == [type(plain), type(own)]
    assert own.get_train_dataloader().plan is PLAN
    assert not hasattr(plain.get_eval_dataloader(Numbers()), "plan")
    with pytest.raises(ip.IndexPlanError, match="dataset must be map-style"):
        use_plan(plain, PLAN, dataset=Stream())
