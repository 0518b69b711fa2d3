"""Rows of shards read in lanes, both ways: shard-shuffle-v1. Frozen: other bits are a new version.

The epoch's samples, shard after shard, form a row, which `edges` and `deltas` describe: at the
places [edges[k], edges[k + 1]), a stretch, the sample is the place plus deltas[k]. The row is cut
into lanes, which a grid of stripes reads side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    READ_INT64,
    READ_UINT32,
    WRITE_INT64,
    helper,
    kernel,
)
from indexplan.kernels.drawn import AT, C0, C1, C3, NUM_LANES, ROOM, N, draw_each
from indexplan.kernels.feistel import (
    LANES,
    MOST_WORDS,
    cipher_of,
    count_up,
    drawn_cipher,
    permute,
    rounds_of,
)
from indexplan.kernels.philox import HALF, LOW, U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from indexplan.kernels.feistel import Cipher

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

# What is kept of a window, so that its next stripe need not compute it again: the window, its first
# place and number of places, the stretches in which it is; then its cipher and the key words.
WAYS = 256  # lanes for which it is kept, in 128 KiB
_LANE, _NUMBER, _BASE, _SIZE, _FIRST, _LAST, _A, _B, _FACTOR, _DOWN, _SHIFT = range(11)
_KEYS = 16
_KEPT = _KEYS + MOST_WORDS
# Up to so many stretches of a window are compared with each place; with more, bisection, which took
# 2.5 times as long at 14 stretches, and 1.9 at 46. Reads of few places lose some: a batch of 256 in
# stripes of 1 place took 1.06 times as long at 20 stretches, 1.33 at 46; in those of 64, 0.9.
FEW = 48


@helper
def lane_start(lane: int, grid: Int64s) -> int:
    """Return the place of the row at which a lane starts; past the last lane, the row's end."""
    n, shift, each, lanes = grid[0], grid[1], grid[2], grid[3]
    stop, ahead = n + shift, lane * each
    rounds = stop // (each * lanes)
    start: int = ahead * rounds + min(stop - rounds * each * lanes, ahead) - min(shift, ahead)
    return start


@helper
def _lane_of(place: int, grid: Int64s) -> int:
    """Return the lane of a place of the row: the last lane that starts there or before."""
    low, high = 0, grid[3] - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if lane_start(middle, grid) <= place:
            low = middle
        else:
            high = middle - 1
    return low


@helper
def _stretch_of(edges: Int64s, low: int, high: int, place: int) -> int:
    """Return the last of the stretches from `low` to `high` that starts at a place or before."""
    while low < high:
        middle = (low + high + 1) >> 1
        if edges[middle] <= place:
            low = middle
        else:
            high = middle - 1
    return low


@kernel(READ_INT64, READ_UINT32, WRITE_INT64, WRITE_INT64)
def lay_out(firsts: Int64s, words: UInt32s, edges: Int64s, deltas: Int64s) -> int:
    """Lay out the shards that are not empty in a shuffled row; return how many these are.

    Parameters
    ----------
    firsts : int64 (num_shards + 1,)
        The first sample of each shard, and the number of samples.
    words : uint32 (2 * num_rounds(num_shards),)
        The key words of the shuffle of the shards.
    edges : int64 (num_shards + 1,)
        Gets where the stretches of the row start, each with at least one sample, and the row's end.
    deltas : int64 (num_shards,)
        Gets what to add to a place of a stretch to get its sample.
    """
    num_shards, num = len(firsts) - 1, 0
    cipher = cipher_of(U64(num_shards), words.astype(U64))
    left, right, which = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(LANES, np.int64)
    edges[0] = 0
    for done in range(0, num_shards, LANES):
        count = min(num_shards - done, LANES)
        count_up(left, count, U64(done))
        permute(left, right, count, cipher, True, False, which)
        for i in range(count):
            first = firsts[which[i]]
            size = firsts[which[i] + 1] - first
            edges[num + 1], deltas[num] = edges[num] + size, first - edges[num]
            num += size > 0
    return num


