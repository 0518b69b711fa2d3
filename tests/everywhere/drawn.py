"""Runs of positions of drawn shuffles, to compare an implementation with the package."""

from __future__ import annotations

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


def drawn(num_values: int, size_stop: int = 2**63, most: int = 1000) -> list[Run]:
    """Return runs of at most `most` values, and `num_values` together; sizes are log-uniform."""
    rng, left, runs = np.random.default_rng(0), num_values, []
    sizes = [n for n in SIZES + LARGE if n < size_stop]
    while left:
        bits = int(rng.integers(size_stop.bit_length() - 1))
        n = sizes.pop() if sizes else int(rng.integers(2**bits, 2 ** (bits + 1) - 1, endpoint=True))
        num = min(n, most, left)
        start = int(rng.choice([0, n - num, int(rng.integers(n - num, endpoint=True))]))
        seed = int.from_bytes(rng.bytes(16), "little") >> int(rng.choice([0, 64, 125]))
        epoch = int(rng.choice([0, 1, 2**32 - 1, int(rng.integers(2**32))]))
        runs.append(Run(n, seed, epoch, start, num))
        left -= num
    return runs
