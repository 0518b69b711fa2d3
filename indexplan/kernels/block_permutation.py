"""The permutation block-shuffle-v1, both ways. It is frozen: other indices are another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, READ_UINT32, WRITE_INT64, helper, kernel
from indexplan.kernels.feistel import (
    LANES,
    MOST_WORDS,
    cipher_of,
    count_up,
    divide_all,
    drawn_cipher,
    permute,
)
from indexplan.kernels.philox import HALF, LOW, ONE, U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from indexplan.kernels.feistel import Cipher

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]
    Five: TypeAlias = tuple[U64, U64, U64, U64, U64]

# A window of up to this many slots lists its blocks, once it is asked for as many positions
# together: 2.2 ns per index instead of 4.7.
TABLE = 256


@helper
def _layout(n: int, block_size: int, window: int, words: UInt32s) -> tuple[Five, Cipher]:
    """Return (samples per slot, slots, slots per window, the short slot, samples it lacks).

    Also the cipher that puts the blocks into the slots. All blocks but the last are full.
    """
    size = min(U64(block_size), U64(n))
    num_slots = (U64(n) - ONE) // size + ONE
    cipher = cipher_of(num_slots, words.astype(U64))
    block, scratch, short = np.full(1, num_slots - ONE), np.empty(1, U64), np.empty(1, np.int64)
    permute(block, scratch, 1, cipher, False, True, short)
    missing = num_slots * size - U64(n)
    return (size, num_slots, min(U64(window), num_slots), U64(short[0]), missing), cipher


@helper
def _window(v: U64, layout: Five) -> Five:
    """Return the slots [first, last) of window v, its start, number of positions and turn.

    Places are positions from the start of the window; from the turn on, they are past the short
    slot.
    """
    size, num_slots, window, short, missing = layout
    first = v * window
    last = min(first + window, num_slots)
    start, num = first * size, (last - first) * size
    if short < first:
        return first, last, start - missing, num, num
    if short < last:
        return first, last, start, num - missing, (short + ONE - first) * size - missing
    return first, last, start, num, num


@helper
def _look_up(
    left: UInt64s,
    right: UInt64s,
    num: int,
    first: U64,
    turn: U64,
    layout: Five,
    table: Int64s,
    cipher: Cipher,
    out: Int64s,
) -> None:
    """Replace places in a window by indices; the table holds the blocks of its slots, if any."""
    size, _, window, _, missing = layout
    within = np.empty(LANES, U64)
    for i in range(num):
        left[i] = U64(out[i]) + (missing if U64(out[i]) >= turn else ZERO)
    divide_all(left, within, num, size, size * window)
    if len(table) > 0:
        for i in range(num):
            out[i] = table[left[i]]
    else:
        for i in range(num):
            left[i] += first
        permute(left, right, num, cipher, False, False, out)
    for i in range(num):
        out[i] = np.int64(U64(out[i]) * size + within[i])


@kernel(INT64, INT64, INT64, READ_UINT32, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def block_permute_runs(
    n: int,
    block_size: int,
    window: int,
    block_words: UInt32s,
    window_key: UInt32s,
    starts: Int64s,
    stops: Int64s,
    out: Int64s,
) -> None:
    """Write the indices of runs of positions, one run after another, by block-shuffle-v1.

    Parameters
    ----------
    n : int
        Number of samples, 1 <= n < 2**63.
    block_size, window : int
        Samples per block and blocks per window, from 1 to 2**63 - 1.
    block_words : uint32 (2 * num_rounds(ceil(n / block_size)),)
        The key words of the order of the blocks.
    window_key : uint32 (2,)
        The Philox key that yields the key words of every window.
    starts, stops, out
        As for `permute_runs`.
    """
    layout, block_cipher = _layout(n, block_size, window, block_words)
    size, _, window_size, short, missing = layout
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    blocks, keys = np.empty(TABLE, np.int64), np.empty(MOST_WORDS, U64)
    table, cipher = blocks[:0], block_cipher
    first = last = start = num = turn = position = stop = ZERO
    k = lane = done = count = 0
    while True:
        while position == stop and k < len(starts):
            position, stop = U64(starts[k]), U64(stops[k])
            k += 1
        ended = position == stop
        elsewhere = position - start >= num  # in another than the current window
        if lane == LANES or elsewhere or ended:
            part = out[done:]
            permute(left, right, lane, cipher, count == lane, False, part)
            if len(table) == 0 and last - first <= min(U64(lane), U64(TABLE)):
                table = blocks[: last - first]
                count_up(left, len(table), first)
                permute(left, right, len(table), block_cipher, True, False, table)
            _look_up(left, right, lane, first, turn, layout, table, block_cipher, part)
            done += lane
            lane = 0
        if ended:
            return
        if elsewhere:
            past_short = position >= (short + ONE) * size - missing
            v = (position + (missing if past_short else ZERO)) // size // window_size
            first, last, start, num, turn = _window(v, layout)
            cipher = drawn_cipher(num, v & LOW, v >> HALF, ZERO, window_key, keys)
            table = blocks[:0]
        count = min(np.int64(min(stop, start + num) - position), LANES - lane)
        count_up(left[lane:], count, position - start)
        position += U64(count)
        lane += count


@kernel(INT64, INT64, INT64, READ_UINT32, READ_UINT32, READ_INT64, WRITE_INT64)
def block_invert(
    n: int,
    block_size: int,
    window: int,
    block_words: UInt32s,
    window_key: UInt32s,
    indices: Int64s,
    out: Int64s,
) -> None:
    """Write the positions of indices, by block-shuffle-v1.

    Parameters
    ----------
    n, block_size, window, block_words, window_key
        As for `block_permute_runs`.
    indices : int64 (num,)
        Indices in [0, n); fastest if neighbours are in the same window.
    out : int64 (num,)
        Gets the positions.
    """
    layout, block_cipher = _layout(n, block_size, window, block_words)
    size, _, window_size, _, missing = layout
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    within, keys = np.empty(LANES, U64), np.empty(MOST_WORDS, U64)
    cipher = block_cipher
    first = last = start = turn = ZERO
    for done in range(0, len(indices), LANES):
        part, slots = indices[done : done + LANES], out[done : done + LANES]
        for i in range(len(part)):
            left[i] = U64(part[i])
        divide_all(left, within, len(part), size, U64(n))
        permute(left, right, len(part), block_cipher, False, True, slots)
        i = 0
        while i < len(part):
            if not first <= U64(slots[i]) < last:
                v = U64(slots[i]) // window_size
                first, last, start, num, turn = _window(v, layout)
                cipher = drawn_cipher(num, v & LOW, v >> HALF, ZERO, window_key, keys)
            here, inside = slots[i:], within[i:]
            num_here = 0  # lanes from here on that are in this window
            while num_here < len(here) and first <= U64(here[num_here]) < last:
                num_here += 1
            for j in range(num_here):
                place = (U64(here[j]) - first) * size + inside[j]
                left[j] = place - (missing if place >= turn else ZERO)
            permute(left, right, num_here, cipher, False, True, here)
            for j in range(num_here):
                here[j] += np.int64(start)
            i += num_here
