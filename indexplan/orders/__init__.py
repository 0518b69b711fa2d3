"""Orders: (epoch, position) -> index."""

from indexplan.orders.base import Order, Traits
from indexplan.orders.block_shuffle import BlockShuffle
from indexplan.orders.columns import Column
from indexplan.orders.epochs import Epochs
from indexplan.orders.registry import order_from_dict, register
from indexplan.orders.repeat import Repeat
from indexplan.orders.sequential import Sequential
from indexplan.orders.shuffle import Shuffle
from indexplan.orders.split import Part, Split, folds
from indexplan.orders.subset import Subset

__all__ = [
    "BlockShuffle",
    "Column",
    "Epochs",
    "Order",
    "Part",
    "Repeat",
    "Sequential",
    "Shuffle",
    "Split",
    "Subset",
    "Traits",
    "folds",
    "order_from_dict",
    "register",
]
