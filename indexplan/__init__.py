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
    Traits,
    register,
)
from indexplan.partition.account import Account
from indexplan.partition.phases import Phase, parse_schedule
from indexplan.partition.remainders import Remainder
from indexplan.plan import Balance, Location, Plan
from indexplan.plan.cursor import Cursor
from indexplan.seeds import worker_seed
from indexplan.version import __version__

if TYPE_CHECKING:
    from indexplan import plot, testing
    from indexplan.dataset import Dataset
    from indexplan.files.build import Saved, finish, save
    from indexplan.files.exporting import Exported, export
    from indexplan.files.read import Stored, load
    from indexplan.orders.class_balanced import ClassBalanced
    from indexplan.orders.class_batches import ClassBatches
    from indexplan.orders.curricula import curriculum
    from indexplan.orders.cutting import Pieces, pieces
    from indexplan.orders.document_windows import DocumentWindows
    from indexplan.orders.epochs import Epochs
    from indexplan.orders.grouped import Grouped
    from indexplan.orders.length_grouped import LengthGrouped
    from indexplan.orders.local_shuffle import LocalShuffle
    from indexplan.orders.mixture import Mixture
    from indexplan.orders.packed import Packed
    from indexplan.orders.rare_categories import repeat_factors
    from indexplan.orders.repeat import Repeat
    from indexplan.orders.shard_shuffle import ShardShuffle
    from indexplan.orders.split import Part, Split, folds
    from indexplan.orders.subset import Subset
    from indexplan.orders.token_budget import TokenBudget
    from indexplan.orders.token_windows import TokenWindows
    from indexplan.orders.weighted import Weighted
    from indexplan.plan.downloads import Traffic, traffic
    from indexplan.plan.shard_reads import Reads, reads
    from indexplan.plan.shares_drawn import Draws, draws
    from indexplan.progress import ProgressBar
    from indexplan.reports.benchmark.measuring import bench
    from indexplan.reports.benchmark.rows import Bench
    from indexplan.reports.difference import Difference, diff
    from indexplan.reports.explanation import Reading, explain
    from indexplan.reports.verification import Check, Report, verify
    from indexplan.reports.warmth import Warmth, warm_up
    from indexplan.shards.shards import Shards
    from indexplan.shards.sizes import shard_sizes

__all__ = [
    "Account",
    "Balance",
    "Bench",
    "BlockShuffle",
    "Check",
    "ClassBalanced",
    "ClassBatches",
    "Column",
    "Cursor",
    "Dataset",
    "Difference",
    "DocumentWindows",
    "Draws",
    "Epochs",
    "Exported",
    "Grouped",
    "IndexPlanError",
    "LengthGrouped",
    "LocalShuffle",
    "Location",
    "Mixture",
    "Order",
    "Packed",
    "Part",
    "Phase",
    "Pieces",
    "Plan",
    "PlanFileError",
    "ProgressBar",
    "Reading",
    "Reads",
    "Remainder",
    "Repeat",
    "Report",
    "Saved",
    "Sequential",
    "ShardShuffle",
    "Shards",
    "Shuffle",
    "Split",
    "Stored",
    "Subset",
    "TokenBudget",
    "TokenWindows",
    "Traffic",
    "Traits",
    "Warmth",
    "Weighted",
    "__version__",
    "bench",
    "curriculum",
    "diff",
    "draws",
    "explain",
    "export",
    "finish",
    "folds",
    "load",
    "parse_schedule",
    "pieces",
    "plot",
    "reads",
    "register",
    "repeat_factors",
    "save",
    "shard_sizes",
    "testing",
    "traffic",
    "verify",
    "warm_up",
    "worker_seed",
]

# What touches files is imported at first use: it brings in a third of the standard library. So are
# most orders: a run needs one or two of them, and imports no others.
_AT_FIRST_USE = {
    **dict.fromkeys(("Check", "Report", "verify"), "indexplan.reports.verification"),
    **dict.fromkeys(("Saved", "finish", "save"), "indexplan.files.build"),
    **dict.fromkeys(("Stored", "load"), "indexplan.files.read"),
    **dict.fromkeys(("Difference", "diff"), "indexplan.reports.difference"),
    **dict.fromkeys(("Draws", "draws"), "indexplan.plan.shares_drawn"),
    **dict.fromkeys(("Reading", "explain"), "indexplan.reports.explanation"),
    **dict.fromkeys(("Reads", "reads"), "indexplan.plan.shard_reads"),
    **dict.fromkeys(("Traffic", "traffic"), "indexplan.plan.downloads"),
    "Bench": "indexplan.reports.benchmark.rows",
    "bench": "indexplan.reports.benchmark.measuring",
    **dict.fromkeys(("Warmth", "warm_up"), "indexplan.reports.warmth"),
    "Dataset": "indexplan.dataset",
    "ProgressBar": "indexplan.progress",
    "Shards": "indexplan.shards.shards",
    "shard_sizes": "indexplan.shards.sizes",
    **dict.fromkeys(("Exported", "export"), "indexplan.files.exporting"),
    "ClassBalanced": "indexplan.orders.class_balanced",
    "ClassBatches": "indexplan.orders.class_batches",
    "Epochs": "indexplan.orders.epochs",
    "curriculum": "indexplan.orders.curricula",
    "DocumentWindows": "indexplan.orders.document_windows",
    "Mixture": "indexplan.orders.mixture",
    "Grouped": "indexplan.orders.grouped",
    "LengthGrouped": "indexplan.orders.length_grouped",
    "LocalShuffle": "indexplan.orders.local_shuffle",
    "Packed": "indexplan.orders.packed",
    **dict.fromkeys(("Pieces", "pieces"), "indexplan.orders.cutting"),
    "Repeat": "indexplan.orders.repeat",
    "ShardShuffle": "indexplan.orders.shard_shuffle",
    "Subset": "indexplan.orders.subset",
    "TokenBudget": "indexplan.orders.token_budget",
    "TokenWindows": "indexplan.orders.token_windows",
    "Weighted": "indexplan.orders.weighted",
    "repeat_factors": "indexplan.orders.rare_categories",
    **dict.fromkeys(("Part", "Split", "folds"), "indexplan.orders.split"),
}


def __getattr__(name: str) -> Any:
    if name in ("plot", "testing"):  # packages, which importing makes attributes
        return import_module(f"indexplan.{name}")
    if name not in _AT_FIRST_USE:
        raise AttributeError(f"module 'indexplan' has no attribute {name!r}")
    return getattr(import_module(_AT_FIRST_USE[name]), name)


def __dir__() -> list[str]:
    return __all__
