"""Which source a mixture reads at a place, both ways. Frozen: mixture-v1.

A node of the tree (see tree.py) gives its minority p of every q of its slots, which it counts from
the start of the phase. Unit c of the minority is dealt one slot of its window, from slot c * q / p
to slot (c + 1) * q / p. Windows begin inside slots, so their edges are counted in ticks, 2**BITS to
a slot, each the floor of the exact edge. Two units share at most one slot. Even units take the slot
of a random tick; odd units take what these leave, corrected for how often they leave it, so that
every slot is the minority's with probability p / q. The majority gets the others in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_NODES,
    READ_RATIOS,
    READ_UINT32,
    WRITE_INT32,
    WRITE_INT64,
    helper,
    inlined,
    kernel,
)
from indexplan.kernels.philox import HALF, LOW, ONE, U64, ZERO, philox
from indexplan.kernels.ratios import any_part, high_word, part, ticks_in
from indexplan.kernels.tree import (
    BITS,
    FIRST,
    LEFT,
    OF_MAJORITY,
    OF_SLOTS,
    OF_TICKS,
    OF_UNITS,
    REST,
    SECOND,
    SLOTS,
    TICKS,
    P,
    Q,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64s: TypeAlias = NDArray[np.float64]
    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]
    UInt8s: TypeAlias = NDArray[np.uint8]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

AT_ONCE = 16_384  # slots that are dealt at a time, in the second-level cache
PAIRS = 63  # of units, an even and an odd one, whose slots are computed at a time: see `_walk`
LANE = PAIRS + 1
# Where the lanes of pairs begin in one array: at constants, so that LLVM knows that they are apart.
# It takes `_walk` for safe if lanes that are read one further on come after those written by then.
ODD, EVEN, STARTS, LEFTS, MIDDLES, SECONDS, THIRDS = range(0, 7 * LANE, LANE)
LANES = 7 * LANE
WIDE = 2**32  # windows of so many ticks or more take words of 64 bits


@inlined
def _edge(c: int, v: int, nodes: Int64s, ratios: Float64s) -> tuple[U64, U64, U64]:
    """Return where a unit's window begins: the slot, the ticks in it, and the rest, in 1 / p."""
    slots, rest = any_part(c, nodes[v, REST], nodes[v, P], ratios[v, OF_UNITS])
    ticks, left = ticks_in(rest, U64(nodes[v, BITS]), nodes[v, P], ratios[v, OF_TICKS])
    return U64(c) * U64(nodes[v, SLOTS]) + U64(slots), ticks, left


@inlined
def _edge_after(slot: U64, ticks: U64, left: U64, v: int, nodes: Int64s) -> tuple[U64, U64]:
    """Return where the window ends that begins there: the slot, and the ticks in it."""
    f = U64(nodes[v, BITS])
    ticks += U64(nodes[v, TICKS]) + U64(left + U64(nodes[v, LEFT]) >= U64(nodes[v, P]))
    return slot + (ticks >> f), ticks & ((ONE << f) - ONE)


@inlined
def _edge_before(
    n: int, c: int, rest: int, v: int, nodes: Int64s, ratios: Float64s
) -> tuple[U64, U64, U64]:
    """Return the edge of the first unit of c's pair, from n * p = c * q + rest.

    So the division that finds the unit whose window is at slot n finds its edge too. The ticks may
    be several slots' if c is odd.
    """
    p, f = U64(nodes[v, P]), U64(nodes[v, BITS])
    ticks, left = ticks_in(rest, f, nodes[v, P], ratios[v, OF_TICKS])  # back from slot n
    odd, some = U64(c & 1), U64(left > ZERO)
    each, left = odd * U64(nodes[v, LEFT]), some * (p - left)
    over = U64(left < each)
    ticks += some + odd * U64(nodes[v, TICKS]) + over
    left += over * p - each
    slots = ticks + (ONE << f) - ONE >> f
    return U64(n) - slots, (slots << f) - ticks, left


