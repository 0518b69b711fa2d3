"""Orders: (epoch, position) -> index. Those not named here are imported at their first use."""

from indexplan.orders.base import Order
from indexplan.orders.block_shuffle import BlockShuffle
from indexplan.orders.columns import Column
from indexplan.orders.registry import order_from_dict, register
from indexplan.orders.sequential import Sequential
from indexplan.orders.shuffle import Shuffle
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand

__all__ = [
    "BlockShuffle",
    "Column",
    "Order",
    "Sequential",
    "Shuffle",
    "Traits",
    "Units",
    "expand",
    "order_from_dict",
    "register",
]
