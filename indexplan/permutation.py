"""The permutations shuffle-v1 and block-shuffle-v1, forward and inverse, and Philox4x32-10."""

from __future__ import annotations

from typing import Any

import numpy as np

from indexplan.compiling import INT64, READ_INT64, READ_UINT32, WRITE_INT64, helper, kernel

LANES = 256
ZERO = np.uint64(0)
ONE = np.uint64(1)
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
M0 = np.uint64(0xD2511F53)
M1 = np.uint64(0xCD9E8D57)
W0 = np.uint64(0x9E3779B9)
W1 = np.uint64(0xBB67AE85)


def num_rounds(n: int) -> int:
    """Return how many Feistel rounds shuffle-v1 makes on [0, n)."""
    return 24 if n < 2**12 else 12 if n < 2**20 else 8


_num_rounds = helper(num_rounds)


@helper
def _sides(n):
    """Return a = ceil(sqrt(n)) and b = ceil(n / a), plus one if odd."""
    root = ZERO  # floor(sqrt(n - 1)), bit by bit
    for bit in range(31, -1, -1):
        trial = root | (ONE << np.uint64(bit))
        if trial * trial <= n - ONE:
            root = trial
    a = root + ONE if n > ONE else ONE
    b = (n + a - ONE) // a
    return a, b + (b & ONE)


@helper
def _f(x, k0, k1, m):
    t = ((x ^ k0) & LOW) * M0
    t = ((t ^ (t >> HALF) ^ k1) & LOW) * M1
    t = (t ^ (t >> HALF)) & LOW
    return (t * (m & LOW)) >> HALF


@helper
def _plus(x, y, m):
    """Return (x + y) mod m of x, y < m."""
    return min(x + y, x + y - m)


@helper
def _minus(x, y, m):
    """Return (x - y) mod m of x, y < m."""
    return min(x - y, x - y + m)


@helper
def _forward(l, r, lanes, a, b, words):
    for j in range(0, len(words), 8):
        k0, k1 = np.uint64(words[j]), np.uint64(words[j + 1])
        k2, k3 = np.uint64(words[j + 2]), np.uint64(words[j + 3])
        k4, k5 = np.uint64(words[j + 4]), np.uint64(words[j + 5])
        k6, k7 = np.uint64(words[j + 6]), np.uint64(words[j + 7])
        for i in range(lanes):
            x, y = l[i], r[i]
            x = _plus(x, _f(y, k0, k1, a), a)
            y = _plus(y, _f(x, k2, k3, b), b)
            x = _plus(x, _f(y, k4, k5, a), a)
            y = _plus(y, _f(x, k6, k7, b), b)
            l[i], r[i] = x, y


@helper
def _backward(l, r, lanes, a, b, words):
    for j in range(len(words) - 8, -1, -8):
        k0, k1 = np.uint64(words[j]), np.uint64(words[j + 1])
        k2, k3 = np.uint64(words[j + 2]), np.uint64(words[j + 3])
        k4, k5 = np.uint64(words[j + 4]), np.uint64(words[j + 5])
        k6, k7 = np.uint64(words[j + 6]), np.uint64(words[j + 7])
        for i in range(lanes):
            x, y = l[i], r[i]
            y = _minus(y, _f(x, k6, k7, b), b)
            x = _minus(x, _f(y, k4, k5, a), a)
            y = _minus(y, _f(x, k2, k3, b), b)
            x = _minus(x, _f(y, k0, k1, a), a)
            l[i], r[i] = x, y


@helper
def _join(l, r, lanes, b, out, offset):
    """Write index = l * b + r and return the largest."""
    largest = ZERO
    for i in range(lanes):
        index = (l[i] & LOW) * (b & LOW) + r[i]
        largest = max(largest, index)
        out[offset + i] = np.int64(index)
    return largest


@helper
def _permute(l, r, lanes, n, a, b, words, out, offset):
    _forward(l, r, lanes, a, b, words)
    if _join(l, r, lanes, b, out, offset) < n:
        return
    for i in range(lanes):  # cycle walking (Black and Rogaway 2002)
        while np.uint64(out[offset + i]) >= n:
            l[0], r[0] = divmod(np.uint64(out[offset + i]), b)
            _forward(l, r, 1, a, b, words)
            out[offset + i] = np.int64(l[0] * b + r[0])


