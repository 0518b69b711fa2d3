"""Hundreds of small shuffles at once: each lane has a permutation and keys of its own.

Most of the time of a small shuffle goes into drawing its keys: 12 Philox counters for one index.
Here all lanes draw theirs side by side, in vector instructions, and nothing is sorted or kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import helper
from indexplan.kernels.feistel import MOST_WORDS, drawn_cipher, f, permute, rounds_of, times
from indexplan.kernels.philox import ONE, TOP_BIT, U64, ZERO, philox

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

NUM_LANES = 256  # 156 ns an index of ten balanced classes; 128 lanes: 165, 512: 172
ALIKE = 12  # so many neighbours with one cipher draw its keys only once: 8 to 16 are as good

# All rows of lanes are in one array, at constant distances: LLVM would not know whether several
# arrays overlap, and gives up before it has compared so many.
_ROW = [U64(row * NUM_LANES) for row in range(11)]
AT, N, C0, C1, C3, _A, _B, _ROUNDS, _LEFT, _RIGHT, _WHO = _ROW
ROOM = 11 * NUM_LANES


@helper
def _less(x: U64, y: U64) -> U64:
    """Return 1 if x < y, else 0; both below 2**63."""
    less: U64 = (x - y) >> TOP_BIT
    return less


@helper
def _forward(lanes: UInt64s, num: int, j: U64, k0: U64, k1: U64) -> None:
    """Do rounds j and j + 1 of the lanes that have them."""
    for k in range(num):
        i = U64(k)
        w0, w1, w2, w3 = philox(lanes[C0 + i], lanes[C1 + i], j >> ONE, lanes[C3 + i], k0, k1)
        a, b, left, right = lanes[_A + i], lanes[_B + i], lanes[_LEFT + i], lanes[_RIGHT + i]
        on = ZERO - _less(j, lanes[_ROUNDS + i])  # all bits or none
        left += f(right, w0, w1, a) & on
        left = min(left, left - a)  # a negative number is a large one
        right += f(left, w2, w3, b) & on
        lanes[_LEFT + i], lanes[_RIGHT + i] = left, min(right, right - b)


@helper
def _backward(lanes: UInt64s, num: int, j: U64, k0: U64, k1: U64) -> None:
    """Undo rounds j + 1 and j of the lanes that have them."""
    for k in range(num):
        i = U64(k)
        w0, w1, w2, w3 = philox(lanes[C0 + i], lanes[C1 + i], j >> ONE, lanes[C3 + i], k0, k1)
        a, b, left, right = lanes[_A + i], lanes[_B + i], lanes[_LEFT + i], lanes[_RIGHT + i]
        on = ZERO - _less(j, lanes[_ROUNDS + i])
        right -= f(left, w2, w3, b) & on
        right = min(right, right + b)
        left -= f(right, w0, w1, a) & on
        lanes[_LEFT + i], lanes[_RIGHT + i] = min(left, left + a), right


@helper
def _run_end(lanes: UInt64s, start: int, num: int) -> int:
    """Return where the run of lanes with the same cipher ends that begins there."""
    i, stop = U64(start), start + 1
    while stop < num:
        differ = lanes[N + i] ^ lanes[N + U64(stop)]
        for row in (C0, C1, C3):
            differ |= lanes[row + i] ^ lanes[row + U64(stop)]
        if differ > ZERO:
            break
        stop += 1
    return stop


@helper
def _move(lanes: UInt64s, i: U64, j: U64) -> None:
    """Copy what lane j looks up, and its network, to lane i."""
    for row in (AT, N, C0, C1, C3, _A, _B, _ROUNDS, _WHO):
        lanes[row + i] = lanes[row + j]


@helper
def draw_each(lanes: UInt64s, num: int, key: UInt32s, inverse: bool, out: Int64s) -> None:
    """Write the image of a number in each lane under the lane's drawn cipher.

    Lane i has its number at lanes[AT + i], in [0, lanes[N + i]), and draws key words from Philox
    counters (lanes[C0 + i], lanes[C1 + i], 0 and up, lanes[C3 + i]), below 2**32. `lanes`, an array
    of ROOM numbers, is overwritten.
    """
    words = np.empty(MOST_WORDS, U64)
    left = lanes[np.int64(_LEFT) : np.int64(_LEFT) + NUM_LANES]
    right = lanes[np.int64(_RIGHT) : np.int64(_RIGHT) + NUM_LANES]
    stop = kept = 0
    while stop < num:  # finish long runs of lanes with the same cipher; move the others together
        start, stop = stop, _run_end(lanes, stop, num)
        i = U64(start)
        if stop - start < ALIKE:
            for k in range(start, stop):
                _move(lanes, U64(kept), U64(k))
                lanes[_WHO + U64(kept)] = U64(k)
                kept += 1
            continue
        cipher = drawn_cipher(lanes[N + i], lanes[C0 + i], lanes[C1 + i], lanes[C3 + i], key, words)
        for k in range(stop - start):
            left[k] = lanes[AT + i + U64(k)]
        permute(left, right, stop - start, cipher, False, inverse, out[start:])
    num = kept
    k0, k1, most = U64(key[0]), U64(key[1]), np.int64(0)
    for k in range(num):  # the sides and rounds of each lane's network
        i = U64(k)
        n = lanes[N + i]
        last = n - ONE
        root = U64(np.int64(np.sqrt(np.float64(np.int64(last)))))  # off by at most one
        root -= _less(last, root * root)
        root += ONE - _less(last, (root + ONE) * (root + ONE))
        a = root + ONE  # ceil(sqrt(n))
        b = last // a + ONE
        rounds = rounds_of(np.int64(n))
        lanes[_A + i], lanes[_B + i], lanes[_ROUNDS + i] = a, b + (b & ONE), U64(rounds)
        most = max(most, rounds)
    while num > 0:
        for k in range(num):
            i = U64(k)
            lanes[_LEFT + i], lanes[_RIGHT + i] = divmod(lanes[AT + i], lanes[_B + i])
        for j in range(0, most, 2):
            if inverse:
                _backward(lanes, num, U64(most - 2 - j), k0, k1)
            else:
                _forward(lanes, num, U64(j), k0, k1)
        outside = ZERO
        for k in range(num):  # cycle walking, with all lanes outside [0, n) side by side
            i = U64(k)
            image = times(lanes[_LEFT + i], lanes[_B + i]) + lanes[_RIGHT + i]
            lanes[AT + i] = image
            out[np.int64(lanes[_WHO + i])] = np.int64(image)
            if image >= lanes[N + i]:
                _move(lanes, outside, i)
                outside += ONE
        num = np.int64(outside)
