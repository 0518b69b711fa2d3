"""Which dataset index does rank r read at step t of epoch e?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.orders import (
    BlockShuffle,
    Column,
    Order,
    Sequential,
    Shuffle,
    register,
)
from indexplan.partition.phases import Phase
from indexplan.plan import Balance, Plan
from indexplan.plan.cursor import Cursor
from indexplan.seeds import worker_seed
from indexplan.version import __version__

if TYPE_CHECKING:
    from indexplan import plot, testing, types
    from indexplan.files.exporting import export
    from indexplan.files.read import load
    from indexplan.files.saving import save
    from indexplan.ledger.ledger import Ledger
    from indexplan.orders.batched import Batched, Flat
    from indexplan.orders.class_balanced import ClassBalanced
    from indexplan.orders.class_batches import ClassBatches
    from indexplan.orders.distinct import Distinct
    from indexplan.orders.document_windows import DocumentWindows
    from indexplan.orders.epochs import Epochs
    from indexplan.orders.grouped import Grouped
    from indexplan.orders.layers import Layer
    from indexplan.orders.length_grouped import LengthGrouped
    from indexplan.orders.local_shuffle import LocalShuffle
    from indexplan.orders.mixture import Mixture
    from indexplan.orders.packed import Packed
    from indexplan.orders.repeat import Repeat
    from indexplan.orders.shard_shuffle import ShardShuffle
    from indexplan.orders.split import Split
    from indexplan.orders.subset import Subset
    from indexplan.orders.token_budget import TokenBudget
    from indexplan.orders.token_windows import TokenWindows
    from indexplan.orders.weighted import Weighted
    from indexplan.orders.without import Without
    from indexplan.plan.pulling import stream
    from indexplan.reports.difference import diff
    from indexplan.reports.explanation import explain
    from indexplan.reports.shares_drawn import draws
    from indexplan.reports.verification import verify
    from indexplan.shards.counting import shard_sizes
    from indexplan.shards.dataset import Dataset
    from indexplan.shards.downloads import traffic
    from indexplan.shards.shard_reads import reads
    from indexplan.shards.shards import Shards

__all__ = [
    "Balance",
    "Batched",
    "BlockShuffle",
    "ClassBalanced",
    "ClassBatches",
    "Column",
    "Cursor",
    "Dataset",
    "Distinct",
    "DocumentWindows",
    "Epochs",
    "Flat",
    "Grouped",
    "IndexPlanError",
    "Layer",
    "Ledger",
    "LengthGrouped",
    "LocalShuffle",
    "Mixture",
    "Order",
    "Packed",
    "Phase",
    "Plan",
    "PlanFileError",
    "Repeat",
    "Sequential",
    "ShardShuffle",
    "Shards",
    "Shuffle",
    "Split",
    "Subset",
    "TokenBudget",
    "TokenWindows",
    "Weighted",
    "Without",
    "__version__",
    "diff",
    "draws",
    "explain",
    "export",
    "load",
    "plot",
    "reads",
    "register",
    "save",
    "shard_sizes",
    "stream",
    "testing",
    "traffic",
    "types",
    "verify",
    "worker_seed",
]

# Modules that touch files are imported at first use, because they import a third of the standard
# library. So are most orders: a run needs one or two of them.
_AT_FIRST_USE = {
    "verify": "indexplan.reports.verification",
    "save": "indexplan.files.saving",
    "load": "indexplan.files.read",
    "Ledger": "indexplan.ledger.ledger",
    "diff": "indexplan.reports.difference",
    "draws": "indexplan.reports.shares_drawn",
    "explain": "indexplan.reports.explanation",
    "reads": "indexplan.shards.shard_reads",
    "traffic": "indexplan.shards.downloads",
    "Dataset": "indexplan.shards.dataset",
    "Shards": "indexplan.shards.shards",
    "shard_sizes": "indexplan.shards.counting",
    "export": "indexplan.files.exporting",
    "Batched": "indexplan.orders.batched",
    "ClassBalanced": "indexplan.orders.class_balanced",
    "ClassBatches": "indexplan.orders.class_batches",
    "Epochs": "indexplan.orders.epochs",
    "Distinct": "indexplan.orders.distinct",
    "DocumentWindows": "indexplan.orders.document_windows",
    "Flat": "indexplan.orders.batched",
    "Mixture": "indexplan.orders.mixture",
    "Grouped": "indexplan.orders.grouped",
    "Layer": "indexplan.orders.layers",
    "LengthGrouped": "indexplan.orders.length_grouped",
    "LocalShuffle": "indexplan.orders.local_shuffle",
    "Packed": "indexplan.orders.packed",
    "Repeat": "indexplan.orders.repeat",
    "ShardShuffle": "indexplan.orders.shard_shuffle",
    "Subset": "indexplan.orders.subset",
    "TokenBudget": "indexplan.orders.token_budget",
    "TokenWindows": "indexplan.orders.token_windows",
    "Weighted": "indexplan.orders.weighted",
    "Without": "indexplan.orders.without",
    "Split": "indexplan.orders.split",
    "stream": "indexplan.plan.pulling",
}


def __getattr__(name: str) -> Any:
    if name in ("plot", "testing", "types"):  # modules, which importing makes attributes
        return import_module(f"indexplan.{name}")
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'indexplan' has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return __all__