@helper
def _fill(l, r, lane, count, x, y, b):
    """Write `count` positions from l, r = x, y on, and return the next one."""
    stop = lane + count
    while lane < stop:
        m = min(stop - lane, np.int64(b - y))
        for i in range(m):
            l[lane + i] = x
            r[lane + i] = y + np.uint64(i)
        lane += m
        y += np.uint64(m)
        if y == b:
            x, y = x + ONE, ZERO
    return x, y


@kernel(INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def permute_runs(n, words, starts, stops, out):
    n = np.uint64(n)
    a, b = _sides(n)
    l = np.empty(LANES, np.uint64)
    r = np.empty(LANES, np.uint64)
    lane = offset = 0
    for k in range(len(starts)):
        x, y = divmod(np.uint64(starts[k]), b)
        left = stops[k] - starts[k]
        while left > 0:
            count = min(left, LANES - lane)
            x, y = _fill(l, r, lane, count, x, y, b)
            lane += count
            left -= count
            if lane == LANES:
                _permute(l, r, lane, n, a, b, words, out, offset)
                offset += lane
                lane = 0
    _permute(l, r, lane, n, a, b, words, out, offset)


@kernel(INT64, READ_UINT32, READ_INT64, WRITE_INT64)
def invert(n, words, indices, out):
    n = np.uint64(n)
    a, b = _sides(n)
    l = np.empty(LANES, np.uint64)
    r = np.empty(LANES, np.uint64)
    for offset in range(0, len(indices), LANES):
        lanes = min(LANES, len(indices) - offset)
        for i in range(lanes):
            l[i], r[i] = divmod(np.uint64(indices[offset + i]), b)
        _backward(l, r, lanes, a, b, words)
        if _join(l, r, lanes, b, out, offset) < n:
            continue
        for i in range(lanes):
            while np.uint64(out[offset + i]) >= n:
                l[0], r[0] = divmod(np.uint64(out[offset + i]), b)
                _backward(l, r, 1, a, b, words)
                out[offset + i] = np.int64(l[0] * b + r[0])


@helper
def _philox(c0, c1, c2, c3, k0, k1):
    """Return the four words of Philox4x32-10 (Salmon et al. 2011)."""
    for _ in range(10):
        p, q = c0 * M0, c2 * M1
        c0, c1, c2, c3 = (q >> HALF) ^ c1 ^ k0, q & LOW, (p >> HALF) ^ c3 ^ k1, p & LOW
        k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
    return c0, c1, c2, c3


@kernel(READ_INT64, READ_INT64)
def _philox_kernel(counter, key):
    return _philox(
        np.uint64(counter[0]),
        np.uint64(counter[1]),
        np.uint64(counter[2]),
        np.uint64(counter[3]),
        np.uint64(key[0]),
        np.uint64(key[1]),
    )


def philox4x32(counter, key):
    """Return the four words of Philox4x32-10 for a counter of four words and a key of two."""
    return _philox_kernel(np.array(counter, np.int64), np.array(key, np.int64))


@helper
def _window_words(v, key, rounds, words):
    for j in range(rounds // 2):
        c = _philox(v & LOW, v >> HALF, np.uint64(j), ZERO, np.uint64(key[0]), np.uint64(key[1]))
        for i in range(4):
            words[4 * j + i] = np.uint32(c[i])


@helper
def _slot_of(block, nb, a, b, words, l, r):
    while True:
        l[0], r[0] = divmod(block, b)
        _backward(l, r, 1, a, b, words)
        block = l[0] * b + r[0]
        if block < nb:
            return block


@helper
def _clamp(n, block_size, window):
    n = np.uint64(n)
    size = min(np.uint64(block_size), n)
    num_blocks = (n - ONE) // size + ONE
    return n, size, num_blocks, min(np.uint64(window), num_blocks), num_blocks * size - n


@helper
def _window(v, size, num_blocks, window, missing, short):
    """Return first slot, start and number of positions of window v, and where it turns."""
    first = v * window
    slots = min(window, num_blocks - first)
    start = first * size - (missing if first > short else ZERO)
    num = slots * size
    turn = num
    if first <= short < first + slots:
        num -= missing
        turn = (short - first + ONE) * size - missing
    return first, start, num, turn


@kernel(INT64, INT64, INT64, READ_UINT32, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def block_permute_runs(n, block_size, window, block_words, window_key, starts, stops, out):
    n, size, num_blocks, window, missing = _clamp(n, block_size, window)
    l = np.empty(LANES, np.uint64)
    r = np.empty(LANES, np.uint64)
    ba, bb = _sides(num_blocks)
    key = np.empty(48, np.uint32)
    all_words = np.empty(48, np.uint32)
    bwords = block_words.copy()
    short = _slot_of(num_blocks - ONE, num_blocks, ba, bb, bwords, l, r)
    turn = (short + ONE) * size - missing
    lane = offset = 0
    current, first, start, m, wturn = num_blocks, ZERO, ZERO, ZERO, ZERO
    a, b = ONE, ONE + ONE
    words = all_words
    for k in range(len(starts)):
        position = np.uint64(starts[k])
        stop = np.uint64(stops[k])
        while position < stop:
            v = (position if position < turn else position + missing) // size // window
            if v != current:
                _deal(l, r, lane, m, a, b, words, wturn, missing, size, first, num_blocks, ba, bb, bwords, out, offset)
                offset += lane
                lane = 0
                current = v
                first, start, m, wturn = _window(v, size, num_blocks, window, missing, short)
                a, b = _sides(m)
                rounds = _num_rounds(m)
                words = all_words[: 2 * rounds]
                _window_words(v, window_key, rounds, words)
            count = min(np.int64(min(stop, start + m) - position), LANES - lane)
            x, y = divmod(position - start, b)
            _fill(l, r, lane, count, x, y, b)
            lane += count
            position += np.uint64(count)
            if lane == LANES:
                _deal(l, r, lane, m, a, b, words, wturn, missing, size, first, num_blocks, ba, bb, bwords, out, offset)
                offset += lane
                lane = 0
    _deal(l, r, lane, m, a, b, words, wturn, missing, size, first, num_blocks, ba, bb, bwords, out, offset)


@helper
def _deal(l, r, lanes, m, a, b, words, turn, missing, size, first, num_blocks, ba, bb, bwords, out, offset):
    _permute(l, r, lanes, m, a, b, words, out, offset)
    within = np.empty(LANES, np.uint64)
    for i in range(lanes):
        place = np.uint64(out[offset + i])
        if place >= turn:
            place += missing
        slot = place // size
        within[i] = place - slot * size
        l[i], r[i] = divmod(slot + first, bb)
    _permute(l, r, lanes, num_blocks, ba, bb, bwords, out, offset)
    for i in range(lanes):
        out[offset + i] = np.int64(np.uint64(out[offset + i]) * size + within[i])


@kernel(INT64, INT64, INT64, READ_UINT32, READ_UINT32, READ_INT64, WRITE_INT64)
def block_invert(n, block_size, window, block_words, window_key, indices, out):
    n, size, num_blocks, window, missing = _clamp(n, block_size, window)
    l = np.empty(LANES, np.uint64)
    r = np.empty(LANES, np.uint64)
    ba, bb = _sides(num_blocks)
    all_words = np.empty(48, np.uint32)
    bwords = block_words.copy()
    short = _slot_of(num_blocks - ONE, num_blocks, ba, bb, bwords, l, r)
    current, first, start, m, wturn = num_blocks, ZERO, ZERO, ZERO, ZERO
    a, b = ONE, ONE + ONE
    words = all_words
    for i in range(len(indices)):
        block, within = divmod(np.uint64(indices[i]), size)
        slot = _slot_of(block, num_blocks, ba, bb, bwords, l, r)
        v = slot // window
        if v != current:
            current = v
            first, start, m, wturn = _window(v, size, num_blocks, window, missing, short)
            a, b = _sides(m)
            rounds = _num_rounds(m)
            words = all_words[: 2 * rounds]
            _window_words(v, window_key, rounds, words)
        place = (slot - first) * size + within
        if place >= wturn and slot > short:
            place -= missing
        out[i] = np.int64(start + _slot_of(place, m, a, b, words, l, r))
