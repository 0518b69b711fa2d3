"""The network of every permutation, in int64 operations of torch, on any device.

Its bits are those of `indexplan.kernels.feistel`, by docs/specification.md. torch has no
unsigned 64-bit arithmetic on devices, so products wrap around, and a shift, which copies the sign,
is followed by a mask.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor, where

LOW = 0xFFFFFFFF
RARE = 2.0**-64  # the chance, for each index, that a walk is longer than `num_walks` says
NUM_SIDES = 4  # numbers of a network before its keys


class Network(NamedTuple):
    """A keyed bijection on [0, n), as 0-d tensors; drawn keys have one number for each position.

    Parameters
    ----------
    a, b : Tensor
        The sides of its domain.
    last_left, last_right : Tensor
        divmod(n - 1, b), the last point that is not walked on from.
    keys : sequence of Tensor
        k0[0], k1[0], k0[1], k1[1] and so on.
    """

    a: Tensor
    b: Tensor
    last_left: Tensor
    last_right: Tensor
    keys: Sequence[Tensor]


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


def numbers_of(n: int, words: Sequence[int] = ()) -> list[int]:
    """Return the numbers of a network on [0, n): NUM_SIDES of them, and its key words."""
    a, b = sides(n)
    return [a, b, *divmod(n - 1, b), *words]


def permute(positions: Tensor, network: Network, walks: int) -> Tensor:
    """Return the images of positions in [0, n).

    The two halves are not put together between the turns: their number may reach 2**63.
    """
    a, b, last_left, last_right, keys = network
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


def drawn_keys(number: Tensor, k0: Tensor, k1: Tensor, rounds: int) -> list[Tensor]:
    """Return the key words that Philox4x32-10 draws from counters (number, two words; 0 and up; 0).

    Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
    """
    weyl = [(k0, k1)]
    for _ in range(9):
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
        weyl.append((k0, k1))
    keys: list[Tensor] = []
    zero = number ^ number
    for i in range(rounds // 2):
        c0, c1, c2, c3 = number & LOW, number >> 32, zero + i, zero
        for each0, each1 in weyl:
            p, q = c0 * 0xD2511F53, c2 * 0xCD9E8D57
            c0, c1 = ((q >> 32) & LOW) ^ c1 ^ each0, q & LOW
            c2, c3 = ((p >> 32) & LOW) ^ c3 ^ each1, p & LOW
        keys += [c0, c1, c2, c3]
    return keys
