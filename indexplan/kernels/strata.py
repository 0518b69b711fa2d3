"""Bins of strata, and where samples are in them. Frozen: other bits are another version.

A stratum is a row of interchangeable samples; in each epoch a shuffle of its own says which sample
is where. What a bin holds is described by *moves*: a move puts equally many samples of one stratum
into each of some consecutive bins, and names the move before it in these bins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    READ_INT64,
    READ_TABLE,
    READ_UINT32,
    WRITE_INT64,
    helper,
    kernel,
)
from indexplan.kernels.drawn import AT, C0, C1, C3, NUM_LANES, ROOM, N, draw_each
from indexplan.kernels.philox import U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

# Columns of the table of moves, in which row 0 stands for none: the first place in the row of all
# samples, the stratum, the first bin, how many samples go into each bin, and the move before
PLACE, STRATUM, BIN, MANY, BEFORE = range(5)

# Pieces to draw together, each some samples of a stratum in a bin: sorted by stratum, they share
# keys. More of them if there are more strata.
NUM_PIECES, MOST_PIECES = 2**16, 2**21


@helper
def last_up_to(edges: Int64s, number: int) -> int:
    """Return the interval that holds a number: the last i with edges[i] <= number."""
    low, high = 0, len(edges) - 2
    while low < high:
        middle = (low + high + 1) >> 1
        if edges[middle] <= number:
            low = middle
        else:
            high = middle - 1
    return low


@helper
def _move_of(moves: UInt32s, place: int) -> int:
    """Return the move of a place in the row of all samples."""
    low, high = 1, len(moves) - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if np.int64(moves[middle, PLACE]) <= place:
            low = middle
        else:
            high = middle - 1
    return low


@helper
def _by_stratum(strata: Int64s, num_strata: int) -> Int64s:
    """Return the order that sorts some pieces by stratum; 0, 1, 2, ... if they are few."""
    out = np.empty(len(strata), np.int64)
    if len(strata) < num_strata:  # then most need a cipher of their own in any case
        for k in range(len(strata)):
            out[k] = k
        return out
    ends = np.zeros(num_strata + 1, np.int64)
    for k in range(len(strata)):
        ends[strata[k] + 1] += 1
    for c in range(num_strata):
        ends[c + 1] += ends[c]
    for k in range(len(strata)):
        out[ends[strata[k]]] = k
        ends[strata[k]] += 1
    return out


@kernel(READ_INT64, READ_INT64, READ_INT64, WRITE_INT64)
def cut_bins(numbers: Int64s, bins: Int64s, sizes: Int64s, offsets: Int64s) -> None:
    """Write where the samples of some bins begin, one bin after another, and where the last end.

    Parameters
    ----------
    numbers : int64 (num,)
        The bins.
    bins : int64 (num_patterns + 1,)
        The first bin of each pattern, and the number of bins.
    sizes : int64 (num_patterns,)
        Samples in a bin of each pattern.
    offsets : int64 (num + 1,)
        Gets where they begin and end.
    """
    offsets[0] = 0
    for k in range(len(numbers)):
        offsets[k + 1] = offsets[k] + sizes[last_up_to(bins, numbers[k])]


@helper
def _set(lanes: UInt64s, lane: int, place: int, num: int, c: int) -> None:
    """Set a lane to look up a place of stratum c, which has `num` samples, or the inverse."""
    i = U64(lane)
    lanes[AT + i], lanes[N + i], lanes[C0 + i] = U64(place), U64(num), U64(c)
    lanes[C1 + i] = lanes[C3 + i] = ZERO


@kernel(
    READ_INT64,
    READ_INT64,
    READ_UINT32,
    READ_INT64,
    READ_INT64,
    READ_TABLE,
    READ_INT64,
    READ_UINT32,
    WRITE_INT64,
)
def fill_bins(
    numbers: Int64s,
    offsets: Int64s,
    key: UInt32s,
    bins: Int64s,
    lasts: Int64s,
    moves: UInt32s,
    firsts: Int64s,
    rows: UInt32s,
    out: Int64s,
) -> None:
    """Write the samples of some bins, one bin after another, in the order of their moves.

    Parameters
    ----------
    numbers, bins
        As for `cut_bins`, which gives the offsets.
    key : uint32 (2,)
        The Philox key that yields the key words of every stratum.
    lasts : int64 (num_patterns,)
        The last move of each pattern.
    moves : uint32 (num_moves + 1, 5)
        The table of moves.
    firsts : int64 (num_strata + 1,)
        The first place of each stratum in the row of all samples, and n.
    rows : uint32 (n,)
        The samples, sorted by stratum.
    out : int64 (offsets[-1],)
        Gets the samples.
    """
    most = min(max(NUM_PIECES, 16 * len(firsts)), MOST_PIECES, offsets[-1])
    # Pieces, in columns: a stratum, a place in it, samples from there on, and where they go.
    pieces = np.empty((4, most), np.int64)
    lanes, places = np.empty(ROOM, U64), np.empty(NUM_LANES, np.int64)
    begins, where = np.empty(NUM_LANES, np.int64), np.empty(NUM_LANES, np.int64)
    num = lane = seen = 0
    move = at = np.int64(0)
    while True:  # one loop, as a helper of what is below would compile longer
        while move == 0 and seen < len(numbers):
            move, at = lasts[last_up_to(bins, numbers[seen])], offsets[seen + 1]
            seen += 1
        if move > 0 and num < most:
            many = np.int64(moves[move, MANY])
            at -= many
            ahead = numbers[seen - 1] - np.int64(moves[move, BIN])
            pieces[0, num] = np.int64(moves[move, STRATUM])
            pieces[1, num] = np.int64(moves[move, PLACE]) + ahead * many
            pieces[2, num], pieces[3, num] = many, at
            num += 1
            move = np.int64(moves[move, BEFORE])
            continue
        order = _by_stratum(pieces[0, :num], len(firsts) - 1)
        for k in range(num + 1):  # one more draws what is left: a second call would compile longer
            many = np.int64(1)
            if k < num:
                i = order[k]
                c, place, many, to = pieces[0, i], pieces[1, i], pieces[2, i], pieces[3, i]
                first, n = firsts[c], firsts[c + 1] - firsts[c]
            for i in range(many):
                if lane == NUM_LANES or k == num:
                    draw_each(lanes, lane, key, False, places)
                    for j in range(lane):
                        out[where[j]] = np.int64(rows[begins[j] + places[j]])
                    lane = 0
                if k < num:
                    _set(lanes, lane, place + i - first, n, c)
                    begins[lane], where[lane] = first, to + i
                    lane += 1
        if move == 0:
            return
        num = 0


@helper
def _place_of(rows: UInt32s, low: int, high: int, sample: int) -> int:
    """Return where a sample is among the places from `low` to `high`, whose samples rise."""
    while low < high:
        middle = (low + high) >> 1
        if np.int64(rows[middle]) < sample:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(
    READ_INT64,
    READ_INT64,
    READ_INT64,
    READ_UINT32,
    READ_TABLE,
    READ_INT64,
    READ_UINT32,
    WRITE_INT64,
)
def find_bins(
    samples: Int64s,
    lows: Int64s,
    highs: Int64s,
    key: UInt32s,
    moves: UInt32s,
    firsts: Int64s,
    rows: UInt32s,
    out: Int64s,
) -> None:
    """Write the numbers of the bins that hold some samples.

    Parameters
    ----------
    samples : int64 (num,)
        The samples.
    lows, highs : int64 (num,)
        The places [low, high) of `rows` among which each sample is; their samples rise.
    key, moves, firsts, rows
        As for `fill_bins`.
    out : int64 (num,)
        Gets the numbers.
    """
    lanes, places = np.empty(ROOM, U64), np.empty(NUM_LANES, np.int64)
    strata = np.empty(len(samples), np.int64)
    for k in range(len(samples)):
        out[k] = _place_of(rows, lows[k], highs[k] - 1, samples[k])
        strata[k] = last_up_to(firsts, out[k])
    order = _by_stratum(strata, len(firsts) - 1)
    for done in range(0, len(order), NUM_LANES):
        where = order[done : done + NUM_LANES]
        for lane in range(len(where)):
            c = strata[where[lane]]
            _set(lanes, lane, out[where[lane]] - firsts[c], firsts[c + 1] - firsts[c], c)
        draw_each(lanes, len(where), key, True, places)
        for lane in range(len(where)):
            place = firsts[strata[where[lane]]] + places[lane]
            move = _move_of(moves, place)
            ahead = (place - np.int64(moves[move, PLACE])) // np.int64(moves[move, MANY])
            out[where[lane]] = np.int64(moves[move, BIN]) + ahead
