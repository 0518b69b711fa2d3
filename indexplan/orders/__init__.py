"""Orders: (epoch, position) -> index."""

from indexplan.orders.base import Order, order_from_dict, register
from indexplan.orders.block_shuffle import BlockShuffle
from indexplan.orders.sequential import Sequential
from indexplan.orders.shuffle import Shuffle

__all__ = ["BlockShuffle", "Order", "Sequential", "Shuffle", "order_from_dict", "register"]