@kernel(READ_INT64, READ_INT64, READ_INT64, READ_UINT32, WRITE_INT64, WRITE_INT64)
def reorder_pieces(
    edges: Int64s,
    deltas: Int64s,
    grid: Int64s,
    key: UInt32s,
    new_edges: Int64s,
    new_deltas: Int64s,
) -> int:
    """Shuffle the pieces of shards in each lane; return how many pieces there are.

    Parameters
    ----------
    edges : int64 (num + 1,)
    deltas : int64 (num,)
        The row, as `lay_out` gives it.
    grid : int64 (5,)
        The number of samples, the places by which the grid is shifted, places of each lane in a
        stripe, lanes, and places in a window.
    key : uint32 (2,)
        The Philox key that yields the key words of every lane.
    new_edges, new_deltas : int64 (3 * num + 1,) and (3 * num,)
        Get the new row.
    """
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    words, which = np.empty(MOST_WORDS, U64), np.empty(LANES, np.int64)
    n, place, k, num = grid[0], 0, 0, 0
    new_edges[0] = 0
    while place < n:  # a lane starts at place
        lane = _lane_of(place, grid)
        end = lane_start(lane + 1, grid)
        if edges[k + 1] >= end:  # a single shard fills all lanes up to the one in which it ends
            last = lane_start(_lane_of(edges[k + 1] - 1, grid), grid)
            stop = edges[k + 1] if last <= place else last
            if edges[k + 1] == lane_start(_lane_of(edges[k + 1] - 1, grid) + 1, grid):
                stop = edges[k + 1]
            new_deltas[num], new_edges[num + 1] = deltas[k], stop
            num += 1
            k += edges[k + 1] == stop
            place = stop
            continue
        first = k
        while edges[k + 1] < end:
            k += 1
        pieces = k - first + 1
        cipher = drawn_cipher(U64(pieces), U64(lane), ZERO, ZERO, key, words)
        for done in range(0, pieces, LANES):
            count = min(pieces - done, LANES)
            count_up(left, count, U64(done))
            permute(left, right, count, cipher, True, False, which)
            for i in range(count):
                j = first + which[i]
                start = max(edges[j], place)
                stop = new_edges[num] + min(edges[j + 1], end) - start
                new_deltas[num] = start + deltas[j] - new_edges[num]
                new_edges[num + 1] = stop
                num += 1
        k += edges[k + 1] == end
        place = end
    return num


@helper
def _look_at(
    kept: UInt64s,
    lane: int,
    number: int,
    grid: Int64s,
    key: UInt32s,
    edges: Int64s,
) -> Cipher:
    """Compute what is kept of a window, unless it is there already; return its cipher."""
    if kept[_SIZE] == ZERO or kept[_LANE] != U64(lane) or kept[_NUMBER] != U64(number):
        start, window = lane_start(lane, grid), grid[4]
        base = start + number * window
        size = min(window, lane_start(lane + 1, grid) - base)
        first = _stretch_of(edges, 0, len(edges) - 2, base)
        last = _stretch_of(edges, first, len(edges) - 2, base + size - 1)
        kept[_LANE], kept[_NUMBER], kept[_BASE] = U64(lane), U64(number), U64(base)
        kept[_SIZE], kept[_FIRST], kept[_LAST] = U64(size), U64(first), U64(last)
        v = U64(number)
        made = drawn_cipher(U64(size), v & LOW, v >> HALF, U64(lane), key, kept[_KEYS:])
        kept[_A], kept[_B] = made[1], made[2]
        kept[_FACTOR], kept[_DOWN], kept[_SHIFT] = made[3]
        return made
    words = 2 * rounds_of(np.int64(kept[_SIZE]))
    three = (kept[_FACTOR], kept[_DOWN], kept[_SHIFT])
    return kept[_SIZE], kept[_A], kept[_B], three, kept[_KEYS : _KEYS + words]


@helper
def _look_up(
    left: UInt64s, num: int, kept: UInt64s, edges: Int64s, deltas: Int64s, out: Int64s
) -> None:
    """Replace places of a window by samples."""
    base, first, last = np.int64(kept[_BASE]), np.int64(kept[_FIRST]), np.int64(kept[_LAST])
    if last - first > FEW:
        for i in range(num):
            place = base + out[i]
            out[i] = place + deltas[_stretch_of(edges, first, last, place)]
        return
    shift = base + deltas[first]
    for i in range(num):
        left[i] = U64(out[i])
        out[i] += shift
    for k in range(first + 1, last + 1):
        edge, more = U64(edges[k] - base), deltas[k] - deltas[k - 1]
        for i in range(num):
            out[i] += more if left[i] >= edge else 0


