"""A full shuffle: shuffle-v1, a keyed bijection on [0, n)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexplan.orders.base import Int64, Order
from indexplan.orders.fields import NUM_SAMPLES, SEED
from indexplan.orders.registry import register
from indexplan.seeds import SHUFFLE

UInt32 = NDArray[np.uint32]


@register
@dataclass(frozen=True, eq=False)
class Shuffle(Order):
    """Every epoch reads all samples once, in a new random order that the seed determines.

    The usual choice for training. Nothing of the dataset's size is ever allocated, so 1e12 samples
    cost as little as a thousand; `DistributedSampler` does the same with a list of all indices.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset, 1 <= num_samples < 2**63.
    seed : int, default 0
        0 <= seed < 2**128. Each seed, and each epoch, gives an order unrelated to the others.

    Raises
    ------
    IndexPlanError
        If either is not an integer in its range.

    Notes
    -----
    shuffle-v1 is a generalised Feistel network on a near-square domain with cycle walking (Black
    and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002): each index costs the same
    few multiplications at any position.

    Examples
    --------
    >>> order = Shuffle(10, seed=7)
    >>> order.take(0, 0, 10), order.take(1, 0, 10)  # epochs 0 and 1
    (array([3, 2, 0, 9, 1, 8, 5, 4, 6, 7]), array([1, 6, 0, 5, 7, 3, 9, 8, 2, 4]))

    >>> order = Shuffle(1_000_000_000_000, seed=7)
    >>> positions = order.locate(0, [0, 999_999_999_999])
    >>> order.take(0, positions)
    array([           0, 999999999999])
    """

    num_samples: int = field(metadata=NUM_SAMPLES)
    seed: int = field(default=0, metadata=SEED)

    algorithm = "shuffle-v1"
    ip_is_permutation = True

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        self._shuffled(SHUFFLE, epoch, self.num_samples, starts, stops, out)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        places = self._unshuffled(SHUFFLE, epoch, self.num_samples, indices)
        return np.arange(len(indices)), places


def plain_shuffles(orders: Sequence[Order]) -> tuple[Int64, UInt32]:
    """Return the sizes and seeds of the orders that are shuffles, to draw from many at once.

    Returns
    -------
    sizes : numpy.ndarray
        int64, shape (k,); 0 for other orders, and for subclasses that read something else.
    seeds : numpy.ndarray
        uint32, shape (k, 4), the lowest word first.
    """
    pairs = [
        (each.num_samples, each.seed)
        if isinstance(each, Shuffle) and type(each).fill is Shuffle.fill
        else (0, 0)
        for each in orders
    ]
    words = b"".join(seed.to_bytes(16, "little") for _, seed in pairs)
    return np.array([n for n, _ in pairs], np.int64), np.frombuffer(words, "<u4").reshape(-1, 4)
