"""The indices at positions of an epoch, for each kind of order that is a formula of 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from indexplan import BlockShuffle, LocalShuffle, Order, Sequential, Shuffle
from indexplan_jax.key_words import U32, key_words
from indexplan_jax.network import permuted, permuted_in_parts, sides_of

SHUFFLE, BLOCKS, WINDOWS, LOCAL = 0, 1, 2, 10  # purposes of key words (docs/specification.md)


def shuffled(n: int, seed: int, epoch: Any, numbers: Any, inverse: bool = False) -> Any:
    """Return the indices at positions of shuffle-v1, or the positions of indices."""
    words = key_words(seed, SHUFFLE, epoch, n, 2 * sides_of(n).rounds)
    return permuted(n, words, numbers, inverse)


def _shuffle(order: Shuffle, epoch: Any, positions: Any) -> Any:
    return shuffled(order.num_samples, order.seed, epoch, positions)


def _sequential(order: Sequential, epoch: Any, positions: Any) -> Any:  # noqa: ARG001
    return positions


def _local_shuffle(order: LocalShuffle, epoch: Any, positions: Any) -> Any:
    n, window = order.num_samples, min(order.window, order.num_samples)
    key = key_words(order.seed, LOCAL, epoch, n, 2)
    v = positions // U32(window)
    start = v * U32(window)
    num = jnp.minimum(U32(window), U32(n) - start)
    sizes = {window, n % window or window}
    return start + permuted_in_parts(v, num, sizes, key, positions - start)


def _block_shuffle(order: BlockShuffle, epoch: Any, positions: Any) -> Any:
    n, size = order.num_samples, min(order.block_size, order.num_samples)
    num_slots = -(-n // size)
    window, missing = min(order.window, num_slots), num_slots * size - n
    words = key_words(order.seed, BLOCKS, epoch, n, 2 * sides_of(num_slots).rounds)
    key = key_words(order.seed, WINDOWS, epoch, n, 2)
    short = permuted(
        num_slots, words, U32(num_slots - 1), inverse=True
    )  # the slot of the last block

    def up(where: Any) -> Any:
        return jnp.where(where, U32(missing), U32(0))

    # positions and places are numbers of samples; the short slot lacks `missing` of them
    past_short = positions >= (short + 1) * U32(size) - U32(missing)
    v = (positions + up(past_short)) // U32(size) // U32(window)
    first = v * U32(window)
    last = jnp.minimum(first + U32(window), U32(num_slots))
    is_inside = (first <= short) & (short < last)
    start = first * U32(size) - up(short < first)
    num = (last - first) * U32(size) - up(is_inside)
    ends = (window * size, ((num_slots - 1) % window + 1) * size)  # of a full window, and the last
    sizes = {full - lacks for full in ends for lacks in (0, missing) if full - lacks <= n}
    place = permuted_in_parts(v, num, sizes, key, positions - start)
    place += up(is_inside & (place >= (short + 1 - first) * U32(size) - U32(missing)))
    block = permuted(num_slots, words, place // U32(size) + first)
    return block * U32(size) + place % U32(size)


_TAKES: dict[type[Order], Callable[[Any, Any, Any], Any]] = {
    Shuffle: _shuffle,
    BlockShuffle: _block_shuffle,
    LocalShuffle: _local_shuffle,
    Sequential: _sequential,
}


def taken(order: Order, epoch: Any, positions: Any) -> Any:
    """Return the indices at positions of an order, as uint32; the epoch may be traced."""
    return _TAKES[type(order)](order, epoch, positions)
