"""Which dataset index does rank r read at step t of epoch e?"""

from indexplan.accounting import Account
from indexplan.checks import Check, Report, verify
from indexplan.cursor import Cursor
from indexplan.dataset import Dataset
from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.files.build import Saved, save
from indexplan.files.read import Stored, load
from indexplan.orders import BlockShuffle, Order, Sequential, Shuffle, register
from indexplan.plan import Location, Plan
from indexplan.schedule import Phase, parse_schedule
from indexplan.seeds import worker_seed
from indexplan.version import __version__

__all__ = [
    "Account",
    "BlockShuffle",
    "Check",
    "Cursor",
    "Dataset",
    "IndexPlanError",
    "Location",
    "Order",
    "Phase",
    "Plan",
    "PlanFileError",
    "Report",
    "Saved",
    "Sequential",
    "Shuffle",
    "Stored",
    "__version__",
    "load",
    "parse_schedule",
    "register",
    "save",
    "verify",
    "worker_seed",
]
