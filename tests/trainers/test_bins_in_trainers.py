"""Plans of bins under trainers, two ranks: bins that are batches by themselves, and joined rows."""

from __future__ import annotations

from typing import Any

import pytest

import indexplan as ip
from tests.trainers.ranks import run_ranks
from tests.trainers.test_accelerate import ON_CPU

IMPORTED_BY_RANKS = ("accelerate", "lightning.pytorch", "transformers.trainer")

LENGTHS = [1 + i * 7 % 13 for i in range(104)]
ORDER = ip.LengthGrouped(LENGTHS, 8, num_buckets=3, seed=4)  # 13 bins, all full
PLANS = {
    name: ip.Plan(ORDER, batch_size=size, remainder=name)
    for name, size in (("drop", 1), ("pad", 1), ("carry", 1), ("spread", 3))
}


def accelerated() -> dict[str, Any]:
    """What Accelerate hands out, and what it gathers for metrics."""
    import torch
    from accelerate import Accelerator
    from torch.utils.data import default_collate

    from indexplan_torch import Bins, PlanLoader, join
    from indexplan_torch.accelerate import prepare

    accelerator = Accelerator()
    samples = torch.arange(104)

    def read(plan: ip.Plan, dataset: Any, **options: Any) -> list[Any]:
        batches, gathered = [], []
        for batch in prepare(accelerator, PlanLoader(dataset, plan, **options)):
            rows = batch["input_ids"] if isinstance(batch, dict) else batch
            batches.append(rows.tolist())
            if plan.batch_size == 1:  # all ranks have as many rows
                gathered += accelerator.gather_for_metrics(rows).flatten().tolist()
        return [batches, gathered]

    seen: dict[str, Any] = {}
    ones = Bins([torch.tensor([i]) for i in range(104)])
    for name, plan in PLANS.items():
        seen[f"{name}, batches"] = read(plan, samples, keep_bins=False)
        seen[f"{name}, rows"] = read(plan, ones, collate_fn=join)
        if name != "spread":
            seen[f"{name}, stacked"] = read(plan, Bins(samples, default_collate))
    accelerator.end_training()
    return seen


@pytest.fixture(scope="module")
def under_accelerate() -> list[Any]:
    """What two ranks saw."""
    return run_ranks("tests.trainers.test_bins_in_trainers:accelerated", 2, **ON_CPU)


@pytest.mark.parametrize("form", ["batches", "rows", "stacked"])
@pytest.mark.parametrize("name", list(PLANS))
def test_accelerate(under_accelerate: list[Any], name: str, form: str) -> None:
    """Each rank has its bins whole; of metrics, no row is left out that is not padding."""
    plan = PLANS[name].replace(world_size=2)
    rows = [
        sample
        for step in range(plan.steps(0).stop)
        for rank in range(2)
        for sample in plan.batch(0, step=step, rank=rank)
        .reshape(-1, 8)[: plan.units(0, step=step, rank=rank).num_valid if form != "rows" else None]
        .ravel()
        .tolist()
    ]
    for rank, result in enumerate(under_accelerate):
        if f"{name}, {form}" not in result:
            assert (name, form) == ("spread", "stacked")
            continue
        batches, gathered = result[f"{name}, {form}"]
        expected = [batch.tolist() for batch in plan.batches(0, rank=rank)]
        assert expected == ([unit for (unit,) in batches] if form == "stacked" else batches)
        if plan.batch_size == 1:
            assert rows == gathered
