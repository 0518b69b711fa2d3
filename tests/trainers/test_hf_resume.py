"""Hugging Face Trainer stopped on two ranks and resumed on one, two and three: nothing twice."""

import math
from collections import Counter
from typing import Any, NamedTuple

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks
from tests.trainers.test_hf_trainer import ON_CPU, Numbers

IMPORTED_BY_RANKS = ("transformers.trainer",)

PLAN = ip.Plan(ip.Shuffle(97, seed=5), batch_size=5)


class Run(NamedTuple):
    """A training, and the updates after which its checkpoints were taken on two ranks."""

    plan: ip.Plan
    saved: tuple[int, ...]
    options: dict[str, Any]
    num_passes: int = 3
    again: int = 1


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
WITHOUT = (
    "checkpoint-15 must hold the loader's state, to be resumed by a plan; got the checkpoint of a "
    "training without use_plan; pass use_plan the plan.resume(cursor) with which the run shall go "
    "on, or load the model alone, and leave resume_from_checkpoint out"
)


def trained(
    folder: str,
    run: Run,
    saved: int | None = None,
    *,
    by: str = "plan",
    **options: Any,
) -> dict[str, Any] | str:
    """Train, from a checkpoint or from the start; tell what the loop saw and where it ended."""
    import torch
    import transformers

    from indexplan_torch.transformers import use_plan

    class Model(torch.nn.Module):
        """A line that notes what it is trained on, and which random numbers it draws."""

        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(1, 1)
            self.seen: dict[str, list[Any]] = {"batches": [], "drawn": [], "held": []}

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            self.seen["batches"].append(x.int().tolist())
            self.seen["drawn"].append(torch.rand(1).item())
            logits = self.line(x[:, None].float())[:, 0] / 100
            return {"loss": ((logits - labels / 100) ** 2).mean(), "logits": x}

    class Trainer(transformers.Trainer):
        """A trainer that asks for the micro-batch."""

        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            if by == "plan":
                loader = self.callback_handler.train_dataloader
                model.seen["held"].append([loader.step_size, loader.cursor.step])
            return super().compute_loss(*args, **kwargs)

    model = Model()
    options = {"save_strategy": "no", "learning_rate": 1e-6, **run.options, **options}
    arguments = transformers.TrainingArguments(
        output_dir=folder, disable_tqdm=True, report_to=[], **options
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Numbers())
    if by == "plan":
        use_plan(trainer, run.plan, again=run.again)
    try:
        trainer.train(resume_from_checkpoint=saved and f"{folder}/checkpoint-{saved}")
    except ip.IndexPlanError as error:
        return str(error)
    state = trainer.state
    ended = [state.global_step, state.max_steps, state.epoch, trainer.lr_scheduler.get_last_lr()[0]]
    return {**model.seen, "ended": ended}


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
        trained(f"{folder}/theirs", RUNS["plain"], by="nothing", **theirs)
    seen["without"] = trained(f"{folder}/theirs", RUNS["plain"], 15)
    begins = PLAN.resume(PLAN.replace(world_size=2).cursor(1, step=5))
    resumed = RUNS["plain"]._replace(plan=begins)
    seen["from a cursor"] = trained(f"{folder}/theirs", resumed, 15)
    return seen


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What every rank saw: of the two that saved, and of those that went on."""
    folder = str(tmp_path_factory.mktemp("saved"))
    function = "tests.trainers.test_hf_resume:leg"
    return {
        world_size: run_ranks(function, world_size, folder, world_size == 2, timeout=600, **ON_CPU)
        for world_size in (2, 1, 3)
    }


def passes(plan: ip.Plan, numbers: Any, rank: int) -> list[list[int]]:
    """The batches that a rank has to receive in some passes."""
    where = [divmod(number, plan.sub_epochs) for number in numbers]
    return [batch.tolist() for place in where for batch in plan.batches(*place, rank=rank)]


def num_batches(run: Run, updates: int) -> int:
    """The batches that so many updates on two ranks are made of."""
    plan = run.plan.replace(world_size=2)
    size, number, batches = run.options.get("gradient_accumulation_steps", 1), 0, 0
    while updates:
        steps = plan.steps(*divmod(number, plan.sub_epochs)).stop * run.again
        whole = -(-steps // size)
        batches += steps if updates >= whole else updates * size
        updates -= min(updates, whole)
        number += 1
    return batches


@pytest.mark.parametrize("name", RUNS)
def test_training_is_the_plans(worlds: dict[int, list[Any]], name: str) -> None:
    """Passes are as long as the plan says, and the learning rate ends where they do."""
    run = RUNS[name]
    plan = run.plan.replace(world_size=2)
    for rank, result in enumerate(worlds[2]):
        seen = result[name]
        once = passes(plan, range(run.num_passes), rank)
        assert [batch for batch in once for _ in range(run.again)] == seen["batches"]
        updates = {"accumulated": 12, "unequal": 20, "again": 24}.get(name, 30)
        assert [updates, updates, float(run.num_passes), 0.0] == seen["ended"]


@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("name", RUNS)
def test_resume_reads_each_sample_once(
    worlds: dict[int, list[Any]], name: str, world_size: int
) -> None:
    """Both legs together read the whole of every epoch; nothing is left at the run's end."""
    run = RUNS[name]
    for saved in run.saved:
        batches = num_batches(run, saved)
        read = [b for result in worlds[2] for b in result[name]["batches"][:batches]]
        read += [b for each in worlds[world_size] for b in each[f"{name} {saved}"]["batches"]]
        times = Counter(index for batch in read for index in batch)
        epochs = run.num_passes // run.plan.sub_epochs * run.again
        whole = dict.fromkeys(range(97), epochs)
        if name == "unequal":  # 6 passes of 4 sub-epochs: one epoch, and half of one
            half = run.plan.replace(world_size=1)
            whole = Counter(i for batch in passes(half, range(6), 0) for i in batch)
        if name == "carry":  # its last step may reach into the next epoch
            times = Counter({index: min(n, epochs) for index, n in times.items()})
        assert whole == times, saved
        for result in worlds[world_size]:
            ended = result[f"{name} {saved}"]["ended"]
            assert ended[0] == ended[1]
            assert [float(run.num_passes), 0.0] == ended[2:]


