"""Which source a mixture reads at a place, both ways. Frozen: mixture-v1.

A node of the tree (see tree.py) has S slots of a block, and its minority has m of them. Unit c of
the minority is dealt one slot of its window, those with tickets in [c * S, (c + 1) * S), where slot
x has the tickets [x * m, (x + 1) * m). So two units share at most one slot. Even units take the
slot of a random ticket; odd units take what these leave, corrected for how often they leave it, so
that every slot is the minority's with probability m / S. The majority gets the others in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_NODES,
    READ_UINT32,
    WRITE_INT32,
    WRITE_INT64,
    helper,
    kernel,
)
from indexplan.kernels.philox import HALF, LOW, ONE, TWO, U64, ZERO, philox
from indexplan.kernels.tree import FACTOR, FIRST, MINOR, SECOND, SHIFT, SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]
    UInt8s: TypeAlias = NDArray[np.uint8]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

AT_ONCE = 16_384  # slots that are dealt at a time, in the second-level cache
PAIRS = 32  # of units, an even and an odd one, whose slots are computed at a time: see `_slots_of`


@helper
def _slots_of(pair: int, num: int, v: int, nodes: Int64s, at: UInt64s, lanes: UInt64s) -> None:
    """Write the slots of the even units of pairs [pair, pair + num], and of the odd ones but one.

    The last pair's even unit is the neighbour of the odd unit before. Units from m on get slots
    from S on. Up to PAIRS pairs and a neighbour fit; `at` is the block, low and high, the number of
    the phase and the key.
    """
    node = nodes[v]
    slots, minor = U64(node[SLOTS]) & LOW, U64(node[MINOR]) & LOW
    factor, shift = U64(node[FACTOR]) & LOW, U64(node[SHIFT])
    low, high, tag, k0, k1 = at[0], at[1], U64(v) << U64(12) | at[2], at[3], at[4]
    even, odd, second, third = lanes[0], lanes[1], lanes[2], lanes[3]
    tickets = U64(2 * pair) * slots
    begin = tickets // minor  # from here on numerators are below (2 * PAIRS + 3) * 2**20
    rest = tickets - begin * minor
    first = U64(pair)
    for i in range(num + 1):
        w0, w1, w2, _ = philox(low, high, first + U64(i), tag, k0, k1)
        ticket = rest + TWO * U64(i) * slots + ((w0 & LOW) * slots >> HALF)
        even[i] = begin + ((ticket & LOW) * factor >> shift)
        second[i], third[i] = w1, w2
    for i in range(num):
        ticket = rest + (TWO * U64(i) + ONE) * slots
        lowest = (ticket & LOW) * factor >> shift
        a = ticket - lowest * minor  # the tickets of the lowest slot that the unit before has
        ticket += slots
        highest = (ticket & LOW) * factor >> shift
        b = ticket - highest * minor  # those of the highest slot that the unit itself has
        before, after = even[i] - begin, even[i + 1] - begin
        w1, w2 = second[i] & LOW, third[i] & LOW
        inner = lowest + U64(a > ZERO)
        slot = inner + (w2 * ((highest - inner) & LOW) >> HALF)
        of_next = (LOW - w1) * ((slots - minor + b) & LOW) < b << HALF
        slot = highest if (b > ZERO) & (after != highest) & of_next else slot
        of_last = w1 * ((slots - a) & LOW) < (minor - a) << HALF
        slot = lowest if (a > ZERO) & (before != lowest) & of_last else slot
        odd[i] = begin + slot


@helper
def _slot(c: int, v: int, nodes: Int64s, at: UInt64s, lanes: UInt64s) -> int:
    """Return the slot of a unit of a node's minority."""
    _slots_of(c >> 1, c & 1, v, nodes, at, lanes)
    slot: int = np.int64(lanes[c & 1, 0])
    return slot


@helper
def _before(n: int, v: int, nodes: Int64s, at: UInt64s, lanes: UInt64s) -> int:
    """Return how many of a node's first n slots are the minority's."""
    slots, minor = nodes[v, SLOTS], nodes[v, MINOR]
    found: int = minor
    if n < slots:
        c = n * minor // slots  # the only unit that may be dealt a slot before n or one from n on
        found = c + (_slot(c, v, nodes, at, lanes) < n)
    return found


@helper
def _block(block: int, phase: int, key: UInt32s, at: UInt64s) -> None:
    """Write what the words of a block depend on."""
    at[0], at[1], at[2] = U64(block) & LOW, U64(block) >> HALF, U64(phase)
    at[3], at[4] = U64(key[0]), U64(key[1])


@kernel(INT64, INT64, READ_UINT32, READ_INT64, READ_NODES, INT64, WRITE_INT64)
def count_before(
    place: int, phase: int, key: UInt32s, shares: Int64s, nodes: Int64s, top: int, out: Int64s
) -> None:
    """Add how many units of each source are read before a place of a phase.

    Parameters
    ----------
    place : int
        Counted from the phase's start, 0 <= place < 2**63.
    phase, key, shares, nodes, top
        As for `deal`.
    out : int64 (k,)
        The counts are added to it.
    """
    block, r = divmod(place, shares.sum())
    for j in range(len(shares)):
        out[j] += block * shares[j]
    at, lanes = np.empty(5, U64), np.empty((4, PAIRS + 1), U64)
    _block(block, phase, key, at)
    clocks = np.empty(len(nodes), np.int64)
    if top < 0:
        out[~top] += r
    else:
        clocks[0] = r
    for v in range(len(nodes)):
        minor = _before(clocks[v], v, nodes, at, lanes)
        for side in range(2):
            child, num = nodes[v, FIRST + side], clocks[v] - minor if side else minor
            if child < 0:
                out[~child] += num
            else:
                clocks[child] = num


