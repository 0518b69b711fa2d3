"""Evaluations on several ranks read each sample once, as one process does, under each trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.trainers.ranks import run_ranks

IMPORTED_BY_RANKS = ("transformers.trainer", "lightning.pytorch")
ON_CPU = {"ACCELERATE_USE_CPU": "true"}
CASES = [(9, 1), (10, 1), (9, 2), (13, 4), (2, 1)]  # samples, and batch size


def score(sample: float) -> float:
    """Return what a metric is the mean of."""
    return float(sample) ** 2


def mean(n: int) -> float:
    """Return the metric of one process."""
    return sum(map(score, range(n))) / n


def evaluated(n: int, size: int, **options: Any) -> Any:
    """Return a loader for an evaluation, on this rank."""
    from indexplan_torch import PlanLoader

    plan = ip.Plan(ip.Sequential(n), batch_size=size)
    return PlanLoader([float(i) for i in range(n)], plan, evaluation=True, **options)


def plain(cases: list[tuple[int, int]]) -> list[Any]:
    """A plain loop, whose ranks gather once at its end."""
    import torch.distributed as dist

    dist.init_process_group("gloo")
    results = []
    for n, size in [*cases, (1, 3)]:
        loader = evaluated(n, size, num_workers=n % 2)
        for _ in range(2):
            read = [int(i) for batch in loader for i in batch]
            gathered: list[Any] = [None] * dist.get_world_size()
            dist.all_gather_object(gathered, read)
            results.append([n, sorted(sum(gathered, []))])
    return results


@pytest.mark.parametrize("world_size", [2, 4])
def test_a_plain_loop(world_size: int) -> None:
    """Twice over, with workers and without, and with fewer samples than ranks."""
    for rank in run_ranks("tests.trainers.test_evaluation:plain", world_size, CASES):
        assert all([*range(n)] == read for n, read in rank)
        assert len(rank) == 2 * len(CASES) + 2


def lightning(cases: list[tuple[int, int]]) -> list[Any]:
    """Validate, in a fit and alone, test and predict."""
    import lightning.pytorch as pl
    import torch
    import torchmetrics

    from tests.trainers.lightning_runs import QUIET, prepare

    prepare()

    class Model(pl.LightningModule):
        """A model that logs a sum, a count and a metric, which ranks reduce at the end."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)
            self.read: list[int] = []
            self.mean = torchmetrics.MeanMetric()

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.read += batch.int().tolist()
            scores = [score(sample) for sample in batch.tolist()]
            self.mean.update(torch.tensor(scores))
            self.log("mean", self.mean)
            sums = {"sum": sum(scores), "count": float(len(scores))}
            self.log_dict(sums, reduce_fx="sum", sync_dist=True, on_epoch=True)

        test_step = validation_step

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.layer(batch[:, None].float()).mean()

        def predict_step(self, batch: Any, batch_idx: int) -> Any:
            return batch.int().tolist()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=1e-9)

    def trainer(**options: Any) -> Any:
        ranks = {"accelerator": "cpu", "devices": 2, "strategy": "ddp"}
        return pl.Trainer(**{**QUIET, **ranks, **options})

    results = []
    for n, size in cases:
        model, found = Model(), []
        found += means(trainer().validate(model, evaluated(n, size), verbose=False)[0])
        read, model.read = model.read, []
        found += means(trainer().test(model, evaluated(n, size), verbose=False)[0])
        predicted = sum(trainer().predict(model, evaluated(n, size)), [])
        results.append([n, found, [read, model.read, predicted]])
    model, fit = Model(), trainer(max_epochs=2, num_sanity_val_steps=1)
    train = ip.Plan(ip.Shuffle(8), batch_size=2)
    from indexplan_torch import PlanLoader

    valid = evaluated(9, 1)
    fit.fit(model, PlanLoader(torch.arange(8.0), train), valid)
    results.append([9, means(fit.callback_metrics), [model.read[-len(valid) :]]])
    return results


def means(logged: Any) -> list[float]:
    """Return the mean in both ways."""
    return [float(logged["mean"]), float(logged["sum"] / logged["count"])]


def test_lightning() -> None:
    """`validate`, `test`, `predict`, and a validation in `fit`: each sample once."""
    ranks = run_ranks("tests.trainers.test_evaluation:lightning", 2, CASES)
    for (n, found, first), (_, others, second) in zip(*ranks, strict=True):
        assert [pytest.approx(mean(n))] * len(found) == found == others
        for read in map(list.__add__, first, second):
            assert [*range(n)] == sorted(read)


def accelerate(cases: list[tuple[int, int]]) -> list[Any]:
    """Gather after each batch: by theirs without padding, by ours, and what both can't."""
    from accelerate import Accelerator

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import gather, prepare

    accelerator = Accelerator(cpu=True)
    results: list[Any] = []
    for n, size in cases:
        data = [float(i) for i in range(n)]
        padded = ip.Plan(ip.Sequential(n), batch_size=size, remainder="pad")
        loader = prepare(accelerator, PlanLoader(data, padded))
        theirs = [i for batch in loader for i in accelerator.gather_for_metrics(batch).tolist()]
        ours, loader = [], prepare(accelerator, evaluated(n, size))
        try:
            ours = [i for batch in loader for i in gather(accelerator, batch).tolist()]
        except ip.IndexPlanError as error:
            ours = str(error)
        results.append([n, size, theirs, ours])
    return results


