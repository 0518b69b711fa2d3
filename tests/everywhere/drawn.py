"""Runs of positions of drawn shuffles, to compare an implementation with the package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import indexplan as ip

SIZES = [1, 2, 3, 7, 4095, 4096, 4097, 2**16, 2**20 - 1, 2**20, 2**20 + 1, 2**31, 2**32 - 1]
LARGE = [2**32, 2**32 + 1, 2**53, 2**62, 2**62 + 1, 2**63 - 1]


class Run(NamedTuple):
    """`num` positions from `start` on of an epoch of `ip.Shuffle(n, seed)`."""

    n: int
    seed: int
    epoch: int
    start: int
    num: int

    def indices(self) -> NDArray[np.int64]:
        """Return what the package says."""
        return ip.Shuffle(self.n, self.seed).take(self.epoch, self.start, self.start + self.num)


def drawn(num_values: int, size_stop: int = 2**63, most: int = 1000, seed: int = 0) -> list[Run]:
    """Return runs of at most `most` values, and `num_values` together; sizes are log-uniform."""
    return list(_drawn(np.random.default_rng(seed), num_values, size_stop, most))


def _drawn(rng: np.random.Generator, left: int, size_stop: int, most: int) -> Iterator[Run]:
    sizes = [n for n in SIZES + LARGE if n < size_stop]
    while left:
        bits = int(rng.integers(size_stop.bit_length() - 1))
        n = sizes.pop() if sizes else int(rng.integers(2**bits, 2 ** (bits + 1) - 1, endpoint=True))
        num = min(n, most, left)
        start = int(rng.choice([0, n - num, int(rng.integers(n - num, endpoint=True))]))
        shift = int(rng.choice([0, 64, 125]))
        yield Run(n, int.from_bytes(rng.bytes(16), "little") >> shift, _epoch(rng), start, num)
        left -= num


def _epoch(rng: np.random.Generator) -> int:
    return int(rng.choice([0, 1, 2**32 - 1, int(rng.integers(2**32))]))
