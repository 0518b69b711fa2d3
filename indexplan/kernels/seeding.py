"""Key words of many epochs: what `numpy.random.SeedSequence` generates, which NumPy keeps (NEP 19).

Like `indexplan.seeds.key_words`, but for epochs so short that a call from Python for each would
take longer than drawing from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import helper
from indexplan.kernels.philox import LOW, U64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

POOL = 4  # words, each below 2**32
SHIFT = U64(16)
WORD = U64(32)
INIT_A, MULT_A = U64(0x43B0D7E5), U64(0x931E8875)  # NumPy's names and numbers
INIT_B, MULT_B = U64(0x8B51F9DD), U64(0x58F38DED)
MIX_MULT_L, MIX_MULT_R = U64(0xCA01F9DD), U64(0x4973F715)


@helper
def _hashmix(value: U64, factor: U64, multiplier: U64) -> tuple[U64, U64]:
    """Return a hashed word, and the factor of the next one."""
    value ^= factor
    factor = (factor * multiplier) & LOW
    value = (value * factor) & LOW
    return value ^ value >> SHIFT, factor


@helper
def _mix(x: U64, y: U64) -> U64:
    """Return two words as one."""
    mixed: U64 = (MIX_MULT_L * x - MIX_MULT_R * y) & LOW
    mixed ^= mixed >> SHIFT
    return mixed


@helper
def _absorb(pool: UInt64s, word: U64, factor: U64) -> U64:
    """Mix a word into a pool that is full; return the next factor."""
    for i in range(POOL):
        value, factor = _hashmix(word, factor, MULT_A)
        pool[i] = _mix(pool[i], value)
    return factor


@helper
def pool_of(seed: UInt32s, purpose: int, pool: UInt64s) -> U64:
    """Write the pool after a seed and a purpose, before the epoch; return the next factor.

    The seed has four words, the lowest first.
    """
    factor = INIT_A
    for i in range(POOL):
        pool[i], factor = _hashmix(U64(seed[i]), factor, MULT_A)
    for source in range(POOL):
        for i in range(POOL):
            if i != source:
                value, factor = _hashmix(pool[source], factor, MULT_A)
                pool[i] = _mix(pool[i], value)
    return _absorb(pool, U64(purpose), factor)


@helper
def words_of(
    pool: UInt64s, factor: U64, epoch: U64, size: U64, high: U64, mixed: UInt64s, words: UInt64s
) -> None:
    """Write the key words of an epoch of an order's size, which is size + 2**64 * high.

    `mixed`, a pool too, is overwritten.
    """
    for i in range(POOL):  # not mixed[:] = pool, with which numba compiles texts of errors for 3 s
        mixed[i] = pool[i]
    factor = _absorb(mixed, size & LOW, _absorb(mixed, epoch, factor))
    if size > LOW or high:  # as many words as it has, the lowest first, as NumPy splits it
        factor = _absorb(mixed, size >> WORD, factor)
    if high:
        factor = _absorb(mixed, high & LOW, factor)
    if high > LOW:
        _absorb(mixed, high >> WORD, factor)
    factor = INIT_B
    for i in range(len(words)):
        words[i], factor = _hashmix(mixed[i % POOL], factor, MULT_B)
