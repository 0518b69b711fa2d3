"""Bins of similar length, with as many samples as fit a budget of tokens: token-budget-v1."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from indexplan.errors import integer
from indexplan.orders.columns import Kept
from indexplan.orders.fields import SEED, whole
from indexplan.orders.registry import register
from indexplan.orders.strata import (
    LENGTHS,
    MAX_SAMPLES,
    NUM_BUCKETS,
    SIZE_STOP,
    Buckets,
    check_longest,
)

TOKENS = "pass how many tokens a bin may have, counted as the lengths are"


@register
@dataclass(frozen=True, eq=False)
class TokenBudget(Buckets):
    """Every epoch reads all samples once, in bins of similar length that fill a budget of tokens.

    For batches that all need about the same memory: padded to its longest sample, a bin has at most
    `max_tokens`, so it holds a few long samples or many short ones. The bins are shuffled over the
    epoch, and each epoch combines different samples; all epochs have the same number of bins. A
    plan's batch size counts bins.

    Parameters
    ----------
    lengths : Column, array_like of int or path
        The length of each sample, 1 <= length <= 2**40, in tokens or anything else that takes
        memory. If memory grows with the square, pass costs such as `length + length**2 // q`.
    max_tokens : int
        Most tokens in a bin, padding included: its longest length times its number of samples. At
        least the longest length of all, and below 2**63.
    max_samples : int, optional
        Most samples in a bin, 1 <= max_samples < 2**31.
    multiple_of : int, default 1
        Bins with more samples than this hold a multiple of it, except one bin in each epoch. At
        least 1 and at most max_samples.
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
    Samples are sorted by length and cut into buckets of whole bins. Each bin has as many samples as
    the longest in its bucket allows. Each epoch shuffles every bucket. This takes 4 bytes for each
    sample and 16 for each different length, computed at first use.

    Examples
    --------
    >>> order = TokenBudget([30, 5, 31, 4, 29, 6, 32], max_tokens=64, num_buckets=2)
    >>> samples, offsets = order.take(0, 0, 3), order.offsets(0, 0, 3)
    >>> [samples[a:b].tolist() for a, b in zip(offsets, offsets[1:])]  # 2 * 31, 3 * 6, 2 * 32
    [[3, 1, 5], [0, 6], [2, 4]]
    """

    lengths: Kept = field(metadata=LENGTHS)
    max_tokens: int = field(metadata=whole(1, 2**63, TOKENS))
    _: KW_ONLY
    max_samples: int | None = field(default=None, metadata=MAX_SAMPLES)
    multiple_of: int = 1
    num_buckets: int = field(default=64, metadata=NUM_BUCKETS)
    seed: int = field(default=0, metadata=SEED)

    algorithm = "token-budget-v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        cure = "raise it, or cut or leave out longer samples"
        check_longest("max_tokens", self.max_tokens, self.lengths, cure)
        stop = SIZE_STOP if self.max_samples is None else self.max_samples + 1
        cure = "leave it out for any number, or raise max_samples"
        vars(self)["multiple_of"] = integer("multiple_of", self.multiple_of, 1, stop, cure)

    def _size(self, longest: int) -> int:
        size = self.max_tokens // longest
        if self.max_samples is not None:
            size = min(size, self.max_samples)
        return size - size % self.multiple_of if size > self.multiple_of else size
