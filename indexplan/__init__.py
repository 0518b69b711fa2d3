"""Which dataset index does rank r read at step t of epoch e?"""

from indexplan.accounting import Account
from indexplan.cursor import Cursor
from indexplan.errors import IndexPlanError, PlanFileError
from indexplan.orders import BlockShuffle, Order, Sequential, Shuffle, register
from indexplan.plan import Location, Plan
from indexplan.schedule import Phase, parse_schedule

__version__ = "0.1.0"

__all__ = [
    "Account",
    "BlockShuffle",
    "Cursor",
    "IndexPlanError",
    "Location",
    "Order",
    "Phase",
    "Plan",
    "PlanFileError",
    "Sequential",
    "Shuffle",
    "parse_schedule",
    "register",
]