@helper
def _walk(
    pair: U64,
    begin: U64,
    now: U64,
    left: U64,
    num: int,
    v: int,
    nodes: Int64s,
    at: UInt64s,
    lanes: UInt64s,
) -> tuple[U64, U64]:
    """Write the slots of the even units of pairs [pair, pair + num], and of the odd ones but one.

    The last pair's even unit is the neighbour of the odd unit before. Up to PAIRS pairs and a
    neighbour fit. The first window begins `now` ticks, and left / p of one, after slot `begin`;
    returned is the same for the last pair. Not for windows of WIDE ticks.
    """
    node = nodes[v]
    p, f = U64(node[P]), U64(node[BITS])
    ticks, more = U64(node[TICKS]), U64(node[LEFT])
    over = U64(more + more >= p)
    both, more_of_both = ticks + ticks + over, more + more - p * over
    many = (num + 8) & -8  # whole vectors of eight; nobody reads what is computed too much
    for i in range(many):
        lanes[STARTS + i], lanes[LEFTS + i] = now, left
        left += more_of_both
        over = U64(left >= p)
        now, left = now + both + over, left - (p if left >= p else ZERO)
    tag, k0, k1 = U64(v) << U64(12) | at[0], at[1], at[2]
    for i in range(many):
        number = pair + U64(i)
        w0, w1, w2, _ = philox(number & LOW, number >> HALF, ZERO, tag, k0, k1)
        lanes[SECONDS + i], lanes[THIRDS + i] = w1, w2
        start, width = lanes[STARTS + i], ticks + U64(lanes[LEFTS + i] + more >= p)
        lanes[EVEN + i] = begin + (start + ((w0 & LOW) * (width & LOW) >> HALF) >> f)
        lanes[MIDDLES + i] = start + width
    slot = ONE << f
    for i in range(many):
        start, stop = lanes[MIDDLES + i], lanes[STARTS + i + 1]
        w1, w2 = lanes[SECONDS + i] & LOW, lanes[THIRDS + i] & LOW
        lowest, a = begin + (start >> f), start & (slot - ONE)  # a ticks: of the unit's before
        highest, e = begin + (stop - ONE >> f), stop & (slot - ONE)  # e ticks: its own
        inner = lowest + U64(a > ZERO)
        x = inner + (w2 * ((highest + U64(e == ZERO) - inner) & LOW) >> HALF)
        of_next = (LOW - w1) * ((ticks - slot + e) & LOW) < e << HALF
        x = highest if (e > ZERO) & (lanes[EVEN + i + 1] != highest) & of_next else x
        of_last = w1 * ((ticks - a) & LOW) < (slot - a) << HALF
        lanes[ODD + i] = lowest if (a > ZERO) & (lanes[EVEN + i] != lowest) & of_last else x
    return lanes[STARTS + num], lanes[LEFTS + num]


@inlined
def _wide_words(c: int, v: int, at: UInt64s) -> tuple[U64, U64, U64]:
    """Return the words of a unit's pair, of 64 bits."""
    pair, tag = U64(c >> 1), U64(v) << U64(12) | at[0]
    x0, x1, x2, _ = philox(pair & LOW, pair >> HALF, ZERO, tag, at[1], at[2])
    y0, y1, y2, _ = philox(pair & LOW, pair >> HALF, ONE, tag, at[1], at[2])
    return x0 << HALF | y0, x1 << HALF | y1, x2 << HALF | y2


@helper
def _rare_even(c: int, v: int, nodes: Int64s, ratios: Float64s, at: UInt64s) -> U64:
    """Return the slot of an even unit with a window of WIDE ticks or more."""
    f = U64(nodes[v, BITS])
    slot, a, left = _edge(c, v, nodes, ratios)
    width = U64(nodes[v, TICKS]) + U64(left + U64(nodes[v, LEFT]) >= U64(nodes[v, P]))
    w0, _, _ = _wide_words(c, v, at)
    dealt: U64 = slot + (a + high_word(w0, width) >> f)
    return dealt


@helper
def _rare(c: int, v: int, nodes: Int64s, ratios: Float64s, at: UInt64s) -> U64:
    """Return the slot of a unit with a window of WIDE ticks or more, as `_walk` does."""
    if c & 1 == 0:
        return _rare_even(c, v, nodes, ratios, at)
    lowest, a, left = _edge(c, v, nodes, ratios)
    highest, e = _edge_after(lowest, a, left, v, nodes)  # if e is 0, it is past the window
    _, w1, w2 = _wide_words(c, v, at)
    ticks, slot = U64(nodes[v, TICKS]), ONE << U64(nodes[v, BITS])
    if (
        a > ZERO
        and high_word(w1, ticks - a) < slot - a
        and _rare_even(c - 1, v, nodes, ratios, at) != lowest
    ):
        return lowest
    if (
        e > ZERO
        and high_word(~w1, ticks - slot + e) < e
        and _rare_even(c + 1, v, nodes, ratios, at) != highest
    ):
        return highest
    inner = lowest + U64(a > ZERO)
    dealt: U64 = inner + high_word(w2, highest - inner)
    return dealt


@inlined
def _look(
    first: int, more: int, v: int, nodes: Int64s, ratios: Float64s, at: UInt64s, lanes: UInt64s
) -> None:
    """Write the slots of a unit, and of the next one if `more` is 1, for `_seen`."""
    if nodes[v, TICKS] < WIDE:
        begin, now, left = _edge(first & -2, v, nodes, ratios)
        _walk(U64(first >> 1), begin, now, left, more | first & 1, v, nodes, at, lanes)


