"""Hugging Face Trainer stopped on two ranks and resumed on one, two and three, step by step.

test_evaluation.py evaluates.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import transformers
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.transformers import use_plan
from tests.histories.passes import Loop, Saved
from tests.runs.row import Numbered
from tests.trainers.ranks import ON_CPU, run_ranks

IMPORTED_BY_RANKS = ("transformers.trainer",)

ORDER = ip.Mixture({"a": ip.Shuffle(60), "b": ip.Shuffle(37)}, weights={"a": 0.7, "b": 0.3})
PLAN = ip.Plan(ORDER, batch_size=5)
COLUMN = np.arange(97) ** 2


class Run(NamedTuple):
    """A training, and the updates after which its checkpoints were taken on two ranks."""

    plan: ip.Plan
    saved: tuple[int, ...]
    options: dict[str, Any]
    num_passes: int = 3
    again: int = 1

    @property
    def size(self) -> int:
        """How many micro-batches an update has."""
        size: int = self.options.get("gradient_accumulation_steps", 1)
        return size


# on two ranks a pass of PLAN has 10 steps, or 4 updates of 3, 3, 3 and 1 of them
RUNS = {
    "plain": Run(PLAN, (15, 20, 30), {"num_train_epochs": 3}),
    "workers": Run(PLAN, (15,), {"num_train_epochs": 3, "dataloader_num_workers": 2}),
    "accumulated": Run(PLAN, (6, 8), {"num_train_epochs": 3, "gradient_accumulation_steps": 3}),
    # passes of 4, 3, 3, 3, 4 and 3 steps
    "unequal": Run(PLAN.replace(batch_size=4, sub_epochs=4), (6, 10), {"num_train_epochs": 6}, 6),
    "carry": Run(PLAN.replace(remainder="carry"), (15,), {"num_train_epochs": 3}),
    # passes of 10 steps, each dealt 3 times, in 8 updates of 4 and one of 2: saved after 12, 16 and
    # 34 times
    "again": Run(
        PLAN.replace(batch_size=None, global_batch_size=10),
        (3, 4, 9),
        {"num_train_epochs": 3, "gradient_accumulation_steps": 4},
        again=3,
    ),
}
BUDGET = 55  # updates, however many passes those are
SAID = {
    "groups": lambda loader: loader.groups.tolist(),
    "shares": lambda loader: loader.shares,
    "step_total": lambda loader: loader.step_total(COLUMN),
    "step_size": lambda loader: loader.step_size,
    "cursor": lambda loader: loader.cursor.to_dict(),
    "state": lambda loader: loader.state_dict()["cursor"],
}
REFUSED = (
    "transformers.Trainer must be given a plan by use_plan, as it resumes by its own count of "
    "steps; got a loader of a plan without it; use "
    "indexplan_torch.transformers.use_plan(trainer, plan)"
)


def named(index: int) -> dict[str, float]:
    """Return a sample, which names itself."""
    return {"x": float(index), "labels": float(index)}


NUMBERS = Numbered(97, named)


class Line(torch.nn.Module):
    """A line that notes which random numbers it draws."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)
        self.drawn: list[float] = []

    def forward(self, x: Any, labels: Any) -> dict[str, Any]:
        self.drawn.append(torch.rand(1).item())
        return {"loss": ((self.line(x[:, None].float())[:, 0] - labels) / 100).square().mean()}


class Trainer(transformers.Trainer):
    """A trainer that notes of each micro-batch its samples and what loaders say of it."""

    asked: tuple[Any, ...] = ()  # loaders other than the training's
    planned = True

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        loaders = (self.callback_handler.train_dataloader, *self.asked) if self.planned else ()
        told = [{name: ask(loader) for name, ask in SAID.items()} for loader in loaders]
        self.held.append([inputs["x"].int().tolist(), *told])
        return super().compute_loss(model, inputs, *args, **kwargs)


