"""A shuffle within windows, in the dataset's order: local-shuffle-v1."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from indexplan import kernels
from indexplan.orders.base import Int64, Order
from indexplan.orders.fields import NUM_SAMPLES, SEED, whole
from indexplan.orders.registry import register
from indexplan.seeds import LOCAL


@register
@dataclass(frozen=True, eq=False)
class LocalShuffle(Order):
    """Every epoch reads the dataset from start to end, shuffled only within windows of neighbours.

    For curricula, over samples sorted by difficulty (`Subset(LocalShuffle(n, 1000), by_difficulty,
    n)`); for time series; and to keep the reads of a sample apart: from one epoch to the next, they
    are at least num_samples - window + 1 reads apart.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset, 1 <= num_samples < 2**63.
    window : int
        Number of neighbours to shuffle together, 1 <= window < 2**63; the last window may hold
        fewer.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If one of them is not an integer in its range.

    Notes
    -----
    Positions [v * window, (v + 1) * window) hold the samples with the same numbers, permuted by the
    network of shuffle-v1 with keys that Philox4x32-10 derives from v.

    Examples
    --------
    >>> order = LocalShuffle(12, window=4, seed=3)
    >>> order.take(0, 0, 12)
    array([ 2,  3,  0,  1,  5,  6,  4,  7, 10,  8, 11,  9])
    """

    num_samples: int = field(metadata=NUM_SAMPLES)
    window: int = field(metadata=whole(1, 2**63, "pass how many are shuffled together"))
    seed: int = field(default=0, metadata=SEED)

    algorithm = "local-shuffle-v1"
    ip_is_permutation = True

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        key = self._key_words(LOCAL, epoch, 2)
        kernels.local_permutation.local_permute_runs(
            self.num_samples, self.window, key, starts, stops, out
        )

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        out = np.empty(len(indices), np.int64)
        key = self._key_words(LOCAL, epoch, 2)
        kernels.local_permutation.local_invert(self.num_samples, self.window, key, indices, out)
        return np.arange(len(indices)), out
