"""The draws of weighted-v1, and those of each sample. Frozen: other bits are another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_UINT32,
    READ_UINT64,
    WRITE_INT64,
    helper,
    kernel,
)
from indexplan.kernels.feistel import LANES, cipher_of, count_up, permute
from indexplan.kernels.philox import ONE, U64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]


@helper
def _look_up(
    left: UInt64s,
    num: int,
    bits: int,
    offset: int,
    shift: int,
    coarse: int,
    thresholds: UInt64s,
    guide: UInt32s,
    out: Int64s,
) -> None:
    """Write for each slot in `out` the place of the row on which it falls to `left`."""
    # 41 ns a draw for n = 10**7, of which the two ciphers take 14. With two comparisons without
    # branches before the loop: 66; with the first threshold of all lanes read before: 41.
    last = len(thresholds) - 2
    low, high = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    for i in range(num):
        left[i] = (U64(out[i]) << U64(bits)) + U64(offset)
        cell = left[i] >> U64(shift)
        low[i] = np.int64(guide[cell]) << coarse
        high[i] = min(((np.int64(guide[cell + ONE]) + 1) << coarse) - 1, last)
    for i in range(num):
        first, stop, number = low[i], high[i], left[i]
        while first < stop:
            middle = (first + stop + 1) >> 1
            if thresholds[middle] <= number:
                first = middle
            else:
                stop = middle - 1
        left[i] = U64(first)


@kernel(
    INT64,
    INT64,
    INT64,
    INT64,
    INT64,
    READ_UINT32,
    READ_UINT32,
    READ_UINT64,
    READ_UINT32,
    READ_INT64,
    READ_INT64,
    WRITE_INT64,
)
def draw_runs(
    size: int,
    bits: int,
    offset: int,
    shift: int,
    coarse: int,
    words: UInt32s,
    row_words: UInt32s,
    thresholds: UInt64s,
    guide: UInt32s,
    starts: Int64s,
    stops: Int64s,
    out: Int64s,
) -> None:
    """Write the samples at runs of positions, one run after another, by weighted-v1.

    Parameters
    ----------
    size : int
        Draws in an epoch.
    bits, offset : int
        A slot consists of 2**bits numbers; the first slot begins at the offset.
    shift, coarse, thresholds, guide
        As in `indexplan.kernels.thresholds`.
    words, row_words : uint32
        The key words of the epoch and of the row.
    starts, stops, out
        As for `permute_runs`.
    """
    slots = cipher_of(U64(size), words.astype(U64))
    row = cipher_of(U64(len(thresholds) - 1), row_words.astype(U64))
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    k = lane = done = count = 0
    position = stop = np.int64(0)
    while True:
        while position == stop and k < len(starts):
            position, stop = starts[k], stops[k]
            k += 1
        ended = position == stop
        if lane == LANES or ended:
            part = out[done:]
            permute(left, right, lane, slots, count == lane, False, part)
            _look_up(left, lane, bits, offset, shift, coarse, thresholds, guide, part)
            permute(left, right, lane, row, False, False, part)
            done += lane
            lane = 0
        if ended:
            return
        count = min(stop - position, LANES - lane)
        count_up(left[lane:], count, U64(position))
        position += count
        lane += count


@kernel(INT64, INT64, READ_UINT32, READ_UINT64, READ_INT64, WRITE_INT64, WRITE_INT64)
def slots_of(
    bits: int,
    offset: int,
    row_words: UInt32s,
    thresholds: UInt64s,
    indices: Int64s,
    starts: Int64s,
    stops: Int64s,
) -> None:
    """Write the slots [start, stop) of each of some samples.

    Parameters
    ----------
    bits, offset, row_words, thresholds
        As for `draw_runs`.
    indices : int64 (num,)
        Samples, from 0 to n - 1.
    starts, stops : int64 (num,)
        Get the slots.
    """
    row = cipher_of(U64(len(thresholds) - 1), row_words.astype(U64))
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    up = (ONE << U64(bits)) - ONE - U64(offset)  # added to round up
    for done in range(0, len(indices), LANES):
        part, places = indices[done : done + LANES], starts[done : done + LANES]
        for i in range(len(part)):
            left[i] = U64(part[i])
        permute(left, right, len(part), row, False, True, places)
        for i in range(len(part)):
            place = places[i]
            stops[done + i] = np.int64((thresholds[place + 1] + up) >> U64(bits))
            places[i] = np.int64((thresholds[place] + up) >> U64(bits))


@helper
def _take_first(positions: Int64s, runs: Int64s, num: int, out: Int64s) -> None:
    """Keep the first position of each run."""
    for i in range(num):
        k = runs[i]
        if out[k] < 0 or positions[i] < out[k]:
            out[k] = positions[i]


@kernel(INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def first_of(size: int, words: UInt32s, starts: Int64s, stops: Int64s, out: Int64s) -> None:
    """Write the first position that falls on each run of slots, without listing the others.

    For a run of `count` slots it inverts all of them; or, if these are more than size / count, it
    tries positions from the first on, some size / count of them until one falls on the run.

    Parameters
    ----------
    size, words
        As for `draw_runs`.
    starts, stops : int64 (num,)
        Run k is the slots [starts[k], stops[k]).
    out : int64 (num,)
        Gets the positions; -1 for a run that is empty.
    """
    cipher = cipher_of(U64(size), words.astype(U64))
    left, right, start = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(LANES, U64)
    found, runs = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    lane = 0
    for k in range(len(starts)):
        out[k] = -1
        slot, stop = starts[k], stops[k]
        position = np.int64(0)
        while stop - slot > size // max(stop - slot, 1) and out[k] < 0:
            num = min(size - position, LANES)
            count_up(start, num, U64(position))
            permute(start, right, num, cipher, True, False, found)
            for i in range(num - 1, -1, -1):
                if slot <= found[i] < stop:
                    out[k] = position + i
            position += num
        if out[k] >= 0:
            continue
        while slot < stop:
            count = min(stop - slot, LANES - lane)
            count_up(left[lane:], count, U64(slot))
            runs[lane : lane + count] = k
            slot += count
            lane += count
            if lane == LANES:
                permute(left, right, lane, cipher, False, True, found)
                _take_first(found, runs, lane, out)
                lane = 0
    permute(left, right, lane, cipher, False, True, found)
    _take_first(found, runs, lane, out)