@helper
def _split(
    n: int,
    v: int,
    nodes: Int64s,
    at: UInt64s,
    lanes: UInt64s,
    marked: UInt8s,
    places: UInt32s,
    spare: UInt32s,
) -> tuple[int, int]:
    """Sort the places of a run of a node's slots, from slot n on: the majority's first.

    Returns how many slots before n are the minority's, and how many of the run's. `marked` is all 0
    before and after.
    """
    slots, minor, num = nodes[v, SLOTS], nodes[v, MINOR], len(places)
    first = n * minor // slots
    last = ((n + num) * minor - 1) // slots  # the last unit whose window begins before the end
    pair, stop = first >> 1, (last + 1) >> 1
    before, even, odd = first, lanes[0], lanes[1]
    while True:
        count = min(PAIRS, stop - pair)
        _slots_of(pair, count, v, nodes, at, lanes)
        if pair == first >> 1:
            before += lanes[first & 1, 0] < U64(n)
        for i in range(count + 1):
            if even[i] - U64(n) < U64(num):
                marked[even[i] - U64(n)] = 1
        for i in range(count):
            if odd[i] - U64(n) < U64(num):
                marked[odd[i] - U64(n)] = 1
        pair += count
        if pair >= stop:
            break
    found, others = ZERO, ZERO
    for i in range(num):  # without a branch, which would often be mispredicted
        place, mine = places[i], U64(marked[i])
        places[others], spare[found] = place, place
        found += mine
        others += ONE - mine
        marked[i] = 0
    for i in range(found):
        places[others + i] = spare[i]
    return before, np.int64(found)


@kernel(
    INT64,
    INT64,
    READ_UINT32,
    READ_INT64,
    READ_INT64,
    READ_NODES,
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
    shares: Int64s,
    nodes: Int64s,
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
    shares : int64 (k,)
        Units of each source in a block.
    nodes : int64 (num_nodes, 6)
        The tree, as `plant` writes it.
    top : int
        The root, 0, or ~ the number of the only source.
    starts, stops : int64 (num_runs,)
        The runs of positions.
    sources, numbers : int32 and int64 (sum(stops - starts),)
        Get the sources, and the numbers of their units, counted from the start of the whole run.
    """
    num_slots = shares.sum()
    at, lanes = np.empty(5, U64), np.empty((4, PAIRS + 1), U64)
    places, spare = np.empty(AT_ONCE, np.uint32), np.empty(AT_ONCE, np.uint32)
    marked = np.zeros(AT_ONCE, np.uint8)
    # What is left to do, breadth first: nodes or sources, the slot of its own at which the run
    # begins, and its part of `places`. The slots of a node lie together there.
    children, clocks = (
        np.empty(2 * len(nodes) + 1, np.int64),
        np.empty(2 * len(nodes) + 1, np.int64),
    )
    begins, sizes = np.empty(2 * len(nodes) + 1, np.int64), np.empty(2 * len(nodes) + 1, np.int64)
    done = 0
    for run in range(len(starts)):
        place, stop = starts[run] + shift, stops[run] + shift
        while place < stop:
            block, r = divmod(place, num_slots)
            num = min(stop - place, num_slots - r, AT_ONCE)
            _block(block, phase, key, at)
            for i in range(num):
                places[i] = np.uint32(i)
            children[0], clocks[0], begins[0], sizes[0] = top, r, 0, num
            now, known = 0, 1
            while now < known:
                child, n, begin, size = children[now], clocks[now], begins[now], sizes[now]
                now += 1
                mine = places[begin : begin + size]
                if child < 0:
                    j = ~child
                    number = base[j] + block * shares[j] + n
                    for i in range(size):
                        sources[done + mine[i]] = np.int32(j)
                        numbers[done + mine[i]] = number + i
                    continue
                before, minor = _split(n, child, nodes, at, lanes, marked, mine, spare)
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
    INT64, READ_UINT32, INT64, INT64, READ_INT64, READ_NODES, READ_INT64, READ_INT64, WRITE_INT64
)
def find(
    phase: int,
    key: UInt32s,
    source: int,
    base: int,
    shares: Int64s,
    nodes: Int64s,
    ups: Int64s,
    numbers: Int64s,
    out: Int64s,
) -> None:
    """Write at which places of a phase some units of a source are read.

    Parameters
    ----------
    phase, key, shares, nodes
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
    num_slots = shares.sum()
    at, lanes = np.empty(5, U64), np.empty((4, PAIRS + 1), U64)
    for i in range(len(numbers)):
        block, c = divmod(numbers[i] - base, shares[source])
        _block(block, phase, key, at)
        up = ups[len(nodes) + source]
        while up >= 0:
            v = up >> 1
            if up & 1:
                c = _slot(c, v, nodes, at, lanes)
            else:  # count the minority's units among the slots before
                minor = nodes[v, MINOR]
                u = max(0, c * minor // (nodes[v, SLOTS] - minor) - 1)
                while u < minor and _slot(u, v, nodes, at, lanes) - u <= c:
                    u += 1
                c += u
            up = ups[v]
        out[i] = block * num_slots + c
