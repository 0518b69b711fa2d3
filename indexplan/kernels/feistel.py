"""The network in every permutation here: keyed bijections on [0, n), both ways.

A generalised Feistel network on a * b >= n points, kept inside [0, n) by cycle walking (Black and
Rogaway 2002, "Ciphers with Arbitrary Finite Domains"). It is frozen: a change of any index needs a
new version of every order that uses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import has_avx512, helper
from indexplan.kernels.philox import (
    HALF,
    LOW,
    MULTIPLIER_0,
    MULTIPLIER_1,
    ONE,
    TOP_BIT,
    TWO,
    U64,
    ZERO,
    philox,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]
    Three: TypeAlias = tuple[U64, U64, U64]
    Cipher: TypeAlias = tuple[U64, U64, U64, Three, UInt64s]  # n, a, b, reciprocal of b, keys

# Numbers go through the network in blocks of this many lanes, which fit the first-level cache.
LANES = 768  # 2.85 ns per index at n = 1e9 with AVX2; 256 lanes: 3.00, 512: 2.88, 1024: 2.87
# AVX-512 has an instruction for the lesser of two numbers; elsewhere choosing by a sign is faster,
# by 1.25 with AVX2, where `min` is four instructions. With AVX-512 it would be slower, by 0.88.
HAS_MINIMUM = has_avx512()
MOST_WORDS = 48  # key words of one cipher: two for each of at most 24 rounds


def num_rounds(n: int) -> int:
    """Return the number of Feistel rounds of shuffle-v1 on [0, n); each takes two key words."""
    return 24 if n < 2**12 else 12 if n < 2**20 else 8


rounds_of = helper(num_rounds)


@helper
def times(x: U64, y: U64) -> U64:
    """Multiply the low halves; the masks let LLVM use its 32 x 32 -> 64 instruction."""
    product: U64 = (x & LOW) * (y & LOW)
    return product


@helper
def lesser(total: U64, less: U64) -> U64:
    """Return `less`, or `total` if it is negative: a large number; the other is below 2**63."""
    if HAS_MINIMUM:
        return min(total, less)
    return total if np.int64(less) < 0 else less


@helper
def num_bits(x: U64) -> U64:
    """Return the length of x in binary."""
    num: U64 = ZERO
    for step in (U64(32), U64(16), U64(8), U64(4), U64(2), U64(1)):
        if x >> step > ZERO:
            x, num = x >> step, num + step
    num += x
    return num


@helper
def reciprocal_of(divisor: U64, largest: U64) -> Three:
    """Prepare `divide` for numbers up to `largest`, which is below 2**32 or about divisor**2."""
    down = max(num_bits(largest), HALF) - HALF
    scale = num_bits(divisor) + U64(31)  # divisor < 2**32
    return ((ONE << scale) - ONE) // divisor, down, scale - down


@helper
def divide(x: U64, divisor: U64, reciprocal: Three) -> tuple[U64, U64]:
    """Return quotient and remainder by multiplying, which vectorises: 1.5 ns instead of 2.7."""
    factor, down, shift = reciprocal
    quotient = times(x >> down, factor) >> shift  # by up to 1 + 3 * 2**down / divisor too small
    rest = x - times(quotient, divisor)
    if U64(3) << down > divisor:  # above about 2**60
        less = rest - TWO * divisor  # if negative, a large number with its top bit set
        quotient += TWO - TWO * (less >> TOP_BIT)  # a comparison would not vectorise: 2.5 ns
        rest = lesser(rest, less)
    less = rest - divisor
    return quotient + ONE - (less >> TOP_BIT), lesser(rest, less)


@helper
def divide_all(left: UInt64s, right: UInt64s, num: int, divisor: U64, largest: U64) -> None:
    """Divide numbers in `left`, up to `largest`: quotients there, remainders in `right`."""
    if largest <= LOW:
        reciprocal = reciprocal_of(divisor, LOW)
        for i in range(num):
            left[i], right[i] = divide(left[i], divisor, reciprocal)
    else:
        for i in range(num):
            left[i], right[i] = divmod(left[i], divisor)


@helper
def cipher_of(n: U64, keys: UInt64s) -> Cipher:
    """Return n, a = ceil(sqrt(n)), b = ceil(n / a) plus one if odd, its reciprocal, the keys."""
    a = ZERO  # the largest whose square is below n, bit by bit
    for bit in range(np.int64(num_bits(n - ONE) >> ONE), -1, -1):
        larger = a | (ONE << U64(bit))
        if larger * larger < n:
            a = larger
    a += ONE
    b = (n - ONE) // a + ONE
    b += b & ONE
    return n, a, b, reciprocal_of(b, a * b - ONE), keys


@helper
def f(x: U64, k0: U64, k1: U64, m: U64) -> U64:
    """Return the round function of x: a number in [0, m)."""
    t = times(x ^ k0, MULTIPLIER_0)
    t = times(t ^ (t >> HALF) ^ k1, MULTIPLIER_1)
    value: U64 = times(t ^ (t >> HALF), m) >> HALF
    return value


# One round per loop over the lanes takes 1.0 ns per index for 8 rounds; two rounds per loop 1.4,
# four 2.0, eight 2.8: longer chains of multiplications overlap less.
@helper
def _add(x: UInt64s, y: UInt64s, num: int, k0: U64, k1: U64, m: U64) -> None:
    """Do x = (x + f(y)) mod m."""
    for i in range(num):
        total = x[i] + f(y[i], k0, k1, m)
        x[i] = lesser(total, total - m)


@helper
def _subtract(x: UInt64s, y: UInt64s, num: int, k0: U64, k1: U64, m: U64, zero: U64) -> None:
    """Do x = (x - f(y)) mod m; if LLVM knew `zero`, it would use two slower instructions."""
    for i in range(num):
        less = x[i] - f(y[i], k0, k1, m)
        x[i] = min(less, less + m) if HAS_MINIMUM else less + (m if np.int64(less) < 0 else zero)


@helper
def _network(
    left: UInt64s, right: UInt64s, num: int, cipher: Cipher, row: bool, inverse: bool, out: Int64s
) -> bool:
    """Write the images on [0, a * b) of numbers in `left`; return whether all are below n."""
    n, a, b, reciprocal, k = cipher
    if row and b >= U64(num):  # one division does for all
        first, rest = divide(left[0], b, reciprocal)
        for i in range(num):
            total = rest + U64(i)
            less = total - b
            left[i], right[i] = first + ONE - (less >> TOP_BIT), lesser(total, less)
    else:
        for i in range(num):
            left[i], right[i] = divide(left[i], b, reciprocal)
    if inverse:
        for j in range(len(k) - 4, -1, -4):
            _subtract(right, left, num, k[j + 2], k[j + 3], b, ZERO)
            _subtract(left, right, num, k[j], k[j + 1], a, ZERO)
    else:
        for j in range(0, len(k), 4):
            _add(left, right, num, k[j], k[j + 1], a)
            _add(right, left, num, k[j + 2], k[j + 3], b)
    outside: U64 = ZERO
    for i in range(num):
        image = times(left[i], b) + right[i]
        out[i] = np.int64(image)
        outside |= n - ONE - image
    inside: bool = outside >> TOP_BIT == ZERO
    return inside


@helper
def permute(
    left: UInt64s, right: UInt64s, num: int, cipher: Cipher, row: bool, inverse: bool, out: Int64s
) -> None:
    """Write the images on [0, n) of the first `num` numbers in `left`, which is overwritten.

    `row` says that they are one after another, which is faster.
    """
    if _network(left, right, num, cipher, row, inverse, out):
        return
    n = cipher[0]
    where, found, walking = np.empty(num, np.int64), np.empty(num, np.int64), 0
    for i in range(num):  # cycle walking, with all the lanes outside [0, n) side by side
        if U64(out[i]) >= n:
            where[walking], left[walking] = i, U64(out[i])
            walking += 1
    while walking > 0:
        _network(left, right, walking, cipher, False, inverse, found)
        stay = 0
        for i in range(walking):
            out[where[i]] = found[i]
            if U64(found[i]) >= n:
                where[stay], left[stay] = where[i], U64(found[i])
                stay += 1
        walking = stay


@helper
def count_up(out: UInt64s, num: int, start: U64) -> None:
    """Write start, start + 1, ... to the first `num` numbers."""
    for i in range(num):
        out[i] = start + U64(i)


@helper
def drawn_cipher(n: U64, c0: U64, c1: U64, c3: U64, key: UInt32s, buffer: UInt64s) -> Cipher:
    """Return a cipher on [0, n) whose keys Philox draws from counters (c0, c1, 0 and up, c3).

    The keys are written to the buffer, of MOST_WORDS; the counters are below 2**32.
    """
    num_words = 2 * rounds_of(int(n))
    for j in range(0, num_words, 4):
        words = philox(c0, c1, U64(j // 4), c3, U64(key[0]), U64(key[1]))
        buffer[j], buffer[j + 1], buffer[j + 2], buffer[j + 3] = words
    return cipher_of(n, buffer[:num_words])
