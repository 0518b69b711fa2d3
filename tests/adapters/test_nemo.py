"""The batch sampler that NeMo AutoModel builds; tests/through/nemo_checks.py has AutoModel."""

from __future__ import annotations

import re
from typing import Any

import pytest

import indexplan as ip
from indexplan_torch.nemo import PlanBatchSamplerConfig


def built(config: PlanBatchSamplerConfig, world_size: int = 2, num: int = 10) -> list[list[Any]]:
    """Return the batches of all ranks' samplers, step by step."""
    given: dict[str, Any] = {"dataset_len": num, "world_size": world_size}
    ranks = [config.build(rank=rank, **given) for rank in range(world_size)]
    return [[*step] for step in zip(*ranks, strict=True)]


def test_a_shuffle_of_the_dataset_that_automodel_has_made() -> None:
    """It may be packed, so its length is known late; each micro-batch is full."""
    assert [[[9, 2], [7, 3]], [[6, 4], [1, 8]], [[5, 0], [9, 3]]] == built(
        PlanBatchSamplerConfig(batch_size=2, seed=1)
    )
    plan = PlanBatchSamplerConfig(batch_size=2, seed=1).build(dataset_len=10, rank=0, world_size=2)
    assert ip.Plan(ip.Shuffle(10, seed=1), batch_size=2, remainder="carry") == plan.run.plan


def test_an_order_and_a_remainder_may_be_given() -> None:
    """They are the plan's."""
    config = PlanBatchSamplerConfig(batch_size=3, order=ip.Sequential(10), remainder="drop")
    assert [[[0, 1, 2], [3, 4, 5]]] == built(config)


def test_an_order_of_another_dataset_is_refused() -> None:
    """When AutoModel builds its loader, before it trains."""
    message = (
        "order must be of 10 samples, as many as the dataset's; got 9; leave it out, or make it as "
        "long"
    )
    with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(message)}$"):
        built(PlanBatchSamplerConfig(batch_size=2, order=ip.Shuffle(9)))
