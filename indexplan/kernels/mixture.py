"""Which source a mixture reads at a place, both ways. Frozen: mixture-v1.

A phase of weights repeats a row of sources. Of its D slots, source j holds share_j, spread so
evenly that after t slots it has been dealt share_j * t / D times, give or take less than one. Each
period begins at a slot of its own, its turn, in the row or in the row read backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT32,
    READ_INT64,
    READ_UINT16,
    READ_UINT32,
    WRITE_INT32,
    WRITE_INT64,
    helper,
    kernel,
)
from indexplan.kernels.philox import HALF, LOW, U64, ZERO, philox

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]
    UInt16s: TypeAlias = NDArray[np.uint16]
    UInt32s: TypeAlias = NDArray[np.uint32]


@helper
def _turn(period: int, phase: int, turns: Int32s, key: UInt32s) -> int:
    """Return where a period begins: at a slot of the row, or D + a slot of the row backwards."""
    if len(turns) == 1:
        return int(turns[0])
    p, num = U64(period), U64(len(turns))
    w0, w1, _, _ = philox(p & LOW, p >> HALF, ZERO, U64(phase), U64(key[0]), U64(key[1]))
    return int(turns[(w1 * num + (w0 * num >> HALF)) >> HALF])


@helper
def _before(mine: Int32s, x: int) -> int:
    """Return how many slots of a source are among the first x."""
    low, high = 0, len(mine)
    while low < high:
        middle = (low + high) >> 1
        if mine[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


@helper
def _dealt(mine: Int32s, turn: int, r: int, num_slots: int) -> int:
    """Return how often a source is among the first r slots of a period."""
    wrapped, backwards = 0, turn >= num_slots
    begin = turn - num_slots if backwards else turn
    end = begin + r
    if end > num_slots:
        wrapped, end = len(mine), end - num_slots
    if backwards:
        return wrapped + _before(mine, num_slots - begin) - _before(mine, num_slots - end)
    return wrapped + _before(mine, end) - _before(mine, begin)


@kernel(INT64, INT64, READ_UINT32, READ_INT64, READ_INT64, READ_INT32, READ_INT32, WRITE_INT64)
def count_before(
    place: int,
    phase: int,
    key: UInt32s,
    base: Int64s,
    first: Int64s,
    slots: Int32s,
    turns: Int32s,
    out: Int64s,
) -> None:
    """Write how many units of each source are read before a place of a phase.

    Parameters
    ----------
    place : int
        Counted from the phase's start, 0 <= place < 2**63.
    phase, key, base, first, slots, turns
        As for `deal`.
    out : int64 (k,)
        Gets the counts, including those of earlier phases.
    """
    num_slots = len(slots)
    period, r = divmod(place, num_slots)
    turn = _turn(period, phase, turns, key)
    for j in range(len(base)):
        mine = slots[first[j] : first[j + 1]]
        out[j] = base[j] + period * len(mine) + _dealt(mine, turn, r, num_slots)


@kernel(
    INT64,
    INT64,
    READ_UINT32,
    READ_INT64,
    READ_INT64,
    READ_INT32,
    READ_UINT16,
    READ_INT32,
    READ_INT64,
    READ_INT64,
    WRITE_INT32,
    WRITE_INT64,
)
def deal(
    shift: int,
    phase: int,
    key: UInt32s,
    base: Int64s,
    first: Int64s,
    slots: Int32s,
    row: UInt16s,
    turns: Int32s,
    starts: Int64s,
    stops: Int64s,
    sources: Int32s,
    numbers: Int64s,
) -> None:
    """Write which unit of which source is read at runs of positions, in a phase of weights.

    Parameters
    ----------
    shift : int
        What to add to positions to get places counted from the phase's start.
    phase : int
        The phase's number.
    key : uint32 (2,)
        The Philox key that draws the turn of every period.
    base : int64 (k,)
        Units of each source before the phase.
    first, slots : int64 (k + 1,), int32 (D,)
        Source j has the slots slots[first[j] : first[j + 1]], rising.
    row : uint16 (D,)
        As for `even_row`.
    turns : int32
        Slots where a period may begin; D is added to those in the row read backwards.
    starts, stops : int64 (num_runs,)
        The runs of positions.
    sources, numbers : int32 and int64 (sum(stops - starts),)
        Get the sources, and the numbers of their units, counted from the start of the whole run.
    """
    num_slots, k = len(row), len(base)
    following = np.empty(k, np.int64)
    i = turn = 0
    drawn = -1  # the period whose turn was drawn last
    for run in range(len(starts)):
        num = stops[run] - starts[run]
        if num <= 0:
            continue
        period, r = divmod(starts[run] + shift, num_slots)
        if period != drawn:
            turn, drawn = _turn(period, phase, turns, key), period
        counted = num >= k  # else only the numbers that are needed are computed
        if counted:
            for j in range(k):
                mine = slots[first[j] : first[j + 1]]
                following[j] = base[j] + period * len(mine) + _dealt(mine, turn, r, num_slots)
        end = i + num
        while i < end:
            backwards = turn >= num_slots
            x = turn - num_slots + r if backwards else turn + r
            x = x - num_slots if x >= num_slots else x
            # to the end of the run, of the period or of the row, whichever comes first
            until = i + min(end - i, num_slots - r, num_slots - x)
            r += until - i
            x, step = (num_slots - 1 - x, -1) if backwards else (x, 1)
            if counted:
                while i < until:
                    j = row[x]
                    sources[i] = j
                    numbers[i] = following[j]
                    following[j] += 1
                    x += step
                    i += 1
            else:
                while i < until:
                    j = row[x]
                    mine = slots[first[j] : first[j + 1]]
                    so_far = _dealt(mine, turn, r - (until - i), num_slots)
                    sources[i] = j
                    numbers[i] = base[j] + period * len(mine) + so_far
                    x += step
                    i += 1
            if r == num_slots and i < end:
                period, r = period + 1, 0
                turn, drawn = _turn(period, phase, turns, key), period


@kernel(INT64, READ_UINT32, INT64, READ_INT32, INT64, READ_INT32, READ_INT64, WRITE_INT64)
def find(
    phase: int,
    key: UInt32s,
    base: int,
    mine: Int32s,
    num_slots: int,
    turns: Int32s,
    numbers: Int64s,
    out: Int64s,
) -> None:
    """Write at which places of a phase some units of a source are read.

    Parameters
    ----------
    phase, key, turns
        As for `deal`.
    base : int
        Units of the source before the phase.
    mine : int32 (share,)
        The source's slots.
    num_slots : int
        D, the slots of a period.
    numbers : int64 (num,)
        The units' numbers, from `base` on.
    out : int64 (num,)
        Gets their places, counted from the phase's start.
    """
    share = len(mine)
    for i in range(len(numbers)):
        period, c = divmod(numbers[i] - base, share)
        turn = _turn(period, phase, turns, key)
        if turn < num_slots:
            begin, slot = turn, mine[(_before(mine, turn) + c) % share]
        else:
            begin = turn - num_slots
            skipped = share - _before(mine, num_slots - begin)
            slot = num_slots - 1 - mine[share - 1 - (skipped + c) % share]
        out[i] = period * num_slots + (slot - begin + num_slots) % num_slots
