"""A shuffle of blocks, and of the samples inside windows of blocks: block-shuffle-v1."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.orders.base import Int64, Order
from indexplan.orders.fields import NUM_SAMPLES, SEED, whole
from indexplan.orders.registry import register
from indexplan.seeds import BLOCKS, WINDOWS

WINDOW = "pass how many blocks are mixed together"


@register
@dataclass(frozen=True, eq=False)
class BlockShuffle(Order):
    """Every epoch reads all samples once, shuffled by blocks and then within windows of blocks.

    For datasets stored in shards of one size: it reads from only `window` blocks at a time. For
    shards of different sizes, or many nodes, see `ShardShuffle`.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset, 1 <= num_samples < 2**63.
    block_size : int
        Neighbouring samples in a block, such as those of a shard, 1 <= block_size < 2**63; the last
        block may hold fewer.
    window : int, default 1
        Number of blocks whose samples are shuffled together, 1 <= window < 2**63. A larger window
        mixes better, but keeps more blocks in use at a time.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If one of them is not an integer in its range.

    Examples
    --------
    >>> order = BlockShuffle(12, block_size=4, window=1, seed=1)
    >>> order.take(0, 0, 12) // 4  # the block of each sample: one block at a time
    array([1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0])
    """

    num_samples: int = field(metadata=NUM_SAMPLES)
    block_size: int = field(metadata=whole(1, 2**63, "pass the samples of a shard"))
    window: int = field(default=1, metadata=whole(1, 2**63, WINDOW))
    seed: int = field(default=0, metadata=SEED)

    algorithm = "block-shuffle-v1"
    ip_is_permutation = True

    def _keys(self, epoch: int, num_rounds: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        blocks = self._key_words(BLOCKS, epoch, 2 * num_rounds)
        return blocks, self._key_words(WINDOWS, epoch, 2)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        n, size = self.num_samples, self.block_size
        keys = self._keys(epoch, kernels.feistel.num_rounds(-(-n // size)))
        kernels.block_permutation.block_permute_runs(
            n, size, self.window, *keys, starts, stops, out
        )

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        n, size = self.num_samples, self.block_size
        keys = self._keys(epoch, kernels.feistel.num_rounds(-(-n // size)))
        out = np.empty(len(indices), np.int64)
        kernels.block_permutation.block_invert(n, size, self.window, *keys, indices, out)
        return np.arange(len(indices)), out