REFUSED = (
    "an evaluation's ranks must have equally many batches under {}, which gathers after each; got "
    "evaluation=True, and steps of fewer than world_size=2 units; use a larger batch size, or "
    "remainder='pad' without evaluation=True, and the loader of indexplan_torch.accelerate.prepare,"
    " under which gather_for_metrics leaves padding out"
)


def test_accelerate() -> None:
    """`gather_for_metrics` under "pad" in every case, `gather` where ranks have equal batches."""
    cases = [*CASES, (1, 3)]
    for rank in run_ranks("tests.trainers.test_evaluation:accelerate", 2, cases, **ON_CPU):
        for n, size, theirs, ours in rank:
            assert [*range(n)] == sorted(theirs)
            equal = (n, size) not in [(9, 1), (1, 3)]
            assert ([*range(n)] if equal else REFUSED.format("Accelerate")) == (
                sorted(ours) if equal else ours
            )


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 4))
def test_what_gathering_leaves_of_any_ranks_is_each_sample_once(n: int, ranks: int, b: int) -> None:
    """Ranks read one after another in this process, and their rows are cut as Accelerate cuts them.

    Hugging Face Trainer gathers by the same function. Without padding, a step in which a rank reads
    nothing is refused on all ranks, and in every other all ranks have a batch.
    """
    from accelerate import Accelerator

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import prepare

    accelerator, data = Accelerator(cpu=True), [float(i) for i in range(n)]

    def read(rank: int, remainder: str, **options: Any) -> list[list[int]]:
        plan = ip.Plan(ip.Shuffle(n, seed=b), batch_size=b, remainder=remainder)
        mine = PlanLoader(data, plan, rank=rank, world_size=ranks, **options)
        steps = []
        for batch in (loader := prepare(accelerator, mine)):
            steps.append(batch.int().tolist())
            cuts.add(loader.remainder)
        return steps

    cuts: set[int] = set()
    whole = [sum(step, []) for step in zip(*(read(r, "pad") for r in range(ranks)), strict=True)]
    (cut,) = cuts
    whole[-1] = whole[-1][:cut] if cut > 0 else whole[-1]
    assert cut >= 0
    assert [*range(n)] == sorted(sum(whole, []))
    num_steps = -(-n // (ranks * b))
    if n // num_steps < ranks:  # the units of the smallest step
        for rank in range(ranks):
            with pytest.raises(ip.IndexPlanError, match="must have equally many batches under"):
                read(rank, "spread", evaluation=True)
        return
    parts = [read(rank, "spread", evaluation=True) for rank in range(ranks)]
    assert 1 == len({len(part) for part in parts})
    assert [*range(n)] == sorted(sum((sum(part, []) for part in parts), []))


def trained(folder: str, cases: list[tuple[int, int]]) -> list[Any]:
    """Evaluate and predict by Hugging Face Trainer, whose gathering leaves the padding out."""
    import torch
    import transformers

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import prepare

    class Numbers:
        def __init__(self, n: int) -> None:
            self.n = n

        def __len__(self) -> int:
            return self.n

        def __getitem__(self, index: int) -> dict[str, float]:
            return {"x": float(index), "labels": score(index)}

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": labels.mean(), "logits": x}

    class Trainer(transformers.Trainer):
        def get_test_dataloader(self, dataset: Any) -> Any:
            plan = ip.Plan(ip.Sequential(len(dataset)), batch_size=size, remainder="pad")
            return prepare(self.accelerator, PlanLoader(dataset, plan))

        def get_eval_dataloader(self, dataset: Any = None) -> Any:
            return self.get_test_dataloader(self.eval_dataset if dataset is None else dataset)

    class Refused(transformers.Trainer):
        def get_eval_dataloader(self, dataset: Any = None) -> Any:
            plan = ip.Plan(ip.Sequential(9), batch_size=1)
            return PlanLoader(Numbers(9), plan, evaluation=True)

    def noted(given: Any) -> dict[str, Any]:
        return {
            "read": given.predictions.astype(int).tolist(),
            "mean": given.label_ids.mean(),
        }

    arguments = transformers.TrainingArguments(folder, disable_tqdm=True, report_to=[])
    results: list[Any] = []
    for n, size in cases:  # noqa: B007 (which the loaders read)
        trainer = Trainer(Model(), arguments, eval_dataset=Numbers(n), compute_metrics=noted)
        found = trainer.evaluate()
        predicted = trainer.predict(Numbers(n)).predictions.astype(int).tolist()
        results.append([n, found["eval_read"], found["eval_mean"], predicted])
    with pytest.raises(ip.IndexPlanError) as error:
        Refused(Model(), arguments).evaluate()
    return [results, str(error.value)]


def test_hugging_face_trainer(tmp_path: Path) -> None:
    """`evaluate` and `predict`: predictions, labels and metrics of each sample once."""
    function = "tests.trainers.test_evaluation:trained"
    cases = [*CASES, (1, 3)]
    for results, refused in run_ranks(function, 2, str(tmp_path), cases, **ON_CPU):
        for n, read, found, predicted in results:
            assert [*range(n)] == read == predicted
            assert mean(n) == pytest.approx(found)
        assert REFUSED.format("transformers.Trainer") == refused
