"""Key words of an epoch that may be traced: what `numpy.random.SeedSequence` generates (NEP 19)."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

U32 = jnp.uint32
INIT_A, MULT_A = 0x43B0D7E5, 0x931E8875  # NumPy's names and numbers
INIT_B, MULT_B = 0x8B51F9DD, 0x58F38DED
MIX_MULT_L, MIX_MULT_R = 0xCA01F9DD, 0x4973F715
POOL = 4
HASHED = 20  # words that have been hashed when a seed and a purpose are in the pool


def key_words(seed: int, purpose: int, epoch: Any, size: int, count: int) -> Any:
    """Return what SeedSequence(seed, spawn_key=(purpose, epoch, size)) generates, as uint32."""
    pool = jnp.asarray(np.random.SeedSequence(seed, spawn_key=(purpose,)).pool, U32)
    for at, word in enumerate((jnp.asarray(epoch).astype(U32), U32(size))):
        factors = _factors(INIT_A, MULT_A, HASHED + POOL * at, POOL)
        mixed = U32(MIX_MULT_L) * pool - U32(MIX_MULT_R) * _hashed(word, factors)
        pool = mixed ^ (mixed >> 16)
    return _hashed(jnp.tile(pool, -(-count // POOL))[:count], _factors(INIT_B, MULT_B, 0, count))


def _factors(first: int, multiplier: int, start: int, count: int) -> Any:
    """Return count + 1 powers of a multiplier, times the first factor."""
    powers = (pow(multiplier, start + i, 2**32) for i in range(count + 1))
    return np.array([first * power % 2**32 for power in powers], np.uint32)


def _hashed(words: Any, factors: Any) -> Any:
    mixed = (words ^ factors[:-1]) * factors[1:]
    return mixed ^ (mixed >> 16)
