"""Hugging Face Trainer: evaluations, and what a plan leaves alone; test_hf_resume.py trains."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("transformers.trainer",)

PLAN = ip.Plan(ip.Shuffle(97, seed=5), batch_size=5)
ON_CPU = {"ACCELERATE_USE_CPU": "true"}  # as `accelerate launch --cpu` sets it


class Numbers:
    """A dataset whose samples name themselves."""

    def __len__(self) -> int:
        return 97

    def __getitem__(self, index: int) -> dict[str, float]:
        return {"x": float(index), "labels": float(index)}


def evaluated(folder: str) -> list[Any]:
    """Evaluate twice, without workers and with them."""
    import functools

    import torch
    import transformers

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import gather

    class Model(torch.nn.Module):
        """A line."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            logits = self.line(x[:, None].float())[:, 0]
            return {"loss": ((logits - labels) ** 2).mean(), "logits": x}

    class Trainer(transformers.Trainer):
        """The trainer as one writes it for a plan."""

        num_workers = 0

        def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
            plan = ip.Plan(ip.Sequential(97), batch_size=5)  # "spread": each sample once
            return PlanLoader(Numbers(), plan, num_workers=self.num_workers)

        def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
            self.gather_function = functools.partial(gather, self.accelerator)
            return super().evaluation_loop(*args, **kwargs)

    def noted(prediction: Any) -> dict[str, Any]:
        return {
            "read": prediction.predictions.astype(int).tolist(),
            "labels": prediction.label_ids.astype(int).tolist(),
        }

    arguments = transformers.TrainingArguments(folder, disable_tqdm=True, report_to=[])
    trainer, found = Trainer(Model(), arguments, compute_metrics=noted), []
    for num_workers in (0, 2):
        trainer.num_workers = num_workers
        metrics = [trainer.evaluate() for _ in range(2)]
        found += [[each["eval_read"], each["eval_labels"]] for each in metrics]
    return found


def test_an_evaluation_sees_each_sample_once(tmp_path: Any) -> None:
    """Whatever the ranks, each time."""
    function = "tests.trainers.test_hf_trainer:evaluated"
    for found in run_ranks(function, 2, str(tmp_path), **ON_CPU):
        for read, labels in found:
            assert list(range(97)) == sorted(read)
            assert read == labels


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
