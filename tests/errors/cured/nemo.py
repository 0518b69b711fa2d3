"""The cure of what NeMo AutoModel builds its loader from, followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from indexplan_torch.nemo import PlanBatchSamplerConfig
from tests.errors.catalogue.nemo import GIVEN

CURED: dict[str, Callable[[], Any]] = {
    "an order of another dataset in AutoModel's config": lambda: [
        list(PlanBatchSamplerConfig(batch_size=2, **order).build(**GIVEN))
        for order in ({}, {"order": ip.Shuffle(10)})
    ],
}