def trainer_of(folder: Any, **options: Any) -> Any:
    """Make a trainer of a line."""
    quiet: dict[str, Any] = {"disable_tqdm": True, "report_to": [], "save_strategy": "no"}
    options = {"learning_rate": 1e-6, **quiet, **options}
    arguments = transformers.TrainingArguments(output_dir=str(folder), **options)
    trainer: Any = Trainer(model=Line(), args=arguments, train_dataset=NUMBERS)
    trainer.held = []
    return trainer


def trained(
    folder: str, run: Run, saved: int | None = None, *, planned: bool = True, **options: Any
) -> dict[str, Any]:
    """Train, from a checkpoint or from the start; tell what the loop saw and where it ended.

    In the loop another loader is asked too, which has begun a pass that the trainer does not read.
    """
    trainer = trainer_of(folder, **{**run.options, **options})
    trainer.planned = planned
    if planned:
        use_plan(trainer, run.plan, again=run.again)
        trainer.asked = (PlanLoader(NUMBERS, PLAN, partial=True),)
        begun = iter(trainer.asked[0])
        next(begun)
    trainer.train(resume_from_checkpoint=saved and f"{folder}/checkpoint-{saved}")
    state = trainer.state
    ended = [state.global_step, state.max_steps, state.epoch, trainer.lr_scheduler.get_last_lr()[0]]
    return {"held": trainer.held, "drawn": trainer.model.drawn, "ended": ended}


