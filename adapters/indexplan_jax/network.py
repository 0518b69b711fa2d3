"""The network of shuffle-v1 in 32-bit lanes, which all devices have: sizes below 2**31.

What is static, such as sizes and seeds, is a Python integer here; what may be traced, an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

U32 = jnp.uint32
MULTIPLIER_0, MULTIPLIER_1 = U32(0xD2511F53), U32(0xCD9E8D57)
FEW = 12  # rounds that are written out
MANY = 2**14  # lanes from which on rows that walk on are gathered: below, all together are faster
ROW = 16  # 1e6 lanes take 84 ns each; as single lanes 118; all, as often as any walks on, 219


class Sides(NamedTuple):
    """The sides of the domain of a network, and how many rounds it has."""

    a: Any
    b: Any
    rounds: Any


def sides_of(n: int) -> Sides:
    """Return those of [0, n)."""
    a = math.isqrt(n - 1) + 1
    b = -(-n // a)
    return Sides(a, b + b % 2, 24 if n < 2**12 else 12 if n < 2**20 else 8)


def wide(x: Any, y: Any) -> tuple[Any, Any]:
    """Return the low and the high word of a product, the high one from 16-bit halves."""
    a, b, c, d = x >> 16, x & 0xFFFF, y >> 16, y & 0xFFFF
    middle = a * d + (b * d >> 16)
    other = b * c + (middle & 0xFFFF)
    return x * y, a * c + (middle >> 16) + (other >> 16)


def f(x: Any, k0: Any, k1: Any, m: Any) -> Any:
    """Return the round function of x: a number in [0, m)."""
    low, high = wide(x ^ k0, MULTIPLIER_0)
    low, high = wide(low ^ high ^ k1, MULTIPLIER_1)
    return wide(low ^ high, U32(m))[1]


def plus(x: Any, y: Any, m: Any) -> Any:
    """Return x + y modulo m, for numbers below m."""
    total = x + y
    return jnp.minimum(total, total - U32(m))  # a negative number is a large one


def network(x: Any, sides: Sides, keys: Any) -> Any:
    """Return the images of numbers in [0, a * b); keys are uint32, shape (2 * rounds,)."""
    a, b, rounds = sides

    def two_rounds(i: Any, both: tuple[Any, Any]) -> tuple[Any, Any]:
        left, right = both
        k = jax.lax.dynamic_slice(keys, (4 * i,), (4,)) if in_a_loop else keys[4 * i : 4 * i + 4]
        left = plus(left, f(right, k[0], k[1], a), a)
        return left, plus(right, f(left, k[2], k[3], b), b)

    both = x // U32(b), x % U32(b)
    in_a_loop = rounds > FEW
    if in_a_loop:  # written out, 24 rounds compile for seconds
        both = jax.lax.fori_loop(0, rounds // 2, two_rounds, both)
    else:
        for i in range(rounds // 2):
            both = two_rounds(i, both)
    return both[0] * U32(b) + both[1]


def walked(once: Callable[[Any], Any], x: Any, n: Any) -> Any:
    """Return x put through the network once, and again until it is in [0, n)."""

    def walk(state: tuple[Any, Any]) -> tuple[Any, Any]:
        x, is_outside = state
        x = jnp.where(is_outside, once(x), x)
        return x, x >= n

    return jax.lax.while_loop(lambda state: jnp.any(state[1]), walk, (x, x == x))[0]  # noqa: PLR0124


def permuted(n: int, keys: Any, x: Any) -> Any:
    """Return the images on [0, n) of numbers in it, as uint32."""
    sides, x = sides_of(n), x.astype(U32) + keys[0] * U32(0)  # where only the key differs by device

    def once(x: Any) -> Any:
        return network(x, sides, keys)

    if n == 1:
        return x
    if sides.a * sides.b == n:
        return once(x)
    return walked(once, x, U32(n)) if x.size < MANY else _gathered(once, once(x), n, sides)


def _gathered(once: Callable[[Any], Any], x: Any, n: int, sides: Sides) -> Any:
    """Return what `walked` does, gathering the rows of lanes of which one walks on, of many."""
    stay = n / (sides.a * sides.b)
    rows = jnp.pad(x.reshape(-1), (0, -x.size % ROW)).reshape(-1, ROW)  # 0 stays
    num = min(len(rows), 8 + math.ceil(1.25 * (1 - stay**ROW) * len(rows)))

    def some(rows: Any) -> Any:
        where = jnp.nonzero((rows >= n).any(axis=1), size=num, fill_value=len(rows))[0]
        values = rows.at[where].get(mode="fill", fill_value=0)
        values = jnp.where(values >= n, walked(once, values, U32(n)), values)
        return rows.at[where].set(values, mode="drop")

    rows = jax.lax.while_loop(lambda rows: jnp.any(rows >= n), some, rows)
    return rows.reshape(-1)[: x.size].reshape(x.shape)
