"""Parts of 64-bit numbers by exact ratios, without numbers of 128 bits.

A quotient is guessed in floats and then put right: the guess is off by one at most, and what it
leaves is right although its products are too long, because they wrap around modulo 2**64 and what
is left does not.
"""

from __future__ import annotations

import numpy as np

from indexplan.kernels.compiling import helper, inlined
from indexplan.kernels.philox import HALF, LOW, U64

EXACT = 2**50  # times a ratio of at most 1 that is off by less than 2**-51, this is off by 1 / 2


@inlined
def settled(guess: int, rest: int, whole: int) -> tuple[int, int]:
    """Return a quotient and its rest in [0, whole), of a guess that is off by one at most."""
    low, high = rest < 0, rest >= whole
    return guess + high - low, rest + (whole if low else 0) - (whole if high else 0)


@inlined
def part(num: int, p: int, q: int, ratio: float) -> tuple[int, int]:
    """Return divmod(num * p, q), for 0 <= num <= 2**50 and p <= q < 2**62; ratio: p / q rounded."""
    guess = np.int64(np.float64(num) * ratio)
    return settled(guess, np.int64(U64(num) * U64(p) - U64(guess) * U64(q)), q)


@helper
def _long_part(num: int, p: int, q: int, ratio: float) -> tuple[int, int]:
    """Return divmod(num * p, q) for a number of up to 63 bits: its halves, one after the other."""
    above, rest = part(num >> 32, p, q, ratio)
    middle, rest = part(np.int64(2**32), rest, q, np.float64(rest) / np.float64(q))
    below, other = part(num & 0xFFFFFFFF, p, q, ratio)
    more, rest = settled(np.int64(0), rest + other, q)
    return (above << 32) + middle + below + more, rest


@inlined
def any_part(num: int, p: int, q: int, ratio: float) -> tuple[int, int]:
    """Return divmod(num * p, q), for 0 <= num < 2**63 and p <= q < 2**62; ratio: p / q rounded."""
    if num <= EXACT:
        return part(num, p, q, ratio)
    return _long_part(num, p, q, ratio)


@inlined
def ticks_in(rest: int, f: U64, p: int, ticks_each: float) -> tuple[U64, U64]:
    """Return divmod(rest << f, p), below 2**50; ticks_each: 2**f / p rounded."""
    guess = np.int64(np.float64(rest) * ticks_each)
    ticks, left = settled(guess, np.int64((U64(rest) << f) - U64(guess) * U64(p)), p)
    return U64(ticks), U64(left)


@helper
def high_word(x: U64, y: U64) -> U64:
    """Return x * y >> 64."""
    a, b, c, d = x >> HALF, x & LOW, y >> HALF, y & LOW
    middle = a * d + (b * d >> HALF)
    word: U64 = a * c + (middle >> HALF) + (b * c + (middle & LOW) >> HALF)
    return word