def leg(folder: str, saving: bool) -> dict[str, Any]:
    """Save each run on two ranks, or only resume each of its checkpoints on others."""
    seen: dict[str, Any] = {}
    for name, run in RUNS.items():
        place = f"{folder}/{name}"
        if saving:
            every = math.gcd(*run.saved)
            seen[name] = trained(place, run, save_strategy="steps", save_steps=every)
        for saved in run.saved:
            seen[f"{name} {saved}"] = trained(place, run, saved)
    options = {"num_train_epochs": 1, "max_steps": BUDGET}
    seen["budget"] = trained(f"{folder}/plain", RUNS["plain"], 15, **options)
    if saving:  # by Trainer alone: 25 steps a pass of 2 samples on 2 ranks
        theirs = {"save_strategy": "steps", "save_steps": 15, "per_device_train_batch_size": 2}
        trained(f"{folder}/theirs", RUNS["plain"], planned=False, **theirs)
    begins = PLAN.resume(PLAN.replace(world_size=2).cursor(1, step=5))
    resumed = RUNS["plain"]._replace(plan=begins)
    seen["from a cursor"] = trained(f"{folder}/theirs", resumed, 15)
    return seen


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What every rank saw: of the two that saved, and of those that went on."""
    folder = str(tmp_path_factory.mktemp("saved"))
    return {
        ranks: run_ranks(f"{__name__}:leg", ranks, folder, ranks == 2, **ON_CPU)
        for ranks in (2, 1, 3)
    }


def loop_of(run: Run, world_size: int, rank: int, saved: int) -> Loop:
    """The model of a rank's loop that goes on after so many updates on two ranks."""
    first, number = Loop(run.plan.replace(world_size=2), 0, run.again), 0
    while saved >= (updates := -(-len(first.steps(number)) // run.size)):
        number, saved = number + 1, saved - updates
    state: Saved = first.state(number, saved * run.size)
    loop = Loop(run.plan.replace(world_size=world_size), rank, run.again)
    loop.load(state)
    return loop


def told_of(loop: Loop, number: int) -> list[Any]:
    """The micro-batches of a pass, each with what the loader has to say of it."""
    told, where = [], loop.place(number)
    for step, batch in zip(loop.steps(number), loop.batches(number), strict=True):
        ranks = range(loop.plan.world_size or 0)
        every = [loop.plan.batch(*where, step=step // loop.again, rank=each) for each in ranks]
        after = loop.state(number, step + 1).cursor.to_dict()
        said = {
            "groups": ORDER.group_of(np.array(batch)).tolist(),
            "shares": {"a": pytest.approx(0.7), "b": pytest.approx(0.3)},
            "step_total": int(COLUMN[np.concatenate(every)].sum()),
            "step_size": sum(map(len, every)),
            "cursor": after,
            "state": after,
        }
        told.append([batch, said])
    return told


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("name", RUNS)
def test_every_leg_reads_the_plan(worlds: dict[int, list[Any]], name: str, world_size: int) -> None:
    """What is left of its passes, as the plan deals it to these ranks; updates end where they do.

    In the loop a loader tells of the micro-batch, not of its group, and a loader that the trainer
    does not read tells of its own batch. A plan that begins at a cursor goes on with the checkpoint
    of a training without a plan. On as many ranks, random numbers are those of the run without a
    stop.
    """
    run = RUNS[name]
    legs = [(saved, f"{name} {saved}") for saved in run.saved]
    legs += [(0, name)] if world_size == 2 else []
    legs += [(15, "from a cursor")] if name == "plain" else []
    for saved, key in legs:
        for rank, result in enumerate(worlds[world_size]):
            loop, seen = loop_of(run, world_size, rank, saved), result[key]
            left = range(loop.start, run.num_passes)
            other = told_of(Loop(PLAN.replace(world_size=world_size), rank), 0)[0][1]
            expected = [[*told, other] for number in left for told in told_of(loop, number)]
            assert expected == seen["held"]
            updates = saved + sum(-(-len(loop.steps(number)) // run.size) for number in left)
            assert [updates, updates, float(run.num_passes), 0.0] == seen["ended"]
            if world_size == 2 and key != "from a cursor":
                whole = result[name]["drawn"]
                assert whole[len(whole) - len(expected) :] == seen["drawn"]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_max_steps_are_updates(worlds: dict[int, list[Any]], world_size: int) -> None:
    """`max_steps` holds: the run goes on for what is left of it, through as many passes as that."""
    for rank, result in enumerate(worlds[world_size]):
        loop, seen = loop_of(RUNS["plain"], world_size, rank, 15), result["budget"]
        expected = sum(map(loop.batches, range(1, 12)), [])[: BUDGET - 15]
        assert expected == [batch for batch, *_ in seen["held"]]
        assert [BUDGET, BUDGET, 0.0] == [*seen["ended"][:2], seen["ended"][3]]


# --- in one process


def sampled(**form: Any) -> Any:
    """A DataLoader around one of a plan's samplers."""
    return DataLoader(NUMBERS, **form)  # type: ignore[arg-type]


LOADERS: dict[str, Any] = {
    "loader": lambda: PlanLoader(NUMBERS, PLAN),
    "batch sampler": lambda: sampled(batch_sampler=PlanBatchSampler(PLAN)),
    "sampler": lambda: sampled(sampler=PlanSampler(PLAN.replace(remainder="drop")), batch_size=5),
}


@pytest.mark.parametrize("make", LOADERS)
@pytest.mark.parametrize("size", [1, 3])
def test_without_the_callback_a_plan_is_refused(tmp_path: Path, size: int, make: str) -> None:
    """Also a DataLoader around one of its samplers, which Trainer would skip batches of."""
    trainer = trainer_of(tmp_path, gradient_accumulation_steps=size, use_cpu=True)
    trainer.get_train_dataloader = LOADERS[make]
    with pytest.raises(ip.IndexPlanError) as refused:
        trainer.train()
    assert REFUSED == str(refused.value)
    assert [] == trainer.held


def test_a_plan_leaves_the_class_and_the_evaluation_alone(tmp_path: Any) -> None:
    """Also in a class of one's own; the last plan is used, and a stream is refused."""

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
    given = {"model": torch.nn.Linear(1, 1), "args": arguments, "train_dataset": NUMBERS}
    plain, own = transformers.Trainer(**given), Own(**given, plan=PLAN)
    for plan in (PLAN, PLAN.replace(batch_size=7)):
        use_plan(plain, plan)
        assert plain.get_train_dataloader().plan is plan
    assert [transformers.Trainer, Own] == [type(plain), type(own)]
    assert own.get_train_dataloader().plan is PLAN
    assert not hasattr(plain.get_eval_dataloader(NUMBERS), "plan")
    with pytest.raises(ip.IndexPlanError, match="dataset must be map-style"):
        use_plan(plain, PLAN, dataset=Stream())
