"""What packed-v1 packs, in plain Python: one sample at a time, with a look at every bin.

Written from the definition in docs/specification.md, not the kernels: too simple to be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

TAILS = (0, 1, 2, 5, 10, 20, 40, 100)
ENOUGH = 1000

Place = tuple[int, int]  # the number of a stratum, and a place in it


@dataclass
class Bin:
    """A bin: how much more it may hold, when that came to be, and what was put into it."""

    room: int
    since: int
    held: list[Place] = field(default_factory=list)


def strata(lengths: Sequence[int], least: int) -> list[list[int]]:
    """Return the samples of each stratum, from the longest, rising in each."""
    found: list[list[int]] = [[]]
    for length in sorted(set(lengths), reverse=True):
        if len(found[-1]) >= least:
            found.append([])
        found[-1] += [sample for sample, each in enumerate(lengths) if each == length]
    return [sorted(samples) for samples in found]


def packed(
    counted: Sequence[tuple[int, int]], max_length: int, max_samples: int | None, tail: int
) -> list[list[Place]]:
    """Return the bins of strata, each of a length and so many samples."""
    clock = count()
    total = sum(length * num for length, num in counted)
    bins = [Bin(max_length, next(clock)) for _ in range(-(-total // max_length))]
    left = total
    for stratum, (length, num) in enumerate(counted):
        emptiest_first = left > total * tail // 100
        for place in range(num):
            open_ = [each for each in bins if max_samples is None or len(each.held) < max_samples]
            fitting = [each for each in open_ if each.room >= length]
            if not fitting:
                fitting = [Bin(max_length, next(clock))]
                bins += fitting
            rooms = [each.room for each in fitting]
            room = max(rooms) if emptiest_first else min(rooms)
            alike = [each for each in fitting if each.room == room]
            bin_ = min(alike, key=lambda each: each.since)  # first in, first out
            bin_.held.append((stratum, place))
            bin_.room, bin_.since = room - length, next(clock)
            left -= length
    return [each.held for each in bins]


def template(
    lengths: Sequence[int], max_length: int, max_samples: int | None, least: int
) -> tuple[list[list[int]], list[list[Place]]]:
    """Return the strata, and the bins: which places of which strata each holds."""
    rows = strata(lengths, least)
    counted = [(max(lengths[sample] for sample in row), len(row)) for row in rows]
    tried = [packed(counted, max_length, max_samples, tail) for tail in TAILS]
    fewest = min(map(len, tried))
    few = [bins for bins in tried if (len(bins) - fewest) * ENOUGH <= fewest]
    return rows, min(few, key=lambda bins: sum(len(held) ** 2 for held in bins))
