"""Evaluations on several ranks read each sample once, as one process does, under each trainer."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest
import torch
import torchmetrics
import transformers
from accelerate import Accelerator
from hypothesis import example, given, settings
from hypothesis import strategies as st

import indexplan as ip
from indexplan_torch import PlanLoader
from indexplan_torch.accelerate import gather, prepare
from tests.runs.row import Numbered
from tests.trainers import lightning_runs
from tests.trainers.ranks import ON_CPU, run_ranks

IMPORTED_BY_RANKS = ("transformers.trainer", "lightning.pytorch")
CASES = [(9, 1), (10, 1), (9, 2), (13, 4), (2, 1)]  # samples, and batch size
UNEQUAL = [(9, 1), (1, 3)]  # where a rank of two has a batch less


def score(sample: float) -> float:
    """Return what a metric is the mean of."""
    return float(sample) ** 2


def mean(n: int) -> float:
    """Return the metric of one process."""
    return sum(map(score, range(n))) / n


def evaluated(n: int, size: int, **options: Any) -> Any:
    """Return a loader for an evaluation, on this rank."""
    plan = ip.Plan(ip.Sequential(n), batch_size=size)
    return PlanLoader([float(i) for i in range(n)], plan, evaluation=True, **options)


def lightning(cases: list[tuple[int, int]]) -> list[Any]:
    """Validate, in a fit and alone, test and predict."""
    lightning_runs.prepare()

    class Model(lightning_runs.Recorder):
        """A model that logs a sum, a count and a metric, which ranks reduce at the end."""

        def __init__(self) -> None:
            super().__init__()
            self.mean = torchmetrics.MeanMetric()

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            super().validation_step(batch, batch_idx)
            scores = [score(sample) for sample in batch.tolist()]
            self.mean.update(torch.tensor(scores))
            self.log("mean", self.mean)
            sums = {"sum": sum(scores), "count": float(len(scores))}
            self.log_dict(sums, reduce_fx="sum", sync_dist=True, on_epoch=True)

        test_step = validation_step

    results, run = [], lightning_runs.trainer
    for n, size in cases:
        model, found, read = Model(), list[float](), list[Any]()
        for evaluate in (run().validate, run().test):
            found += means(evaluate(model, evaluated(n, size), verbose=False)[0])
            read.append(sum(model.validated, []))
            model.validated = []
        predicted = run().predict(model, evaluated(n, size))
        read.append([sample for batch in predicted for sample in batch.tolist()])
        results.append([n, found, read])
    model, fit = Model(), run(max_epochs=2, num_sanity_val_steps=1)
    train = ip.Plan(ip.Shuffle(8), batch_size=2)
    valid = evaluated(9, 1)
    fit.fit(model, PlanLoader(torch.arange(8.0), train), valid)
    results.append([9, means(fit.callback_metrics), [sum(model.validated[-len(valid) :], [])]])
    return results


def means(logged: Any) -> list[float]:
    """Return the mean in both ways."""
    return [float(logged["mean"]), float(logged["sum"] / logged["count"])]


def test_lightning() -> None:
    """`validate`, `test`, `predict`, and a validation in `fit`: each sample once."""
    ranks = run_ranks(f"{__name__}:lightning", 2, CASES)
    for (n, found, first), (_, others, second) in zip(*ranks, strict=True):
        assert [pytest.approx(mean(n))] * len(found) == found == others
        for read in map(list.__add__, first, second):
            assert [*range(n)] == sorted(read)


REFUSED = (
    "an evaluation's ranks must have equally many batches under {}, which gathers after each; got "
    "evaluation=True, and steps of fewer than world_size={} units; use a larger batch size, or "
    "remainder='pad' without evaluation=True, and the loader of indexplan_torch.accelerate.prepare,"
    " under which gather_for_metrics leaves padding out"
)


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 4))
@example(9, 2, 1)  # a last step of one rank
@example(10, 2, 1)
def test_what_gathering_leaves_of_any_ranks_is_each_sample_once(n: int, ranks: int, b: int) -> None:
    """Ranks read one after another in this process, and their rows are cut as Accelerate cuts them.

    Hugging Face Trainer gathers by the same function; test_accelerate.py gathers on real ranks.
    Without padding, a step in which a rank reads
    nothing is refused on all ranks, and in every other all ranks have a batch.
    """
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
            with pytest.raises(ip.IndexPlanError) as error:
                read(rank, "spread", evaluation=True)
            assert REFUSED.format("Accelerate", ranks) == str(error.value)
        return
    parts = [read(rank, "spread", evaluation=True) for rank in range(ranks)]
    assert 1 == len({len(part) for part in parts})
    assert [*range(n)] == sorted(sum((sum(part, []) for part in parts), []))


def scored(index: int) -> dict[str, float]:
    """Return a sample: its number, with its score."""
    return {"x": float(index), "labels": score(index)}


def trained(folder: str, cases: list[tuple[int, int]]) -> list[Any]:
    """Evaluate and predict by Hugging Face Trainer, without padding or with what leaves it out."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            return {"loss": labels.mean(), "logits": x}

    class Padded(transformers.Trainer):
        def get_test_dataloader(self, dataset: Any) -> Any:
            plan = ip.Plan(ip.Sequential(len(dataset)), batch_size=size, remainder="pad")
            return prepare(self.accelerator, PlanLoader(dataset, plan))

        def get_eval_dataloader(self, dataset: Any = None) -> Any:
            return self.get_test_dataloader(self.eval_dataset if dataset is None else dataset)

    class Spread(Padded):
        def get_test_dataloader(self, dataset: Any) -> Any:
            plan = ip.Plan(ip.Sequential(len(dataset)), batch_size=size)
            return PlanLoader(dataset, plan, num_workers=2 * (len(dataset) > 50))

        def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
            self.gather_function = functools.partial(gather, self.accelerator)
            return super().evaluation_loop(*args, **kwargs)

    class Refused(transformers.Trainer):
        def get_eval_dataloader(self, dataset: Any = None) -> Any:
            plan = ip.Plan(ip.Sequential(9), batch_size=1)
            return PlanLoader(Numbered(9, scored), plan, evaluation=True)

    def noted(given: Any) -> dict[str, Any]:
        return {
            "read": given.predictions.astype(int).tolist(),
            "mean": given.label_ids.mean(),
        }

    arguments = transformers.TrainingArguments(folder, disable_tqdm=True, report_to=[])
    results: list[Any] = []
    for n, size in cases:
        for kind in (Padded, Spread) if (n, size) not in UNEQUAL else (Padded,):
            data = Numbered(n, scored)
            trainer = kind(Model(), arguments, eval_dataset=data, compute_metrics=noted)
            for _ in range(2):
                found = trainer.evaluate()
            predicted = trainer.predict(data).predictions.astype(int).tolist()
            results.append([n, found["eval_read"], found["eval_mean"], predicted])
    with pytest.raises(ip.IndexPlanError) as error:
        Refused(Model(), arguments).evaluate()
    return [results, str(error.value)]


def test_hugging_face_trainer(tmp_path: Path) -> None:
    """`evaluate` and `predict`: predictions, labels and metrics of each sample once."""
    function = f"{__name__}:trained"
    cases = [*CASES, (1, 3), (97, 5)]
    for results, refused in run_ranks(function, 2, str(tmp_path), cases, **ON_CPU):
        for n, read, found, predicted in results:
            assert [*range(n)] == read == predicted
            assert mean(n) == pytest.approx(found)
        assert REFUSED.format("transformers.Trainer", 2) == refused
