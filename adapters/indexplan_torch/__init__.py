"""Plans as torch samplers: streamed into DataLoaders, and kept whole under every trainer."""

from indexplan_torch.loader import PlanLoader
from indexplan_torch.ranks import discover
from indexplan_torch.samplers import (
    GlobalPlanBatchSampler,
    PlanBatchSampler,
    PlanSampler,
    PlanView,
)
from indexplan_torch.seeding import Seeded, SeedWorker, recorded, seed_rank

__all__ = [
    "GlobalPlanBatchSampler",
    "PlanBatchSampler",
    "PlanLoader",
    "PlanSampler",
    "PlanView",
    "SeedWorker",
    "Seeded",
    "discover",
    "recorded",
    "seed_rank",
]
