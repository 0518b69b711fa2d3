"""Accelerate's ways of dealing out batches: each of its options with each remainder, two ranks."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks
from tests.trainers.test_accelerate import ON_CPU

IMPORTED_BY_RANKS = ("accelerate",)

REMAINDERS = ("spread", "drop", "pad", "carry")
REASONS = {
    "split_batches": "each batch is a rank's already, and would be cut once more",
    "dispatch_batches": "one process would cut a step into equal parts, and a plan's may differ",
    "use_stateful_dataloader": "it would count all ranks' batches as if they were one's",
}
OPTIONS = ("none", *REASONS)
PADDED = (
    "plan must have one batch size that all ranks share, of samples that are neither nested nor "
    "in bins, for GlobalPlanBatchSampler with remainder='pad', as Accelerate counts batches and "
    "padding by it; got other batches; use indexplan_torch.accelerate.prepare(accelerator, "
    "PlanLoader(dataset, plan))"
)
PLAN = ip.Plan(ip.Shuffle(45, seed=5), batch_size=8)


def refused(option: str) -> str:
    """What is said to an option."""
    return (
        f"{option} must be left out with GlobalPlanBatchSampler, as {REASONS[option]}; got True; "
        "use indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))"
    )


def every() -> dict[str, Any]:
    """All of it, in one process."""
    import torch
    from accelerate import Accelerator, DataLoaderConfiguration
    from torch.utils.data import DataLoader

    from indexplan_torch import GlobalPlanBatchSampler, PlanLoader
    from indexplan_torch.accelerate import gather, prepare

    dataset = torch.arange(45.0)
    seen: dict[str, Any] = {}

    def read(accelerator: Any, prepared: Any, by: Any) -> Any:
        batches, gathered = [], []
        for batch in prepared:
            batches.append(batch.int().tolist())
            if by is not None:
                gathered += by(accelerator, batch).int().tolist()
        return [batches, gathered]

    def for_metrics(accelerator: Any, batch: Any) -> Any:
        return accelerator.gather_for_metrics(batch)

    def by_sampler(accelerator: Any, plan: ip.Plan, by: Any, state: Any = None) -> Any:
        sampler = GlobalPlanBatchSampler(plan)
        if state is not None:
            sampler.load_state_dict(state)
        try:
            prepared = accelerator.prepare(DataLoader(dataset, batch_sampler=sampler))
        except ip.IndexPlanError as error:
            return str(error)
        return read(accelerator, prepared, by)

    for option in OPTIONS:
        given = {} if option == "none" else {option: True}
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(**given))
        for remainder in REMAINDERS:
            plan = PLAN.replace(remainder=remainder)
            by = gather if remainder == "spread" else for_metrics
            loader = prepare(accelerator, PlanLoader(dataset, plan))
            seen[f"{option} {remainder}"] = [
                by_sampler(accelerator, plan, by),
                read(accelerator, loader, by),
                loader.state_dict()["cursor"],
            ]
    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration())
    padded = PLAN.replace(remainder="pad")
    saved = PLAN.replace(world_size=2, batch_size=3).cursor(0, step=2)
    parts = padded.replace(sub_epochs=2)
    seen["resumed"] = by_sampler(
        accelerator, padded, for_metrics, {"version": 1, "cursor": saved.to_dict(), "pass": 0}
    )
    seen["in parts"] = by_sampler(accelerator, parts, for_metrics)
    seen["uneven"] = by_sampler(
        accelerator, padded.replace(batch_size=None, global_batch_size=7), for_metrics
    )
    accelerator.end_training()
    return seen


@pytest.fixture(scope="module")
def ranks() -> list[Any]:
    """What two ranks saw of it all."""
    return run_ranks("tests.trainers.test_accelerate_options:every", 2, **ON_CPU)


def expected(plan: ip.Plan, rank: int) -> list[Any]:
    """A rank's batches of epoch 0, and the rows that a metric has to see."""
    rows = [
        index
        for step in plan.steps(0, 0)
        for each in range(2)
        for index in plan.batch(0, 0, step=step, rank=each)[
            : plan.units(0, 0, step=step, rank=each).num_valid
        ].tolist()
    ]
    return [[batch.tolist() for batch in plan.batches(0, 0, rank=rank)], rows]


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("option", OPTIONS)
def test_option(ranks: list[Any], option: str, remainder: str) -> None:
    """A global sampler reads the plan or is refused; our `prepare` reads it under each option."""
    plan = PLAN.replace(world_size=2, remainder=remainder)
    for rank, result in enumerate(ranks):
        by_sampler, by_loader, cursor = result[f"{option} {remainder}"]
        whole = expected(plan, rank)
        assert by_sampler == (whole if option == "none" else refused(option))
        assert whole == by_loader
        assert plan.cursor(0, step=plan.steps(0).stop).to_dict() == cursor


def test_metrics_see_no_padding(ranks: list[Any]) -> None:
    """After a resume, and in sub-epochs, padding is left out too; where it cannot be, refused."""
    plan = PLAN.replace(world_size=2, remainder="pad")
    resumed = plan.resume(plan.replace(batch_size=3, remainder="spread").cursor(0, step=2))
    for rank, result in enumerate(ranks):
        assert expected(resumed, rank) == result["resumed"]
        assert expected(plan.replace(sub_epochs=2), rank) == result["in parts"]
        assert PADDED == result["uneven"]
