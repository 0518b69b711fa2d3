"""Errors of what NeMo AutoModel builds its loader from."""

from __future__ import annotations

import indexplan as ip
from indexplan_torch.nemo import PlanBatchSamplerConfig
from tests.errors.catalogue.made import Case

GIVEN = {"dataset_len": 10, "rank": 0, "world_size": 2}

CASES: list[Case] = [
    (
        "an order of another dataset in AutoModel's config",
        lambda: PlanBatchSamplerConfig(batch_size=2, order=ip.Shuffle(9)).build(**GIVEN),
    ),
]