@helper
def _deal(
    lane: int,
    place: int,
    num: int,
    grid: Int64s,
    key: UInt32s,
    edges: Int64s,
    deltas: Int64s,
    table: UInt64s,
    left: UInt64s,
    right: UInt64s,
    out: Int64s,
) -> None:
    """Write the samples at places of a lane."""
    way, window = lane % WAYS * _KEPT, grid[4]
    kept = table[way : way + _KEPT]
    done = 0
    while done < num:
        number = (place + done) // window
        inside = place + done - number * window
        count = min(num - done, window - inside, LANES)
        cipher = _look_at(kept, lane, number, grid, key, edges)
        count_up(left, count, U64(inside))
        permute(left, right, count, cipher, True, False, out[done:])
        _look_up(left, count, kept, edges, deltas, out[done:])
        done += count


@kernel(READ_INT64, READ_UINT32, READ_INT64, READ_INT64, READ_INT64, READ_INT64, WRITE_INT64)
def deal_runs(
    grid: Int64s,
    key: UInt32s,
    edges: Int64s,
    deltas: Int64s,
    starts: Int64s,
    stops: Int64s,
    out: Int64s,
) -> None:
    """Write the samples at runs of positions, one run after another.

    Parameters
    ----------
    grid, edges, deltas
        As for `reorder_pieces`.
    key : uint32 (2,)
        The Philox key that yields the key words of every window.
    starts, stops, out
        As for `permute_runs`.
    """
    left, right, dealt = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(LANES, np.int64)
    table = np.empty(WAYS * _KEPT, U64)
    for way in range(WAYS):
        table[way * _KEPT + _SIZE] = ZERO
    shift, each, lanes = grid[1], grid[2], grid[3]
    stripe, done = each * lanes, 0
    for run in range(len(starts)):
        position = starts[run]
        while position < stops[run]:
            number = (position + shift) // stripe
            at = position + shift - number * stripe
            rounds = min((stops[run] - position) // stripe, LANES // each) if at == 0 else 0
            if rounds > 1:  # several whole stripes, lane by lane: 6.8 ns an index instead of 8.6
                for lane in range(lanes):
                    place = number * each - min(max(shift - lane * each, 0), each)
                    num = rounds * each
                    _deal(lane, place, num, grid, key, edges, deltas, table, left, right, dealt)
                    for i in range(rounds):
                        first = done + i * stripe + lane * each
                        for j in range(each):
                            out[first + j] = dealt[i * each + j]
                num = rounds * stripe
            else:
                lane = at // each
                ahead = lane * each
                place = number * each + at - ahead - min(max(shift - ahead, 0), each)
                num = min(stops[run] - position, each - at + ahead)
                _deal(lane, place, num, grid, key, edges, deltas, table, left, right, out[done:])
            position += num
            done += num


@kernel(READ_INT64, READ_UINT32, READ_INT64, WRITE_INT64)
def find_places(grid: Int64s, key: UInt32s, places: Int64s, out: Int64s) -> None:
    """Write the positions at which places of the row are read.

    Parameters
    ----------
    grid, key
        As for `deal_runs`.
    places : int64 (num,)
        Places in the row.
    out : int64 (num,)
        Gets the positions.
    """
    lanes, found = np.empty(ROOM, U64), np.empty(NUM_LANES, np.int64)
    which, begins = np.empty(NUM_LANES, np.int64), np.empty(NUM_LANES, np.int64)
    shift, each, window = grid[1], grid[2], grid[4]
    stripe = each * grid[3]
    for done in range(0, len(places), NUM_LANES):
        part = places[done : done + NUM_LANES]
        for i in range(len(part)):
            lane = _lane_of(part[i], grid)
            start = lane_start(lane, grid)
            number = (part[i] - start) // window
            begin = number * window
            size = min(window, lane_start(lane + 1, grid) - start - begin)
            which[i], begins[i] = lane, begin
            at, v = U64(i), U64(number)
            lanes[AT + at], lanes[N + at] = U64(part[i] - start - begin), U64(size)
            lanes[C0 + at], lanes[C1 + at], lanes[C3 + at] = v & LOW, v >> HALF, U64(lane)
        draw_each(lanes, len(part), key, True, found)
        for i in range(len(part)):
            ahead = which[i] * each
            place = begins[i] + found[i] + min(max(shift - ahead, 0), each)
            number = place // each
            out[done + i] = number * stripe + ahead + place - number * each - shift
