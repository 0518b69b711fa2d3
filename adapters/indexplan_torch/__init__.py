"""Read a plan through PyTorch: loaders, samplers and datasets, for plain loops and trainers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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

from indexplan_torch.items import About, Piece
from indexplan_torch.loader import PlanLoader
from indexplan_torch.samplers import PlanBatchSampler, PlanSampler

if TYPE_CHECKING:
    from indexplan_fetch import open_array_record, open_parquet, open_tar
    from indexplan_torch.bins import Bins, join
    from indexplan_torch.sharded import ShardedDataset

__all__ = [
    "About",
    "Bins",
    "Piece",
    "PlanBatchSampler",
    "PlanLoader",
    "PlanSampler",
    "ShardedDataset",
    "join",
    "open_array_record",
    "open_parquet",
    "open_tar",
]

# A run needs few of these, and what fetches shards alone is as much as all that a PlanLoader needs.
_AT_FIRST_USE = {
    "Bins": "indexplan_torch.bins",
    "ShardedDataset": "indexplan_torch.sharded",
    "join": "indexplan_torch.bins",
    "open_array_record": "indexplan_fetch",
    "open_parquet": "indexplan_fetch",
    "open_tar": "indexplan_fetch",
}


def __getattr__(name: str) -> Any:
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'indexplan_torch' has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return __all__
