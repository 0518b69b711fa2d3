"""The row of sources that a mixture repeats, and where it may begin. Frozen: mixture-v1.

The row is the schedule of Baruah et al. 1996, "Proportionate Progress", for one processor: earliest
pseudo-deadline first. Unit m of a source may come from slot m * D / share on, and has to come
before slot (m + 1) * D / share, of D slots. A slot goes to the unit that is the soonest due of
those that may come. So only sooner units can delay a unit, and the schedule is the same if units
are dealt as they are due, each to the first free slot from where it may come on. That takes a sort
and a search in bits, 6 ns a slot; slot by slot, with a heap of sources, it took 66 ns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    READ_INT32,
    READ_INT64,
    WRITE_INT32,
    WRITE_INT64,
    WRITE_UINT16,
    helper,
    kernel,
)
from indexplan.kernels.philox import ONE, U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]
    UInt16s: TypeAlias = NDArray[np.uint16]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]

TILE = 1024  # slots whose units are sorted at a time, in the first-level cache
OF_SOURCE, SOURCE = U64(16), U64(0xFFFF)  # the low bits of a key are the source of the unit
# Bits are slots that are free, in words of 32; of the first word that has any, and of the one after
# it, they are near: hardly any unit is dealt to a slot beyond.
WORD, IN_WORD, WORD_SLOTS, FREE_WORD = U64(5), U64(31), U64(32), U64(2**32 - 1)
NEAR, IN_NEAR, FREE = U64(64), U64(63), U64(2**64 - 1)
# The lowest bit of a word, by a product whose upper 6 bits differ for each: Leiserson, Prokop and
# Randall 1998, "Using de Bruijn Sequences to Index a 1 in a Computer Word".
DE_BRUIJN = U64(0x03F79D71B4CB0A89)
BIT_OF = np.empty(64, U64)
BIT_OF[[(int(DE_BRUIJN) << bit & 2**64 - 1) >> 58 for bit in range(64)]] = np.arange(64)


@helper
def _list_due(
    due: UInt64s,
    rest: UInt64s,
    step: UInt64s,
    more: UInt64s,
    stop: U64,
    low: U64,
    half: U64,
    unsorted: UInt64s,
    counts: UInt32s,
) -> int:
    """List the units that are due before `stop`, source by source, and return how many."""
    num = ZERO
    for j in range(len(due)):
        now, fraction, each, part = due[j], rest[j], step[j], more[j]
        while now < stop:
            unsorted[num] = now << OF_SOURCE | U64(j)
            num += ONE
            counts[(now >> half) - low] += np.uint32(1)
            fraction += part
            now += each + U64(fraction < part)
        due[j], rest[j] = now, fraction
    listed: int = np.int64(num)
    return listed


@helper
def _sort(unsorted: UInt64s, num: int, ends: UInt32s, low: U64, shift: U64, keys: UInt64s) -> None:
    """Sort numbers from `low` on; `ends` counts them by number >> shift."""
    total = np.uint32(0)
    for b in range(len(ends)):
        ends[b], total = total, total + ends[b]
    for i in range(num):
        b = (unsorted[i] >> shift) - low
        to = ends[b]
        keys[to] = unsorted[i]
        ends[b] = to + np.uint32(1)
    if num == 0:
        return
    # Few are left out of place, most of them by one: so the largest so far is carried on, without a
    # branch that would often be mispredicted.
    largest, before = keys[0], ZERO
    for i in range(1, num):
        key, at = min(keys[i], largest), U64(i - 1)
        largest = max(keys[i], largest)
        if key >= before:
            before = key
        else:
            while at > ZERO and keys[at - ONE] > key:
                keys[at] = keys[at - ONE]
                at -= ONE
        keys[at] = key
    keys[num - 1] = largest


@helper
def _bit_of(lowest: U64) -> U64:
    """Return the number of the bit that is set in a power of 2."""
    bit: U64 = BIT_OF[lowest * DE_BRUIJN >> U64(58)]
    return bit


@helper
def _take(free: UInt32s, slot: U64) -> U64:
    """Take the first free slot at or after a slot, and return it."""
    at = slot >> WORD
    left = U64(free[at]) & (FREE << (slot & IN_WORD))
    while left == ZERO:
        at += ONE
        left = U64(free[at])
    left &= ~left + ONE
    free[at] ^= np.uint32(left)
    taken: U64 = at << WORD | _bit_of(left)
    return taken


@helper
def _deal(
    keys: UInt64s,
    num: int,
    whole: U64,
    may_come: UInt64s,
    at: UInt64s,
    front: U64,
    near: U64,
    free: UInt32s,
    row: UInt16s,
    slots: Int32s,
) -> tuple[U64, U64]:
    """Deal sorted units to slots.

    `near` holds the 64 slots from `front` on; both are returned. They stay in registers, so that a
    unit depends on the one before through 5 operations.
    """
    for i in range(num):
        j = keys[i] & SOURCE
        slot = max(may_come[j], front)
        ahead = slot - front
        left = (near if ahead < NEAR else ZERO) & (FREE << (ahead & IN_NEAR))
        if left != ZERO:
            left &= ~left + ONE
            near ^= left
            slot = front + _bit_of(left)
        else:
            slot = _take(free, max(slot, front + NEAR))
        may_come[j] = keys[i] >> whole
        row[slot] = np.uint16(j)
        slots[at[j]] = np.int32(slot)
        at[j] += ONE
        while near & FREE_WORD == ZERO:
            front += WORD_SLOTS
            near = near >> WORD_SLOTS | U64(free[(front >> WORD) + ONE]) << WORD_SLOTS
    return front, near


@kernel(READ_INT64, READ_INT64, WRITE_UINT16, WRITE_INT32)
def even_row(shares: Int64s, first: Int64s, row: UInt16s, slots: Int32s) -> None:
    """Write the sources of a period, and the slots of each source.

    Parameters
    ----------
    shares : int64 (k,)
        Slots of each source, which add up to len(row), D, at most 2**20; k <= 2**16.
    first : int64 (k + 1,)
        The sum of the shares of all sources before each.
    row : uint16 (D,)
        Gets the sources.
    slots : int32 (D,)
        Gets the slots of source 0, rising, then those of source 1, and so on.
    """
    num_slots, k = len(row), len(shares)
    bits = 1
    while 1 << bits < num_slots:
        bits += 1
    # Due times are kept in units of 2**-bits of a slot, rounded down: those that differ do so by at
    # least D / (share * other share) slots, which is more.
    due, rest = np.full(k, FREE), np.zeros(k, U64)
    step, more = np.zeros(k, U64), np.zeros(k, U64)
    for j in range(k):
        share = shares[j]
        if share > 0:
            whole, part = divmod(num_slots << bits, share)
            # What a step has beyond whole units is rounded up to 2**-43. All 2**20 steps come to
            # less than 2**-23 too much, and due times are 2**-20 or more below the next unit.
            part = ((part << 43) + share - 1) // share
            due[j] = step[j] = U64(whole)
            rest[j] = more[j] = U64(part) << U64(21)  # so that it wraps around at 1
    fine, half = U64(bits), U64(bits - 1)  # units are sorted by half slots first
    may_come, at = np.zeros(k, U64), first[:k].astype(U64)
    free = np.full((num_slots >> 5) + 4, np.uint32(FREE_WORD))
    front, near = ZERO, FREE
    tile = max(TILE, 4 * k)
    unsorted, keys = np.empty(tile + k, U64), np.empty(tile + k, U64)
    ends = np.empty(2 * tile, np.uint32)
    for begin in range(0, num_slots + 1, tile):
        stop, low = U64(min(begin + tile, num_slots + 1)) << fine, U64(2 * begin)
        ends[:] = np.uint32(0)
        num = _list_due(due, rest, step, more, stop, low, half, unsorted, ends)
        _sort(unsorted, num, ends, low, half + OF_SOURCE, keys)
        whole = fine + OF_SOURCE
        front, near = _deal(keys, num, whole, may_come, at, front, near, free, row, slots)


@kernel(READ_INT64, READ_INT32, WRITE_INT64, WRITE_INT64)
def spread(first: Int64s, slots: Int32s, lows: Int64s, highs: Int64s) -> None:
    """Write how far each source deviates at most from its share in a row.

    After t slots it deviates by dev(t) = dealt(t) * D - share * t.

    Parameters
    ----------
    first, slots
        As for `even_row`.
    lows, highs : int64 (k,)
        Get the smallest and the largest dev.
    """
    num_slots = len(slots)
    for j in range(len(lows)):
        mine = slots[first[j] : first[j + 1]]
        share, low, high = len(mine), np.int32(0), np.int32(-num_slots)
        for i in range(share):
            # less than D either way, so computed in 32 bits, 8 at once
            dev = np.int32(i * num_slots - share * np.int64(mine[i]))
            low, high = min(low, dev), max(high, dev)
        lows[j] = low
        highs[j] = max(0, np.int64(high) + num_slots - share)


@helper
def _allowed(mine: Int32s, num_slots: int, low: int, high: int, dealt: int) -> tuple[int, int]:
    """Return the slots [least, most) at which a row may begin, with `dealt` slots before them."""
    share = len(mine)
    least = (dealt * num_slots - low - num_slots) // share + 1
    most = (dealt * num_slots - high + num_slots + share - 1) // share
    begin = np.int64(mine[dealt - 1]) + 1 if dealt > 0 else 0
    end = np.int64(mine[dealt]) + 1 if dealt < share else num_slots
    least = min(max(least, begin), end)
    return least, min(max(most, least), end)


@helper
def _keep_even(mine: Int32s, num_slots: int, low: int, high: int, starts: Int32s, num: int) -> int:
    """Keep those of some slots from which on a source is even; return how many."""
    share, found = len(mine), 0
    rate = share / num_slots
    for i in range(num):
        slot = np.int64(starts[i])
        dealt = np.int64(slot * rate)  # or one more, as the row itself is even
        dealt += mine[dealt] < slot
        dev = dealt * num_slots - share * slot
        starts[found] = slot
        found += high - num_slots < dev < low + num_slots
    return found


@helper
def _keep_allowed(change: Int32s, num_marked: int, starts: Int32s, num: int) -> int:
    """Keep those of some slots that all marked sources allow; return how many."""
    found = allowing = until = 0
    for i in range(num):
        slot = starts[i]
        while until <= slot:
            allowing += change[until]
            until += 1
        starts[found] = slot
        found += allowing == num_marked
    return found


@kernel(READ_INT64, READ_INT32, READ_INT64, READ_INT64, READ_INT64, WRITE_INT32)
def starts_of(
    first: Int64s, slots: Int32s, lows: Int64s, highs: Int64s, order: Int64s, starts: Int32s
) -> int:
    """Write at which slots a row may begin.

    A row may be rotated to begin at a slot if all prefixes of the rotation are within 1 of the
    shares too: if high - D < dev(slot) < low + D for every source.

    Parameters
    ----------
    first, slots, lows, highs
        As for `spread`.
    order : int64 (num,)
        The sources with high - low >= D, at least one, as the others allow all slots. Those that
        allow the fewest slots come first, so that hardly any are left to check for the others.
    starts : int32 (D,)
        Gets the slots, rising.

    Returns
    -------
    int
        How many.
    """
    num_slots, found, num_marked = len(slots), 0, 0
    change = np.empty(0, np.int32)  # how many sources more allow a slot than the one before
    for number in range(len(order)):
        j = order[number]
        mine, low, high = slots[first[j] : first[j + 1]], lows[j], highs[j]
        if number > 0 and found <= 8 * len(mine):  # then all sources together take O(D)
            found = _keep_even(mine, num_slots, low, high, starts, found)
            continue
        if number > 0 and num_marked == 0:
            change = np.zeros(num_slots + 1, np.int32)
        num_marked += number > 0
        for dealt in range(len(mine) + 1):  # between two slots of a source, an interval is allowed
            least, most = _allowed(mine, num_slots, low, high, dealt)
            if number == 0:
                for slot in range(least, most):
                    starts[found] = slot
                    found += 1
            else:
                change[least] += 1
                change[most] -= 1
    return found if num_marked == 0 else _keep_allowed(change, num_marked, starts, found)
