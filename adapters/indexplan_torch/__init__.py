"""Read a plan through PyTorch: loaders, samplers and datasets, for plain loops and trainers."""

from indexplan.errors import install

try:
    import torch  # noqa: F401 (checked first, to say what is missing)
except ModuleNotFoundError as error:
    if error.name != "torch":  # a broken torch explains itself best
        raise
    raise ModuleNotFoundError(
        f"indexplan_torch needs torch, which is not installed; {install('torch')}",
        name="torch",
    ) from error

from indexplan_fetch import open_parquet
from indexplan_torch.all_ranks import GlobalPlanBatchSampler
from indexplan_torch.attention import varlen
from indexplan_torch.bins import Bins, join
from indexplan_torch.items import Piece
from indexplan_torch.loader import PlanLoader
from indexplan_torch.on_device import OnDevice
from indexplan_torch.samplers import PlanBatchSampler, PlanSampler
from indexplan_torch.seeding import Seeded, seed_rank
from indexplan_torch.sharded import ShardedDataset

__all__ = [
    "Bins",
    "GlobalPlanBatchSampler",
    "OnDevice",
    "Piece",
    "PlanBatchSampler",
    "PlanLoader",
    "PlanSampler",
    "Seeded",
    "ShardedDataset",
    "join",
    "open_parquet",
    "seed_rank",
    "varlen",
]
