"""What orders of strata deal, in plain Python integers, one sample at a time.

Written from the definitions in docs/specification.md, not the kernels: too simple to be wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from tests.support import oracles

BINS, STRATA = 14, 15  # purposes of key words


def edges(lengths: Sequence[int], num_buckets: int) -> list[int]:
    """Return how many samples, from the longest, each wished bucket and those before it hold."""
    present = sorted(set(lengths), reverse=True)
    gaps = [one - other for one, other in pairwise([*present, present[-1] - 1])]
    counts = [lengths.count(length) for length in present]
    parts = [math.isqrt(h * gap * 2**32) for h, gap in zip(counts, gaps, strict=True)]
    total, found = sum(parts), []
    for k in range(1, num_buckets + 1):
        running = held = 0
        for part, count in zip(parts, counts, strict=True):
            running += part
            held += count
            if running * num_buckets >= k * total:
                break
        found.append(held)
    return found


def buckets(
    lengths: Sequence[int], num_buckets: int, size_of: Callable[[int], int]
) -> list[tuple[list[int], int]]:
    """Return the samples of each bucket, from the longest, and of how many its bins are."""
    row = sorted(range(len(lengths)), key=lambda sample: (-lengths[sample], sample))
    found, start = [], 0
    for edge in edges(lengths, num_buckets):
        size, stop = 0, start
        while stop < edge:  # whole bins
            size = size_of(lengths[row[start]])
            stop += size
        if stop > start:
            found.append((row[start:stop], size))
            start = min(stop, len(row))
    return found


def length_grouped(
    lengths: Sequence[int], batch_size: int, num_buckets: int
) -> list[tuple[list[int], int]]:
    """Return the strata of length-grouped-v1."""
    return buckets(lengths, num_buckets, lambda _: batch_size)


def token_budget(
    lengths: Sequence[int],
    max_tokens: int,
    max_samples: int | None,
    multiple_of: int,
    num_buckets: int,
) -> list[tuple[list[int], int]]:
    """Return the strata of token-budget-v1."""

    def size_of(longest: int) -> int:
        size = 1
        while (size + 1) * longest <= max_tokens and (max_samples is None or size < max_samples):
            size += 1
        while size > multiple_of and size % multiple_of:
            size -= 1
        return size

    return buckets(lengths, num_buckets, size_of)


def grouped(groups: Sequence[int], sizes: Mapping[int, int]) -> list[tuple[list[int], int]]:
    """Return the strata of grouped-v1."""
    return [
        ([sample for sample, each in enumerate(groups) if each == group], sizes[group])
        for group in sorted(set(groups))
    ]


def epoch_of(strata: list[tuple[list[int], int]], seed: int, epoch: int) -> list[list[int]]:
    """Return the bins of an epoch, in the order in which they are dealt."""
    bins = []
    for c, (row, size) in enumerate(strata):
        places = [(c, place) for place in range(len(row))]
        bins += [places[start : start + size] for start in range(0, len(row), size)]
    return dealt([row for row, _ in strata], bins, seed, epoch)


def dealt(
    rows: list[list[int]], bins: list[list[tuple[int, int]]], seed: int, epoch: int
) -> list[list[int]]:
    """Return the bins of an epoch, each of places (c, place) of strata that are shuffled."""
    n = sum(map(len, rows))
    key, there = oracles.key_words(seed, STRATA, epoch, 2, n), []
    for c, row in enumerate(rows):
        words = oracles.drawn_words(len(row), c, 0, 0, key)
        there.append([row[oracles.forward(len(row), words, place)] for place in range(len(row))])
    words = oracles.key_words(seed, BINS, epoch, 2 * oracles.rounds_of(len(bins)), n)
    order = [bins[oracles.forward(len(bins), words, at)] for at in range(len(bins))]
    return [[there[c][place] for c, place in held] for held in order]