@pytest.mark.parametrize("name", RUNS)
def test_resume_on_as_many_ranks_is_the_same_run(worlds: dict[int, list[Any]], name: str) -> None:
    """On as many ranks the second leg is the first one's rest, random numbers included."""
    run = RUNS[name]
    for result in worlds[2]:
        for saved in run.saved:
            rest = slice(num_batches(run, saved), None)
            for what in ("batches", "drawn", "held"):
                assert result[name][what][rest] == result[f"{name} {saved}"][what]


def test_held_is_what_the_loop_holds(worlds: dict[int, list[Any]]) -> None:
    """In compute_loss, step_size and cursor are those of the micro-batch, not of its group."""
    plan = PLAN.replace(world_size=2)
    for result in worlds[2]:
        for name in ("plain", "workers", "accumulated"):
            places = [(epoch, step) for epoch in range(3) for step in range(10)]
            sizes = [plan.step_size(epoch, step=step) for epoch, step in places]
            after = [plan.cursor(epoch, step=step + 1).step for epoch, step in places]
            assert list(map(list, zip(sizes, after, strict=True))) == result[name]["held"]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_max_steps_are_updates(worlds: dict[int, list[Any]], world_size: int) -> None:
    """`max_steps` holds: the run goes on for what is left of it, through as many passes as that."""
    saved = PLAN.replace(world_size=2).cursor(1, step=5)
    plan = PLAN.replace(world_size=world_size).resume(saved)
    for rank, result in enumerate(worlds[world_size]):
        seen = result["budget"]
        assert passes(plan, range(1, 12), rank)[: BUDGET - 15] == seen["batches"]
        assert [BUDGET, BUDGET, 0.0] == [*seen["ended"][:2], seen["ended"][3]]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_a_checkpoint_without_a_state_is_refused(
    worlds: dict[int, list[Any]], world_size: int
) -> None:
    """By any number of ranks; a plan that starts at a cursor, as the cure says, goes on there."""
    saved = PLAN.replace(world_size=2).cursor(1, step=5)
    plan = PLAN.replace(world_size=world_size).resume(saved)
    for rank, result in enumerate(worlds[world_size]):
        assert result["without"].endswith(WITHOUT)
        seen = result["from a cursor"]
        assert passes(plan, (1, 2), rank) == seen["batches"]
        assert [seen["ended"][1], 3.0, 0.0] == [seen["ended"][0], *seen["ended"][2:]]
