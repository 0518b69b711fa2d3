"""Accelerate's ways of dealing out batches: our `prepare` under each of its options, two ranks."""

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks
from tests.trainers.test_accelerate import ON_CPU

IMPORTED_BY_RANKS = ("accelerate",)

REMAINDERS = ("spread", "drop", "pad", "carry")
OPTIONS = ("none", "split_batches", "dispatch_batches", "use_stateful_dataloader")
PLAN = ip.Plan(ip.Shuffle(45, seed=5), batch_size=8)


def every() -> dict[str, Any]:
    """All of it, in one process."""
    import torch
    from accelerate import Accelerator, DataLoaderConfiguration

    from indexplan_torch import PlanLoader
    from indexplan_torch.accelerate import gather, prepare

    seen: dict[str, Any] = {}
    for option in OPTIONS:
        given = {} if option == "none" else {option: True}
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(**given))
        for remainder in REMAINDERS:
            loader = prepare(
                accelerator, PlanLoader(torch.arange(45.0), PLAN.replace(remainder=remainder))
            )
            batches, gathered = [], []
            for batch in loader:
                batches.append(batch.int().tolist())
                if remainder == "spread":
                    gathered += gather(accelerator, batch).int().tolist()
                else:
                    gathered += accelerator.gather_for_metrics(batch).int().tolist()
            seen[f"{option} {remainder}"] = [batches, gathered, loader.state_dict()["cursor"]]
    accelerator.end_training()
    return seen


def dealt_out() -> dict[str, str]:
    """What each rank is told where Accelerate would deal a bare sampler's batches out again."""
    import torch
    from accelerate import Accelerator, DataLoaderConfiguration
    from torch.utils.data import DataLoader

    from indexplan_torch import PlanBatchSampler, PlanSampler

    told: dict[str, str] = {}
    plan = PLAN.replace(remainder="drop")
    for option in ("dispatch_batches", "use_seedable_sampler"):
        accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(**{option: True}))
        for form in ({"batch_sampler": PlanBatchSampler(plan)}, {"sampler": PlanSampler(plan)}):
            (name,) = form
            size: Any = {} if name == "batch_sampler" else {"batch_size": 8}
            loader = DataLoader(torch.arange(45.0), **form, **size)  # type: ignore[arg-type]
            try:
                told[f"{option} {name}"] = str(next(iter(accelerator.prepare(loader))))
            except ip.IndexPlanError as error:
                told[f"{option} {name}"] = error.what
    accelerator.end_training()
    return told


def test_both_ranks_are_told_whose_batches_are_dealt_out() -> None:
    """Rank 0 alone was, under `dispatch_batches`: the other waited for its batch, for ever."""
    seen = run_ranks(f"{__name__}:dealt_out", 2, timeout=60, **ON_CPU)
    assert 2 * [4 * ["a plan's sampler"]] == [[*told.values()] for told in seen]


@pytest.fixture(scope="module")
def ranks() -> list[Any]:
    """What two ranks saw of it all."""
    return run_ranks("tests.trainers.test_accelerate_options:every", 2, **ON_CPU)


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("option", OPTIONS)
def test_option(ranks: list[Any], option: str, remainder: str) -> None:
    """A rank reads its batches of the plan, and a metric sees no padding."""
    plan = PLAN.replace(world_size=2, remainder=remainder)
    rows = [
        index
        for step in plan.steps(0)
        for each in range(2)
        for index in plan.batch(0, step=step, rank=each)[
            : plan.units(0, step=step, rank=each).num_valid
        ].tolist()
    ]
    end = plan.cursor(0, step=plan.steps(0).stop).to_dict()
    for rank, result in enumerate(ranks):
        batches = [batch.tolist() for batch in plan.batches(0, rank=rank)]
        assert [batches, rows, end] == result[f"{option} {remainder}"]