@inlined
def _seen(
    c: int, first: int, v: int, nodes: Int64s, ratios: Float64s, at: UInt64s, lanes: UInt64s
) -> U64:
    """Return the slot of a unit, after `_look` from `first` on."""
    if nodes[v, TICKS] < WIDE:
        slot: U64 = lanes[(ODD if c & 1 else EVEN) + (c >> 1) - (first >> 1)]
        return slot
    return _rare(c, v, nodes, ratios, at)


@kernel(INT64, INT64, READ_UINT32, READ_NODES, READ_RATIOS, INT64, WRITE_INT64)
def count_before(
    place: int, phase: int, key: UInt32s, nodes: Int64s, ratios: Float64s, top: int, out: Int64s
) -> None:
    """Add how many units of each source are read before a place of a phase.

    Parameters
    ----------
    place : int
        Counted from the phase's start, 0 <= place < 2**63.
    phase, key, nodes, ratios, top
        As for `deal`.
    out : int64 (k,)
        The counts are added to it.
    """
    at, lanes = _coins(phase, key), np.empty(LANES, U64)
    clocks = np.empty(len(nodes), np.int64)
    if top < 0:
        out[~top] += place
    else:
        clocks[0] = place
    for v in range(len(nodes)):
        n = clocks[v]
        minor, rest = any_part(n, nodes[v, P], nodes[v, Q], ratios[v, OF_SLOTS])
        if rest:  # else a window begins at slot n
            if nodes[v, TICKS] < WIDE:
                begin, now, left = _edge_before(n, minor, rest, v, nodes, ratios)
                _walk(U64(minor >> 1), begin, now, left, minor & 1, v, nodes, at, lanes)
                slot = lanes[ODD if minor & 1 else EVEN]
            else:
                slot = _rare(minor, v, nodes, ratios, at)
            minor += np.int64(slot < U64(n))
        for side in range(2):
            child, num = nodes[v, FIRST + side], n - minor if side else minor
            if child < 0:
                out[~child] += num
            else:
                clocks[child] = num


@helper
def _sorted(marked: UInt8s, places: UInt32s, spare: UInt32s) -> int:
    """Put the places that are not marked first; return how many are, and mark none."""
    found, others = ZERO, ZERO
    for i in range(len(places)):  # without a branch, which would often be mispredicted
        place, mine = places[i], U64(marked[i])
        places[others], spare[found] = place, place
        found += mine
        others += ONE - mine
        marked[i] = 0
    marked[len(places)] = 0
    for i in range(found):
        places[others + i] = spare[i]
    num: int = np.int64(found)
    return num


# Inlined, as a call would count references to seven arrays: 20 ns a node, of which a batch of many
# sources has hundreds.
@inlined
def _split(
    n: int,
    v: int,
    nodes: Int64s,
    ratios: Float64s,
    at: UInt64s,
    lanes: UInt64s,
    marked: UInt8s,
    places: UInt32s,
    spare: UInt32s,
) -> tuple[int, int]:
    """Sort the places of a run of a node's slots, from slot n on: the majority's first.

    Returns how many slots before n are the minority's, and how many of the run's. `marked` is all 0
    before and after, and has room for one mark more: of slots that are not of the run.
    """
    p, q, ratio = nodes[v, P], nodes[v, Q], ratios[v, OF_SLOTS]
    num, low, size = len(places), U64(n), U64(len(places))
    first, rest = any_part(n, p, q, ratio)
    more, over = part(num, p, q, ratio)
    over += rest  # (n + num) * p = (first + more) * q + over
    last = first + more + np.int64(over > q) - np.int64(over == 0)  # whose window begins in the run
    before = first
    if nodes[v, TICKS] < WIDE:
        pair, stop = first >> 1, (last + 1) >> 1
        begin, now, left = _edge_before(n, first, rest, v, nodes, ratios)
        while True:
            count = min(PAIRS, stop - pair)
            now, left = _walk(U64(pair), begin, now, left, count, v, nodes, at, lanes)
            if pair == first >> 1:
                before += np.int64(lanes[ODD if first & 1 else EVEN] < low)
            for i in range(count):  # what lies before the run wraps around
                marked[min(lanes[EVEN + i] - low, size)] = 1
                marked[min(lanes[ODD + i] - low, size)] = 1
            marked[min(lanes[EVEN + count] - low, size)] = 1
            pair += count
            if pair >= stop:
                break
    else:
        for c in range(first, last + 1):
            slot = _rare(c, v, nodes, ratios, at)
            before += np.int64(c == first and slot < low)
            if slot - low < size:
                marked[slot - low] = 1
    return before, _sorted(marked, places, spare)


