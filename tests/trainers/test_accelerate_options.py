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
