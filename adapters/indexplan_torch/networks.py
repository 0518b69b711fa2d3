"""Shuffle as arithmetic on tensors, in int64 operations of torch, on any device.

Its bits are those of `indexplan.kernels.feistel`, by docs/specification.md. torch has no
unsigned 64-bit arithmetic on devices, so products wrap around, and a shift, which copies the sign,
is followed by a mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, where

LOW = 0xFFFFFFFF
RARE = 2.0**-64  # the chance, for each index, that a walk is longer than `num_walks` says
SHUFFLE = 0  # purpose of key words (docs/specification.md, Keys)


def num_rounds(n: int) -> int:
    """Return the rounds of a network on [0, n); each takes two key words."""
    return 24 if n < 2**12 else 12 if n < 2**20 else 8


def sides(n: int) -> tuple[int, int]:
    """Return the sides (a, b) of the domain."""
    a = math.isqrt(n - 1) + 1
    b = (n - 1) // a + 1
    return a, b + b % 2


def num_walks(n: int) -> int:
    """Return after how many turns of the network an index is in [0, n), but for a chance of 2**-64.

    A fixed number needs no look at the numbers, for which a host would wait. A walk passes
    different points outside, of which there are few, so for small n it is certain.
    """
    a, b = sides(n)
    outside, walks = a * b - n, 1
    chance = outside / (a * b)
    while chance >= RARE:
        chance *= (outside - walks) / (a * b - walks)
        walks += 1
    return walks


def numbers_of(order: Any, epoch: int) -> list[int]:
    """Return the numbers of an epoch of Shuffle.

    These are the sides a and b of the domain; divmod(n - 1, b), the last point that is not walked
    on from; and the key words.
    """
    n = order.num_samples
    a, b = sides(n)
    sequence = np.random.SeedSequence(order.seed, spawn_key=(SHUFFLE, epoch, n))
    return [a, b, *divmod(n - 1, b), *sequence.generate_state(2 * num_rounds(n)).tolist()]


def shuffled(positions: Tensor, numbers: Tensor, walks: int) -> Tensor:
    """Return the samples of Shuffle at positions of an epoch, whose numbers are on their device.

    The two halves are not put together between the turns: their number may reach 2**63.
    """
    a, b, last_left, last_right, *keys = numbers.unbind()
    left = positions // b
    right = positions - left * b
    left, right = _turn(left, right, a, b, keys)
    for _ in range(walks - 1):
        outside = (left > last_left) | ((left == last_left) & (right > last_right))
        further_left, further_right = _turn(left, right, a, b, keys)
        left, right = where(outside, further_left, left), where(outside, further_right, right)
    return left * b + right


def _turn(
    left: Tensor, right: Tensor, a: Tensor, b: Tensor, keys: Sequence[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the halves of the images on [0, a * b)."""
    for i in range(0, len(keys), 4):
        left = left + _f(right, keys[i], keys[i + 1], a)
        left = where(left >= a, left - a, left)
        right = right + _f(left, keys[i + 2], keys[i + 3], b)
        right = where(right >= b, right - b, right)
    return left, right


def _f(x: Tensor, k0: Tensor, k1: Tensor, m: Tensor) -> Tensor:
    """Return the round function of x: numbers in [0, m)."""
    t = (x ^ k0) * 0xD2511F53
    t = (t ^ (t >> 32)) & LOW
    t = (t ^ k1) * 0xCD9E8D57
    t = (t ^ (t >> 32)) & LOW
    return ((t * m) >> 32) & LOW
