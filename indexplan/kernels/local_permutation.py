"""The permutation local-shuffle-v1, both ways. It is frozen: other indices are another version."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, READ_UINT32, WRITE_INT64, helper, kernel
from indexplan.kernels.feistel import LANES, MOST_WORDS, count_up, drawn_cipher, permute
from indexplan.kernels.philox import HALF, LOW, U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from indexplan.kernels.feistel import Cipher

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]


@helper
def _window(
    place: U64, n: U64, window: U64, key: UInt32s, buffer: UInt64s
) -> tuple[U64, U64, Cipher]:
    """Return the start of a place's window, its number of places, and its cipher."""
    v = place // window
    start = v * window
    num = min(window, n - start)
    return start, num, drawn_cipher(num, v & LOW, v >> HALF, ZERO, key, buffer)


@kernel(INT64, INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def local_permute_runs(
    n: int, window: int, key: UInt32s, starts: Int64s, stops: Int64s, out: Int64s
) -> None:
    """Write the indices of runs of positions, one run after another, by local-shuffle-v1.

    Parameters
    ----------
    n : int
        Number of samples, 1 <= n < 2**63.
    window : int
        Samples per window, from 1 to 2**63 - 1.
    key : uint32 (2,)
        The Philox key that yields the key words of every window.
    starts, stops : int64 (num_runs,)
        Run k is the positions [starts[k], stops[k]), within [0, n); a run may be empty.
    out : int64 (sum(stops - starts),)
        Gets the indices.
    """
    left, right, keys = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(MOST_WORDS, U64)
    size = min(U64(window), U64(n))
    start, num, cipher = _window(ZERO, U64(n), size, key, keys)
    position = stop = ZERO
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
            for i in range(lane):
                part[i] += np.int64(start)
            done += lane
            lane = 0
        if ended:
            return
        if elsewhere:
            start, num, cipher = _window(position, U64(n), size, key, keys)
        count = min(np.int64(min(stop, start + num) - position), LANES - lane)
        count_up(left[lane:], count, position - start)
        position += U64(count)
        lane += count


@kernel(INT64, INT64, READ_UINT32, READ_INT64, WRITE_INT64)
def local_invert(n: int, window: int, key: UInt32s, indices: Int64s, out: Int64s) -> None:
    """Write the positions of indices, by local-shuffle-v1.

    Parameters
    ----------
    n, window, key
        As for `local_permute_runs`.
    indices : int64 (num,)
        Indices in [0, n); fastest if neighbours are in the same window.
    out : int64 (num,)
        Gets the positions.
    """
    left, right, keys = np.empty(LANES, U64), np.empty(LANES, U64), np.empty(MOST_WORDS, U64)
    size = min(U64(window), U64(n))
    start, num, cipher = _window(ZERO, U64(n), size, key, keys)
    done = 0
    while done < len(indices):
        if U64(indices[done]) - start >= num:
            start, num, cipher = _window(U64(indices[done]), U64(n), size, key, keys)
        here, lane = indices[done : done + LANES], 0
        while lane < len(here) and U64(here[lane]) - start < num:
            left[lane] = U64(here[lane]) - start
            lane += 1
        part = out[done:]
        permute(left, right, lane, cipher, False, True, part)
        for i in range(lane):
            part[i] += np.int64(start)
        done += lane
