"""What weighted-v1 deals, in plain Python integers and fractions, one draw at a time.

Written from the definition in docs/specification.md, not the kernels: too simple to be wrong.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

from tests.support import oracles

DRAWS, ROW = 4, 5  # purposes of key words
GOLDEN = 0x9E3779B97F4A7C15


def scaled(weights: Sequence[float], power: int) -> list[int]:
    """Return the weights times 2**power, rounded up."""
    return [math.ceil(Fraction(weight) * Fraction(2) ** power) for weight in weights]


def integers_of(weights: Sequence[float]) -> list[int]:
    """Return the integers that stand for the weights; their sum is below 2**62."""
    most = 62 - len(weights).bit_length() - math.frexp(max(weights))[1]
    return scaled(weights, most + max(0, 61 - sum(scaled(weights, most)).bit_length()))


class Weighted:
    """Thresholds of an epoch's draws, and the draws."""

    def __init__(
        self, weights: Sequence[float], epoch_size: int, seed: int, max_repeats: int | None = None
    ) -> None:
        self.weights, self.size, self.seed, self.most = weights, epoch_size, seed, max_repeats
        n = self.n = len(weights)
        self.bits = 62 - epoch_size.bit_length()
        words = oracles.key_words(seed, ROW, 0, 2 * oracles.rounds_of(n) + 2, n)
        self.start = (words[-2] + (words[-1] << 32)) % 2**self.bits
        self.row = [oracles.forward(n, words[:-2], place) for place in range(n)]

    @cached_property
    def thresholds(self) -> list[int]:
        """T_0, ..., T_n."""
        numbers = integers_of(self.weights)
        capped: set[int] = set()
        most = self.most or self.size
        while True:
            left = self.size - most * len(capped)
            rest = sum(number for i, number in enumerate(numbers) if i not in capped)
            more = {
                i
                for i, number in enumerate(numbers)
                if i not in capped and left * number > most * rest
            }
            if not self.most or not more:
                break
            capped |= more
        found, total, full = [0], 0, 0
        for sample in self.row:
            full += sample in capped
            total += numbers[sample] if sample not in capped else 0
            found.append(most * 2**self.bits * full + total * (left << self.bits) // rest)
        return found

    def expected(self, sample: int) -> Fraction:
        """Return E of a sample: how often an epoch reads it, on average over seeds."""
        place = self.row.index(sample)
        return Fraction(self.thresholds[place + 1] - self.thresholds[place], 2**self.bits)

    def offset(self, epoch: int) -> int:
        """Return v, the offset of an epoch."""
        step = (GOLDEN >> (64 - self.bits)) | 1
        return (self.start + epoch * step) % 2**self.bits

    def slot(self, epoch: int, slot: int) -> int:
        """Return the sample of a slot of an epoch, before the slots are shuffled."""
        number = slot * 2**self.bits + self.offset(epoch)
        return self.row[bisect_right(self.thresholds, number) - 1]  # the last T_j <= number

    def read(self, epoch: int, position: int) -> int:
        """Return the sample that an epoch reads at a position."""
        words = oracles.key_words(self.seed, DRAWS, epoch, 2 * oracles.rounds_of(self.size), self.n)
        return self.slot(epoch, oracles.forward(self.size, words, position))

    def epoch(self, epoch: int) -> list[int]:
        """Return the samples that an epoch reads, in order."""
        return [self.read(epoch, position) for position in range(self.size)]
