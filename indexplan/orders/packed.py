"""Bins of samples whose lengths add up to at most a bound: packed-v1."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from operator import mul
from typing import TypeAlias

import numpy as np

from indexplan import kernels
from indexplan.errors import invalid
from indexplan.once import latest
from indexplan.orders.base import Int64
from indexplan.orders.columns import Column, Kept
from indexplan.orders.fields import SEED, whole
from indexplan.orders.registry import register
from indexplan.orders.strata import (
    LENGTHS,
    MAX_SAMPLES,
    MOST_SAMPLES,
    SIZE_STOP,
    ByLength,
    Template,
    UInt32,
    check_longest,
    exact_sum,
)

# Percentages of all tokens, from the shortest samples, to set aside for filling the room that the
# others leave. Each is tried. Among those with at most one bin in ENOUGH more than the best, the
# one wins whose bins differ least in their number of samples. They were compared on real lengths.
TAILS = (0, 1, 2, 5, 10, 20, 40, 100)
ENOUGH = 1000

Made: TypeAlias = tuple[UInt32, Int64]  # moves and groups, as the kernel returns them

CUT = "np.minimum(lengths, max_length), where the dataset cuts them, or pieces (docs/lengths.md)"


@register
@dataclass(frozen=True, eq=False)
class Packed(ByLength):
    """Every epoch reads all samples once, packed into bins of up to `max_length` tokens.

    For fine-tuning on rows that hold several texts each. Bins are nearly full, and each mixes long
    and short samples, unlike those of packers that fill one bin after another. They are shuffled
    over the epoch, and each epoch combines different samples; all epochs have the same number of
    bins. A plan's batch size counts bins.

    Parameters
    ----------
    lengths : Column, array_like of int or path
        The length of each sample in tokens, 1 <= length <= 2**40; their sum is below 2**63.
    max_length : int
        Most tokens in a bin; at least the longest length, and below 2**63.
    max_samples : int, optional
        Most samples in a bin, 1 <= max_samples < 2**31; by default 2**31 - 1.
    min_stratum : int, default 1
        At least this many samples of similar length are interchangeable, 1 <= min_stratum <= 2**32.
        With a larger number, a sample shares its bin with more different ones over the epochs. But
        bins are less full, because interchangeable samples all count as long as the longest.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range; for lengths, the message names the first sample that is wrong.

    Notes
    -----
    The lengths that share a bin are computed at first use, and are the same in all epochs. The
    samples of these lengths are shuffled. Inside a bin, the longest come first. This takes 4 bytes
    a sample, and more if there are few samples or many different lengths.

    Examples
    --------
    >>> order = Packed([30, 5, 31, 4, 29, 6, 32], max_length=64)
    >>> samples, offsets = order.take(0, 0, 3), order.offsets(0, 0, 3)
    >>> [samples[a:b].tolist() for a, b in zip(offsets, offsets[1:])]  # 31 + 6 + 4 tokens, ...
    [[0, 4], [6, 1], [2, 5, 3]]
    """

    lengths: Kept = field(metadata=LENGTHS)
    max_length: int = field(metadata=whole(1, 2**63, "pass how many tokens a bin may have"))
    _: KW_ONLY
    max_samples: int | None = field(default=None, metadata=MAX_SAMPLES)
    min_stratum: int = field(default=1, metadata=whole(1, MOST_SAMPLES + 1, "leave it out for 1"))
    seed: int = field(default=0, metadata=SEED)

    algorithm = "packed-v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_longest("max_length", self.max_length, self.lengths, f"use {CUT}")
        _check_sum(exact_sum(self.lengths.array))

    def _made(self, rows: UInt32, keys: Int64, places: Int64) -> Template:
        runs = _closed(places, self.min_stratum)
        firsts, lengths = places[runs], self._longest - keys[runs[:-1]]
        for c in np.flatnonzero(np.diff(runs) > 1):  # strata of several lengths
            rows[firsts[c] : firsts[c + 1]].sort()
        total = sum(map(mul, lengths.tolist(), np.diff(firsts).tolist()))
        _check_sum(total)
        most = SIZE_STOP - 1 if self.max_samples is None else self.max_samples
        given = firsts, lengths, self.max_length, most, total
        moves, groups = _best(lambda tail: kernels.packing.packed(*given, total * tail // 100))
        lasts = np.flatnonzero(groups[:, kernels.packing.COUNT])
        lasts = lasts[np.argsort(groups[lasts, kernels.packing.FIRST])]
        bins = np.append(
            groups[lasts, kernels.packing.FIRST], groups[:, kernels.packing.COUNT].sum()
        )
        sizes = groups[lasts, kernels.packing.SIZE]
        return Template(rows, keys[runs[1:] - 1], firsts, firsts, moves, bins, lasts, sizes)

    def ip_costs(
        self,
        epoch: int,
        starts: Int64,
        stops: Int64,
        lengths: Column,
        cost: Callable[[Int64], Int64],
    ) -> Int64:
        # if each stratum has a single length, all bins of a pattern cost the same
        alike = self.min_stratum == 1 and lengths == self.lengths
        if not alike or self._most_cost(cost) >= 2**63:  # then the sums are checked one by one
            return super().ip_costs(epoch, starts, stops, lengths, cost)
        of_patterns = self._costs_of_patterns(cost)
        numbers, _ = self._bins_at(epoch, starts, stops)
        return of_patterns[np.searchsorted(self._template.bins, numbers, "right") - 1]

    def _most_cost(self, cost: Callable[[Int64], Int64]) -> int:
        """Return an upper bound of the cost of any bin."""
        return int(self._template.sizes.max()) * int(cost(np.array([self._longest]))[0])

    @latest(1)
    def _costs_of_patterns(self, cost: Callable[[Int64], Int64]) -> Int64:
        """Return what a bin of each pattern costs, from the lengths in the pattern."""
        t = self._template
        _, strata, _, many, before = t.moves.astype(np.int64).T
        each, move = cost(self._longest - t.keys), t.lasts
        costs = np.zeros(len(move), np.int64)
        while move.any():  # row 0 stands for no move
            costs += each[strata[move]] * many[move]
            move = before[move]
        return costs


def _closed(places: Int64, least: int) -> Int64:
    """Return which of the runs that begin at these places begin a stratum, and where the last ends.

    A stratum consists of as many consecutive runs as hold at least `least` samples; the last one of
    what is left.
    """
    if least == 1:
        return np.arange(len(places))
    starts, at = places.tolist(), [0]
    while at[-1] < len(starts) - 1:
        at.append(min(bisect_left(starts, starts[at[-1]] + least), len(starts) - 1))
    return np.array(at)


def _best(pack: Callable[[int], Made]) -> Made:
    """Return the packing whose bins are most alike among those with nearly the fewest bins."""
    found: list[tuple[int, int]] = []
    for tail in TAILS:
        made = pack(tail)
        counts, sizes = made[1][:, kernels.packing.COUNT], made[1][:, kernels.packing.SIZE]
        found.append((int(counts.sum()), int((counts * sizes * sizes).sum())))  # below 2**63
        fewest = min(num for num, _ in found)
        few = [i for i, (num, _) in enumerate(found) if num <= fewest + fewest // ENOUGH]
        best = min(few, key=lambda i: found[i][1])
        if best == len(found) - 1:
            kept, kept_as = made, best
    return kept if kept_as == best else pack(TAILS[best])


def _check_sum(total: int) -> None:
    if total >= 2**63:
        what = "the sum of lengths, each as the longest of its stratum,"
        raise invalid(what, "below 2**63", total, "count in larger units")
