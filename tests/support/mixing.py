"""What a mixture reads, in plain Python: the words of docs/design.md, too simple to be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tests.support.oracles import key_words, philox

MIXTURE = 6  # purpose of key words

Phases = Sequence[tuple[int, Sequence[int]]]


def even(shares: Sequence[int]) -> list[int]:
    """Return the sources of a period: of those that are behind, the one that is due first."""
    dealt, row = [0] * len(shares), []
    for t in range(sum(shares)):
        behind = [j for j, s in enumerate(shares) if dealt[j] * sum(shares) < s * (t + 1)]
        row.append(min(behind, key=lambda j: (Fraction(dealt[j] + 1, shares[j]), j)))
        dealt[row[-1]] += 1
    return row


def is_even(row: Sequence[int], shares: Sequence[int]) -> bool:
    """Return whether after t slots each source was dealt share * t / D times, within 1."""
    dealt = [0] * len(shares)
    for t, source in enumerate(row, 1):
        dealt[source] += 1
        for count, share in zip(dealt, shares, strict=True):
            if not -sum(shares) < count * sum(shares) - share * t < sum(shares):
                return False
    return True


@lru_cache(maxsize=64)
def turns(shares: tuple[int, ...]) -> list[list[int]]:
    """Return all rows that a period may have: even rotations, forwards and then backwards."""
    row = even(shares)
    both = [each[start:] + each[:start] for each in (row, row[::-1]) for start in range(len(row))]
    return [each for each in both if is_even(each, shares)]


def period_of(shares: Sequence[int], seed: int, phase: int, period: int) -> list[int]:
    """Return the sources of a period."""
    low, high = period % 2**32, period >> 32
    words = philox((low, high, 0, phase), key_words(seed, MIXTURE, 0, 2))
    rows = turns(tuple(shares))
    return rows[(words[0] | words[1] << 32) * len(rows) >> 64]


def counts(phases: Phases, seed: int, place: int) -> list[int]:
    """Return how many units of each source come before a place."""
    before = [0] * len(phases[0][1])
    for number, (begin, shares) in enumerate(phases):
        end = phases[number + 1][0] if number + 1 < len(phases) else place
        if begin < place:
            period, r = divmod(min(end, place) - begin, sum(shares))
            row = period_of(shares, seed, number, period)[:r]
            for j, share in enumerate(shares):
                before[j] += period * share + row.count(j)
    return before


def unit(phases: Phases, seed: int, place: int) -> tuple[int, int]:
    """Return the source that is read at a place, and the number of its unit."""
    number = max(i for i, (begin, _) in enumerate(phases) if begin <= place)
    begin, shares = phases[number]
    period, r = divmod(place - begin, sum(shares))
    source = period_of(shares, seed, number, period)[r]
    return source, counts(phases, seed, place)[source]


def row_of(mixture: Any, epoch: int) -> list[list[int]]:
    """Return the samples of each unit of an epoch."""
    sources = [source for _, source in mixture.sources]
    ends = [sum(source.num_samples for source in sources[:j]) for j in range(len(sources))]
    row = []
    for place in range(epoch * mixture.epoch_size, (epoch + 1) * mixture.epoch_size):
        j, number = unit(mixture.weights, mixture.seed, place)
        where = divmod(number, sources[j].num_units(0))
        row.append([ends[j] + sample for sample in sources[j].take(*where).tolist()])
    return row
