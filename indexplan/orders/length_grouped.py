"""Bins of samples of similar length: length-grouped-v1."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from indexplan.orders.columns import Kept
from indexplan.orders.fields import SEED, whole
from indexplan.orders.registry import register
from indexplan.orders.strata import (
    LENGTHS,
    NUM_BUCKETS,
    SIZE_STOP,
    Buckets,
)


@register
@dataclass(frozen=True, eq=False)
class LengthGrouped(Buckets):
    """Every epoch reads all samples once, in bins of a fixed number of samples of similar length.

    For batches with little padding. The bins are shuffled over the epoch, and each epoch combines
    different samples. A plan's batch size counts bins: `Plan(order, batch_size=1)` gives each rank
    one bin per step, which a loader with `keep_bins=False` collates like any batch.

    Parameters
    ----------
    lengths : Column, array_like of int or path
        The length of each sample, 1 <= length <= 2**40, in tokens, frames or any other unit.
    batch_size : int
        Number of samples in a bin, 1 <= batch_size < 2**31. One bin of each epoch may have fewer.
    num_buckets : int, default 64
        Number of intervals to divide the lengths into, 1 <= num_buckets <= 65,536; a bin holds
        samples from one interval. With more, there is less padding, but fewer samples can share a
        bin.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range; for lengths, the message names the first sample that is wrong.

    Notes
    -----
    Samples are sorted by length, and cut into buckets of whole bins where padding is least. Each
    epoch shuffles every bucket. This takes 4 bytes for each sample and 16 for each different
    length, computed at first use.

    Examples
    --------
    >>> order = LengthGrouped([30, 5, 31, 4, 29, 6, 32], batch_size=2, num_buckets=2)
    >>> samples, offsets = order.take(0, 0, 4), order.offsets(0, 0, 4)
    >>> [samples[a:b].tolist() for a, b in zip(offsets, offsets[1:])]  # 31 and 29 tokens, 5, ...
    [[3, 1], [0, 6], [2, 4], [5]]
    """

    lengths: Kept = field(metadata=LENGTHS)
    batch_size: int = field(metadata=whole(1, SIZE_STOP, "pass how many samples a bin has"))
    _: KW_ONLY
    num_buckets: int = field(default=64, metadata=NUM_BUCKETS)
    seed: int = field(default=0, metadata=SEED)

    algorithm = "length-grouped-v1"

    @property
    def ip_bin_size(self) -> int:
        return self.batch_size

    def _size(self, longest: int) -> int:
        return self.batch_size
