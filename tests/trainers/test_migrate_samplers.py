"""What the pages on coming from other samplers say, where it takes ranks or time to show."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, DistributedSampler, WeightedRandomSampler

import indexplan as ip
from tests.trainers.ranks import run_ranks


def right_and_counted() -> dict[str, list[int]]:
    """Answers that are right, and all answers, of ten samples: summed over the ranks of a group."""
    import torch.distributed as dist

    from indexplan_torch import PlanLoader

    dist.init_process_group("gloo")
    dataset = torch.arange(10)
    sampler: Any = DistributedSampler(dataset, shuffle=False)
    loaders = {
        "sampler": DataLoader(dataset, batch_size=2, sampler=sampler),
        "plan": PlanLoader(dataset, ip.Plan(ip.Sequential(10), batch_size=2)),
    }
    seen = {}
    for name, loader in loaders.items():
        metric = torch.zeros(2, dtype=torch.int64)
        for batch in loader:
            metric += torch.tensor([(batch == 0).sum(), len(batch)])  # a model that knows sample 0
        dist.all_reduce(metric)
        seen[name] = metric.tolist()
    dist.barrier()
    dist.destroy_process_group()
    return seen


def test_evaluation_counts_repeated_samples_twice() -> None:
    """Four ranks evaluate ten samples: DistributedSampler's metric has samples 0 and 1 twice."""
    for seen in run_ranks(f"{__name__}:right_and_counted", 4):
        assert {"sampler": [2, 12], "plan": [1, 10]} == seen


def test_weighted_random_sampler_ends_at_2_to_the_24() -> None:
    """WeightedRandomSampler draws from at most 2**24 weights; Weighted from more."""
    weights = np.ones(2**24 + 1)
    with pytest.raises(RuntimeError, match=r"number of categories cannot exceed 2\^24"):
        next(iter(WeightedRandomSampler(weights, 1)))  # type: ignore[arg-type]
    order = ip.Weighted(weights)
    assert 2**24 + 1 == order.epoch_size
    assert [1, 1] == order.count(0, [0, 2**24]).tolist()