@helper
def _coins(phase: int, key: UInt32s) -> UInt64s:
    """Return what the words of a phase depend on."""
    at = np.empty(3, U64)
    at[0], at[1], at[2] = U64(phase), U64(key[0]), U64(key[1])
    return at


@kernel(
    INT64,
    INT64,
    READ_UINT32,
    READ_INT64,
    READ_NODES,
    READ_RATIOS,
    INT64,
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
    nodes: Int64s,
    ratios: Float64s,
    top: int,
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
        The phase's number, below 2**12.
    key : uint32 (2,)
        The Philox key of all coins.
    base : int64 (k,)
        Units of each source before the phase.
    nodes : int64 (num_nodes, 9)
        The tree, as `plant` writes it.
    ratios : float64 (num_nodes, 4)
        Its ratios, likewise.
    top : int
        The root, 0, or ~ the number of the only source.
    starts, stops : int64 (num_runs,)
        The runs of positions.
    sources, numbers : int32 and int64 (sum(stops - starts),)
        Get the sources, and the numbers of their units, counted from the start of the whole run.
    """
    at, lanes = _coins(phase, key), np.empty(LANES, U64)
    places, spare = np.empty(AT_ONCE, np.uint32), np.empty(AT_ONCE, np.uint32)
    marked = np.zeros(AT_ONCE + 1, np.uint8)
    # What is left to do, breadth first: nodes or sources, the slot of its own at which the run
    # begins, and its part of `places`. The slots of a node lie together there.
    most = 2 * len(nodes) + 1
    children, clocks = np.empty(most, np.int64), np.empty(most, np.int64)
    begins, sizes = np.empty(most, np.int64), np.empty(most, np.int64)
    done = 0
    for run in range(len(starts)):
        place, stop = starts[run] + shift, stops[run] + shift
        while place < stop:
            num = min(stop - place, AT_ONCE)
            for i in range(num):
                places[i] = np.uint32(i)
            children[0], clocks[0], begins[0], sizes[0] = top, place, 0, num
            now, known = 0, 1
            while now < known:
                child, n, begin, size = children[now], clocks[now], begins[now], sizes[now]
                now += 1
                mine = places[begin : begin + size]
                if child < 0:
                    number = base[~child] + n
                    for i in range(size):
                        sources[done + mine[i]] = np.int32(~child)
                        numbers[done + mine[i]] = number + i
                    continue
                before, minor = _split(n, child, nodes, ratios, at, lanes, marked, mine, spare)
                if minor:
                    children[known], clocks[known] = nodes[child, FIRST], before
                    begins[known], sizes[known] = begin + size - minor, minor
                    known += 1
                if minor < size:
                    children[known], clocks[known] = nodes[child, SECOND], n - before
                    begins[known], sizes[known] = begin, size - minor
                    known += 1
            place += num
            done += num


@kernel(
    INT64,
    READ_UINT32,
    INT64,
    INT64,
    READ_NODES,
    READ_RATIOS,
    READ_INT64,
    READ_INT64,
    WRITE_INT64,
)
def find(
    phase: int,
    key: UInt32s,
    source: int,
    base: int,
    nodes: Int64s,
    ratios: Float64s,
    ups: Int64s,
    numbers: Int64s,
    out: Int64s,
) -> None:
    """Write at which places of a phase some units of a source are read; all are below 2**63.

    Parameters
    ----------
    phase, key, nodes, ratios
        As for `deal`.
    source, base : int
        The source, and its units before the phase.
    ups : int64 (num_nodes + k,)
        As `plant` writes it.
    numbers : int64 (num,)
        The units' numbers, from `base` on.
    out : int64 (num,)
        Gets their places, counted from the phase's start.
    """
    at, lanes = _coins(phase, key), np.empty(LANES, U64)
    for i in range(len(numbers)):
        n, up = numbers[i] - base, ups[len(nodes) + source]
        while up >= 0:
            v = up >> 1
            c, more = n, 0
            if not up & 1:  # count the minority's units that come before
                of_majority = nodes[v, Q] - nodes[v, P]
                # Those before unit c do, as their windows have ended. Of the others c may, and the
                # next if `more`: else its window begins at slot n + c + 2 or later.
                c, rest = any_part(n, nodes[v, P], of_majority, ratios[v, OF_MAJORITY])
                more = np.int64(of_majority - rest < nodes[v, P])
            _look(c, more, v, nodes, ratios, at, lanes)
            slot = _seen(c, c, v, nodes, ratios, at, lanes)
            if up & 1:
                n = np.int64(slot)
            else:
                n += c
                if slot <= U64(n):
                    n += 1
                    if more and _seen(c + 1, c, v, nodes, ratios, at, lanes) <= U64(n):
                        n += 1
            up = ups[v]
        out[i] = n
