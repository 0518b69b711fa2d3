"""The thresholds of weighted-v1: weights as integers, summed in a keyed row, in exact arithmetic.

Weights become integers by multiplying them with two powers of two, which is exact, and rounding up.
128-bit products are divided by the method of Moeller and Granlund 2011, "Improved division by
invariant integers": two multiplications instead of a division.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    FLOAT64,
    INT64,
    READ_FLOAT64,
    READ_UINT32,
    READ_UINT64,
    WRITE_UINT32,
    WRITE_UINT64,
    helper,
    kernel,
)
from indexplan.kernels.feistel import LANES, cipher_of, count_up, num_bits, permute
from indexplan.kernels.philox import HALF, LOW, ONE, TOP_BIT, U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64s: TypeAlias = NDArray[np.float64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]


@helper
def _scaled(weight: float, first: float, second: float) -> U64:
    """Return a weight times two powers of two, rounded up; at least 1 unless the weight is 0.

    There are two of them, as their product may be out of the range of floats.
    """
    number: U64 = ZERO
    if weight > 0.0:
        number = max(U64(np.int64(math.ceil(weight * first * second))), ONE)
    return number


@helper
def _product(x: U64, y: U64) -> tuple[U64, U64]:
    """Return the high and the low 64 bits of a product."""
    x_low, x_high, y_low, y_high = x & LOW, x >> HALF, y & LOW, y >> HALF
    low, one = x_low * y_low, x_high * y_low
    two = x_low * y_high + (one & LOW) + (low >> HALF)
    return x_high * y_high + (one >> HALF) + (two >> HALF), (two << HALF) | (low & LOW)


@helper
def _inverse_of(divisor: U64) -> U64:
    """Return (2**128 - 1) // divisor - 2**64, bit by bit; the top bit of the divisor is set."""
    inverse: U64 = ZERO
    rest = ~divisor
    for _ in range(64):
        carry, rest, inverse = rest >> TOP_BIT, (rest << ONE) | ONE, inverse << ONE
        if carry > ZERO or rest >= divisor:
            rest, inverse = rest - divisor, inverse | ONE
    return inverse


@helper
def _quotient(high: U64, low: U64, divisor: U64, inverse: U64) -> U64:
    """Divide a 128-bit number by a divisor larger than its high half."""
    q, fraction = _product(inverse, high)
    fraction += low
    q += high + U64(fraction < low) + ONE  # right, or 1 too large, or 1 too small
    rest = low - q * divisor
    if rest > fraction:
        q -= ONE
        rest += divisor
    quotient: U64 = q + ONE if rest >= divisor else q
    return quotient


@kernel(READ_FLOAT64, FLOAT64, FLOAT64, INT64)
def add_up(weights: Float64s, first: float, second: float, limit: int) -> tuple[int, int]:
    """Return how many of the scaled weights are above a limit, and the sum of the others.

    Parameters
    ----------
    weights : float64 (n,)
        Not negative, and finite.
    first, second : float
        Powers of two that scale a weight; the scaled weights have a sum below 2**62.
    limit : int
        0 <= limit < 2**63.
    """
    num_above, total = 0, ZERO
    for i in range(len(weights)):
        number = _scaled(weights[i], first, second)
        if number > U64(limit):
            num_above += 1
        else:
            total += number
    return num_above, np.int64(total)


@kernel(READ_FLOAT64, READ_UINT32, FLOAT64, FLOAT64, INT64, INT64, INT64, INT64, WRITE_UINT64)
def fill_thresholds(
    weights: Float64s,
    words: UInt32s,
    first: float,
    second: float,
    limit: int,
    step: int,
    width: int,
    total: int,
    thresholds: UInt64s,
) -> None:
    """Write the thresholds T_0, ..., T_n of weighted-v1.

    Parameters
    ----------
    weights, first, second
        As for `add_up`.
    words : uint32 (2 * num_rounds(n),)
        The key words of the row.
    limit, step : int
        Each scaled weight above the limit gets the step, below 2**62, as its share.
    width, total : int
        The others, whose sum is the total, share the width, below 2**62, in proportion.
    thresholds : uint64 (n + 1,)
        Gets the thresholds.
    """
    n = len(weights)
    cipher = cipher_of(U64(n), words.astype(U64))
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    samples = np.empty(LANES, np.int64)
    shift = U64(64) - num_bits(U64(total))
    divisor = U64(total) << shift
    inverse = _inverse_of(divisor)
    below, above = ZERO, ZERO
    thresholds[0] = ZERO
    for done in range(0, n, LANES):
        num = min(n - done, LANES)
        count_up(left, num, U64(done))
        permute(left, right, num, cipher, True, False, samples)
        for i in range(num):  # these loads do not depend on each other
            left[i] = _scaled(weights[samples[i]], first, second)
        for i in range(num):
            if left[i] > U64(limit):
                above += U64(step)
            else:
                below += left[i]
            high, low = _product(below, U64(width))
            high = (high << shift) | (low >> (U64(64) - shift))
            share = _quotient(high, low << shift, divisor, inverse)
            thresholds[done + i + 1] = above + share


@kernel(READ_UINT64, INT64, INT64, WRITE_UINT32)
def fill_guide(thresholds: UInt64s, shift: int, coarse: int, guide: UInt32s) -> None:
    """Write for each cell of 2**shift numbers the last j with T_j up to its first number.

    Parameters
    ----------
    thresholds : uint64 (n + 1,)
        Rising, from 0.
    shift, coarse : int
        What is written is j >> coarse, below 2**32.
    guide : uint32 (num_cells + 1,)
        Gets the numbers; the last one is (n - 1) >> coarse.
    """
    n, j = len(thresholds) - 1, 0
    for cell in range(len(guide) - 1):
        number = U64(cell) << U64(shift)
        while j < n - 1 and thresholds[j + 1] <= number:
            j += 1
        guide[cell] = np.uint32(j >> coarse)
    guide[len(guide) - 1] = np.uint32((n - 1) >> coarse)
