"""The permutations shuffle-v1 and block-shuffle-v1, both ways, as numba kernels.

shuffle-v1 is a generalised Feistel network on a * b >= n points, kept inside [0, n) by cycle
walking (Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains"). Philox4x32-10 and the
multipliers are those of Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
Both permutations are frozen: a change of any index is a new version under a new name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, READ_UINT32, WRITE_INT64, helper, kernel

U64: TypeAlias = np.uint64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]
    Three: TypeAlias = tuple[U64, U64, U64]
    Four: TypeAlias = tuple[U64, U64, U64, U64]
    Five: TypeAlias = tuple[U64, U64, U64, U64, U64]
    Cipher: TypeAlias = tuple[U64, U64, U64, Three, UInt64s]  # n, a, b, reciprocal of b, keys

# Numbers go through the network in blocks of so many lanes, which stay in the first-level cache.
LANES = 512  # 1.5 ns per index at n = 1e9; 128 lanes: 2.2, 256: 1.8, 1024: 1.4
TABLE = 256  # up to so many slots, a window lists its blocks: 2.2 ns per index instead of 4.7

# Beside a Python int, a uint64 becomes signed or a float in numba, so constants are uint64 too.
ZERO, ONE, TWO, HALF, TOP_BIT = U64(0), U64(1), U64(2), U64(32), U64(63)
LOW = U64(0xFFFFFFFF)
MULTIPLIER_0, MULTIPLIER_1 = U64(0xD2511F53), U64(0xCD9E8D57)  # Philox's, as are the next two
WEYL_0, WEYL_1 = U64(0x9E3779B9), U64(0xBB67AE85)


def num_rounds(n: int) -> int:
    """Return the number of Feistel rounds of shuffle-v1 on [0, n); each takes two key words."""
    return 24 if n < 2**12 else 12 if n < 2**20 else 8


_num_rounds = helper(num_rounds)


@helper
def _times(x: U64, y: U64) -> U64:
    """Multiply the low halves; the masks show LLVM that its 32 x 32 -> 64 instruction will do."""
    product: U64 = (x & LOW) * (y & LOW)
    return product


@helper
def _num_bits(x: U64) -> U64:
    num: U64 = ZERO
    for step in (U64(32), U64(16), U64(8), U64(4), U64(2), U64(1)):
        if x >> step > ZERO:
            x, num = x >> step, num + step
    num += x
    return num


@helper
def _reciprocal(divisor: U64, largest: U64) -> Three:
    """Prepare `_divide` for numbers up to `largest`, which is below 2**32 or about divisor**2."""
    down = max(_num_bits(largest), HALF) - HALF
    scale = _num_bits(divisor) + U64(31)  # divisor < 2**32
    return ((ONE << scale) - ONE) // divisor, down, scale - down


@helper
def _divide(x: U64, divisor: U64, reciprocal: Three) -> tuple[U64, U64]:
    """Return quotient and remainder by multiplications, which vectorise: 1.5 ns instead of 2.7."""
    factor, down, shift = reciprocal
    quotient = _times(x >> down, factor) >> shift  # too small by 0 to 3
    rest = x - _times(quotient, divisor)
    less = rest - TWO * divisor  # if negative, a large number with its top bit set:
    quotient += TWO - TWO * (less >> TOP_BIT)  # a comparison stops LLVM vectorising: 2.5 ns
    rest = min(rest, less)
    less = rest - divisor
    return quotient + ONE - (less >> TOP_BIT), min(rest, less)


@helper
def _divide_all(left: UInt64s, right: UInt64s, num: int, divisor: U64, largest: U64) -> None:
    """Split numbers in `left`, up to `largest`, into quotients there and remainders in `right`."""
    if largest <= LOW:
        reciprocal = _reciprocal(divisor, LOW)
        for i in range(num):
            left[i], right[i] = _divide(left[i], divisor, reciprocal)
    else:
        for i in range(num):
            left[i], right[i] = divmod(left[i], divisor)


@helper
def _cipher(n: U64, keys: UInt64s) -> Cipher:
    """Return n, a = ceil(sqrt(n)), b = ceil(n / a) plus one if odd, its reciprocal, the keys."""
    a = ZERO  # the largest whose square is below n, bit by bit
    for bit in range(np.int64(_num_bits(n - ONE) >> ONE), -1, -1):
        larger = a | (ONE << U64(bit))
        if larger * larger < n:
            a = larger
    a += ONE
    b = (n - ONE) // a + ONE
    b += b & ONE
    return n, a, b, _reciprocal(b, a * b - ONE), keys


@helper
def _f(x: U64, k0: U64, k1: U64, m: U64) -> U64:
    """Return a number in [0, m)."""
    t = _times(x ^ k0, MULTIPLIER_0)
    t = _times(t ^ (t >> HALF) ^ k1, MULTIPLIER_1)
    value: U64 = _times(t ^ (t >> HALF), m) >> HALF
    return value


# One round per loop over the lanes takes 1.0 ns per index for 8 rounds; two rounds per loop 1.4,
# four 2.0, eight 2.8: longer chains of multiplications overlap less.
@helper
def _add(x: UInt64s, y: UInt64s, num: int, k0: U64, k1: U64, m: U64) -> None:
    """Do x = (x + f(y)) mod m."""
    for i in range(num):
        total = x[i] + _f(y[i], k0, k1, m)
        x[i] = min(total, total - m)  # a negative number is a large one


@helper
def _subtract(x: UInt64s, y: UInt64s, num: int, k0: U64, k1: U64, m: U64) -> None:
    """Do x = (x - f(y)) mod m."""
    for i in range(num):
        difference = x[i] - _f(y[i], k0, k1, m)
        x[i] = min(difference, difference + m)


@helper
def _network(left: UInt64s, right: UInt64s, num: int, cipher: Cipher, inverse: bool) -> None:
    """Replace the first `num` numbers in `left` by what they become on [0, a * b)."""
    _, a, b, reciprocal, k = cipher
    for i in range(num):
        left[i], right[i] = _divide(left[i], b, reciprocal)
    if inverse:
        for j in range(len(k) - 4, -1, -4):
            _subtract(right, left, num, k[j + 2], k[j + 3], b)
            _subtract(left, right, num, k[j], k[j + 1], a)
    else:
        for j in range(0, len(k), 4):
            _add(left, right, num, k[j], k[j + 1], a)
            _add(right, left, num, k[j + 2], k[j + 3], b)
    for i in range(num):
        left[i] = _times(left[i], b) + right[i]


@helper
def _permute(
    left: UInt64s, right: UInt64s, num: int, cipher: Cipher, inverse: bool, out: Int64s
) -> None:
    """Write what the first `num` numbers in `left` become on [0, n); `left` is used up."""
    n = cipher[0]
    _network(left, right, num, cipher, inverse)
    num_outside = 0
    for i in range(num):
        out[i] = np.int64(left[i])
        num_outside += left[i] >= n
    while num_outside > 0:  # cycle walking, with all the lanes outside [0, n) side by side
        j = 0
        for i in range(num):
            if U64(out[i]) >= n:
                left[j] = U64(out[i])
                j += 1
        _network(left, right, j, cipher, inverse)
        j = num_outside = 0
        for i in range(num):
            if U64(out[i]) >= n:
                out[i] = np.int64(left[j])
                num_outside += left[j] >= n
                j += 1


@helper
def _count_up(out: UInt64s, num: int, start: U64) -> None:
    for i in range(num):
        out[i] = start + U64(i)


@kernel(INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def permute_runs(n: int, words: UInt32s, starts: Int64s, stops: Int64s, out: Int64s) -> None:
    """Write the indices of runs of positions, one run after another, by shuffle-v1.

    Parameters
    ----------
    n : int
        Number of samples, 1 <= n < 2**63.
    words : uint32 (2 * num_rounds(n),)
        The key words of the epoch.
    starts, stops : int64 (num_runs,)
        Run k is the positions [starts[k], stops[k]), within [0, n); a run may be empty.
    out : int64 (sum(stops - starts),)
        Gets the indices.
    """
    cipher = _cipher(U64(n), words.astype(U64))
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    lane = done = 0
    for k in range(len(starts)):
        position = starts[k]
        while position < stops[k]:
            count = min(stops[k] - position, LANES - lane)
            _count_up(left[lane:], count, U64(position))
            position += count
            lane += count
            if lane == LANES:
                _permute(left, right, lane, cipher, False, out[done:])
                done += lane
                lane = 0
    _permute(left, right, lane, cipher, False, out[done:])


@kernel(INT64, READ_UINT32, READ_INT64, WRITE_INT64)
def invert(n: int, words: UInt32s, indices: Int64s, out: Int64s) -> None:
    """Write the positions of indices, by shuffle-v1.

    Parameters
    ----------
    n, words
        As for `permute_runs`.
    indices : int64 (num,)
        Indices in [0, n).
    out : int64 (num,)
        Gets the positions.
    """
    cipher = _cipher(U64(n), words.astype(U64))
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    for done in range(0, len(indices), LANES):
        part = indices[done : done + LANES]
        for i in range(len(part)):
            left[i] = U64(part[i])
        _permute(left, right, len(part), cipher, True, out[done:])


@helper
def _philox(c0: U64, c1: U64, c2: U64, c3: U64, k0: U64, k1: U64) -> Four:
    for _ in range(10):
        p, q = c0 * MULTIPLIER_0, c2 * MULTIPLIER_1
        c0, c1, c2, c3 = (q >> HALF) ^ c1 ^ k0, q & LOW, (p >> HALF) ^ c3 ^ k1, p & LOW
        k0, k1 = (k0 + WEYL_0) & LOW, (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@kernel(READ_UINT32, READ_UINT32)
def philox4x32(counter: UInt32s, key: UInt32s) -> Four:
    """Return the four words, in [0, 2**32), of Philox4x32-10.

    Parameters
    ----------
    counter : uint32 (4,)
    key : uint32 (2,)
    """
    c0, c1, c2, c3 = U64(counter[0]), U64(counter[1]), U64(counter[2]), U64(counter[3])
    return _philox(c0, c1, c2, c3, U64(key[0]), U64(key[1]))


@helper
def _layout(n: int, block_size: int, window: int, words: UInt32s) -> tuple[Five, Cipher]:
    """Return (samples per slot, slots, slots per window, the short slot, samples it lacks).

    And the cipher that puts the blocks into the slots. All blocks but the last are full.
    """
    size = min(U64(block_size), U64(n))
    num_slots = (U64(n) - ONE) // size + ONE
    cipher = _cipher(num_slots, words.astype(U64))
    block, scratch, short = np.full(1, num_slots - ONE), np.empty(1, U64), np.empty(1, np.int64)
    _permute(block, scratch, 1, cipher, True, short)
    missing = num_slots * size - U64(n)
    return (size, num_slots, min(U64(window), num_slots), U64(short[0]), missing), cipher


@helper
def _window(v: U64, layout: Five) -> Five:
    """Return the slots [first, last) of window v, its start, number of positions and turn.

    Places count positions from the start; from the turn on, they are past the short slot.
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
def _window_cipher(v: U64, num: U64, key: UInt32s, buffer: UInt64s) -> Cipher:
    """Return the cipher of window v, of `num` positions; its keys are written to the buffer."""
    num_words = 2 * _num_rounds(int(num))
    for j in range(0, num_words, 4):
        words = _philox(v & LOW, v >> HALF, U64(j // 4), ZERO, U64(key[0]), U64(key[1]))
        buffer[j], buffer[j + 1], buffer[j + 2], buffer[j + 3] = words
    return _cipher(num, buffer[:num_words])


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
    _divide_all(left, within, num, size, size * window)
    if len(table) > 0:
        for i in range(num):
            out[i] = table[left[i]]
    else:
        for i in range(num):
            left[i] += first
        _permute(left, right, num, cipher, False, out)
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
    blocks, keys = np.empty(TABLE, np.int64), np.empty(48, U64)
    table, cipher = blocks[:0], block_cipher
    first = start = num = turn = position = stop = ZERO
    k = lane = done = 0
    while True:
        while position == stop and k < len(starts):
            position, stop = U64(starts[k]), U64(stops[k])
            k += 1
        ended = position == stop
        elsewhere = position - start >= num  # than in the window at hand
        if lane == LANES or elsewhere or ended:
            part = out[done:]
            _permute(left, right, lane, cipher, False, part)
            _look_up(left, right, lane, first, turn, layout, table, block_cipher, part)
            done += lane
            lane = 0
        if ended:
            return
        if elsewhere:
            past_short = position >= (short + ONE) * size - missing
            v = (position + (missing if past_short else ZERO)) // size // window_size
            first, last, start, num, turn = _window(v, layout)
            cipher = _window_cipher(v, num, window_key, keys)
            table = blocks[: last - first if last - first <= U64(TABLE) else ZERO]
            _count_up(left, len(table), first)
            _permute(left, right, len(table), block_cipher, False, table)
        count = min(np.int64(min(stop, start + num) - position), LANES - lane)
        _count_up(left[lane:], count, position - start)
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
        Indices in [0, n); fastest where neighbours lie in one window.
    out : int64 (num,)
        Gets the positions.
    """
    layout, block_cipher = _layout(n, block_size, window, block_words)
    size, _, window_size, _, missing = layout
    left, right = np.empty(LANES, U64), np.empty(LANES, U64)
    within, keys = np.empty(LANES, U64), np.empty(48, U64)
    cipher = block_cipher
    first = last = start = turn = ZERO
    for done in range(0, len(indices), LANES):
        part, slots = indices[done : done + LANES], out[done : done + LANES]
        for i in range(len(part)):
            left[i] = U64(part[i])
        _divide_all(left, within, len(part), size, U64(n))
        _permute(left, right, len(part), block_cipher, True, slots)
        i = 0
        while i < len(part):
            if not first <= U64(slots[i]) < last:
                v = U64(slots[i]) // window_size
                first, last, start, num, turn = _window(v, layout)
                cipher = _window_cipher(v, num, window_key, keys)
            here, inside = slots[i:], within[i:]
            num_here = 0  # lanes from here on that are in this window
            while num_here < len(here) and first <= U64(here[num_here]) < last:
                num_here += 1
            for j in range(num_here):
                place = (U64(here[j]) - first) * size + inside[j]
                left[j] = place - (missing if place >= turn else ZERO)
            _permute(left, right, num_here, cipher, True, here)
            for j in range(num_here):
                here[j] += np.int64(start)
            i += num_here
