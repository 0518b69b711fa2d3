"""Dealing members of classes, both ways: class-balanced-v1 and class-batches-v1. Frozen.

Both deal things in rounds. Of n things, dealt in tuples of `size`, a round deals as many as fill
whole tuples, and leaves out the others, which take turns at being left out:

    period = n - n % size (n where n < size);  round, at = divmod(number, period)
    thing = ((round + 1) * (n - period) + shuffle on [0, period)(at)) mod n
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_UINT8,
    READ_UINT32,
    WRITE_INT64,
    WRITE_UINT8,
    helper,
    kernel,
)
from indexplan.kernels.drawn import AT, C0, C1, C3, NUM_LANES, ROOM, N, draw_each
from indexplan.kernels.philox import HALF, LOW, ONE, U64, ZERO

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt8s: TypeAlias = NDArray[np.uint8]
    UInt32s: TypeAlias = NDArray[np.uint32]
    UInt64s: TypeAlias = NDArray[U64]


@kernel(READ_INT64, INT64, WRITE_INT64)
def count_labels(labels: Int64s, least: int, counts: Int64s) -> None:
    """Add to each label's count how often it occurs.

    Parameters
    ----------
    labels : int64 (num,)
        Each from `least` to least + len(counts) - 1; others are of a changed file, and not counted.
    least : int
        The label of the first count.
    counts : int64 (num_labels,)
        Counts so far.
    """
    for label in labels:
        if 0 <= label - least < len(counts):
            counts[label - least] += 1


@kernel(READ_INT64, INT64, WRITE_UINT8)
def mark_labels(labels: Int64s, least: int, bits: UInt8s) -> None:
    """Set the bit of each label; `least` has the first. Labels past them are of a changed file."""
    for label in labels:
        if 0 <= label - least < 8 * len(bits):
            bits[(label - least) >> 3] |= np.uint8(1 << ((label - least) & 7))


@kernel(READ_INT64, INT64, READ_UINT8, WRITE_INT64)
def find_marked(labels: Int64s, least: int, bits: UInt8s, out: Int64s) -> int:
    """Write which of some labels are marked, rising; return how many."""
    num = 0
    for i in range(len(labels)):
        out[num] = i  # written over unless it counts
        if 0 <= labels[i] - least < 8 * len(bits):
            num += (bits[(labels[i] - least) >> 3] >> ((labels[i] - least) & 7)) & 1
    return num


@kernel(READ_INT64, WRITE_INT64, WRITE_INT64)
def place_members(classes: Int64s, ends: Int64s, out: Int64s) -> None:
    """Write the place of each sample in a table of members by class.

    Parameters
    ----------
    classes : int64 (num,)
        The class of each sample; -1 is of a changed file, and has no place.
    ends : int64 (num_classes,)
        Where the next member of each class goes; advanced past those placed.
    out : int64 (num,)
        Gets the places.
    """
    for i in range(len(classes)):
        if classes[i] >= 0:
            out[i] = ends[classes[i]]
            ends[classes[i]] += 1


@helper
def _period(n: U64, size: U64) -> U64:
    """Return how many of n things a round deals."""
    return n - n % size if n >= size else n


@helper
def _turned(thing: U64, turn: U64, n: U64, period: U64, forward: bool) -> U64:
    """Return a thing rotated to where its round begins, or back."""
    if period == n:
        return thing
    by = (turn + ONE) % n * (n - period) % n
    turned: U64 = (thing + (by if forward else n - by)) % n
    return turned


@kernel(INT64, INT64, READ_UINT32, READ_INT64, WRITE_INT64, WRITE_INT64)
def row_things(n: int, size: int, key: UInt32s, numbers: Int64s, rows: Int64s, out: Int64s) -> None:
    """Write which of n things rows deal under some numbers.

    Parameters
    ----------
    n : int
        Things, 1 <= n < 2**63.
    size : int
        Things in a tuple: a row deals as many things as fill whole tuples.
    key : uint32 (2,)
        The Philox key that yields the key words of every row.
    numbers : int64 (num,)
        Row * period + place in the row.
    rows, out : int64 (num,)
        Get the rows, and the things.
    """
    lanes, period = np.empty(ROOM, U64), _period(U64(n), U64(size))
    for done in range(0, len(numbers), NUM_LANES):
        num = min(NUM_LANES, len(numbers) - done)
        for k in range(num):
            i = U64(k)
            row, lanes[AT + i] = divmod(U64(numbers[done + k]), period)
            lanes[N + i] = period
            lanes[C0 + i], lanes[C1 + i], lanes[C3 + i] = row & LOW, row >> HALF, ZERO
            rows[done + k] = np.int64(row)
        part = out[done:]
        draw_each(lanes, num, key, False, part)
        if period < U64(n):
            for k in range(num):
                row = U64(rows[done + k])
                part[k] = np.int64(_turned(U64(part[k]), row, U64(n), period, True))


@kernel(INT64, INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def row_numbers(n: int, size: int, key: UInt32s, things: Int64s, rows: Int64s, out: Int64s) -> None:
    """Write under which numbers rows deal some things; -1 where a row leaves the thing out.

    Parameters
    ----------
    n, size, key
        As for `row_things`.
    things, rows : int64 (num,)
        Things in [0, n), and rows.
    out : int64 (num,)
        Gets the numbers.
    """
    lanes, period = np.empty(ROOM, U64), _period(U64(n), U64(size))
    for done in range(0, len(things), NUM_LANES):
        num = min(NUM_LANES, len(things) - done)
        for k in range(num):
            i, row = U64(k), U64(rows[done + k])
            at = _turned(U64(things[done + k]), row, U64(n), period, False)
            lanes[AT + i], lanes[N + i] = min(at, period - ONE), period
            lanes[C0 + i], lanes[C1 + i], lanes[C3 + i] = row & LOW, row >> HALF, ZERO
        part = out[done:]
        draw_each(lanes, num, key, True, part)
        for k in range(num):
            row = U64(rows[done + k])
            left_out = _turned(U64(things[done + k]), row, U64(n), period, False) >= period
            part[k] = -1 if left_out else part[k] + np.int64(row * period)


@kernel(INT64, READ_INT64, READ_UINT32, READ_INT64, READ_INT64, WRITE_INT64)
def class_members(
    size: int,
    sizes: Int64s,
    key: UInt32s,
    classes: Int64s,
    numbers: Int64s,
    out: Int64s,
) -> None:
    """Write which members classes deal under some numbers, by their rank in the class.

    Parameters
    ----------
    size : int
        Members in a tuple: a round deals as many as fill whole tuples, or all if they are too few.
    sizes : int64 (num_classes,)
        How many members each class has.
    key : uint32 (2,)
        The Philox key that yields the key words of each round of each class.
    classes, numbers : int64 (num,)
        Classes, and for each of them round * period + place in the round.
    out : int64 (num,)
        Gets the ranks.
    """
    lanes = np.empty(ROOM, U64)
    for done in range(0, len(classes), NUM_LANES):
        num = min(NUM_LANES, len(classes) - done)
        for k in range(num):
            i, c = U64(k), classes[done + k]
            period = _period(U64(sizes[c]), U64(size))
            turn, lanes[AT + i] = divmod(U64(numbers[done + k]), period)
            lanes[N + i] = period
            lanes[C0 + i], lanes[C1 + i], lanes[C3 + i] = U64(c) & LOW, turn & LOW, turn >> HALF
        part = out[done:]
        draw_each(lanes, num, key, False, part)
        for k in range(num):
            c = classes[done + k]
            n = U64(sizes[c])
            period = _period(n, U64(size))
            if period < n:
                turn = U64(numbers[done + k]) // period
                part[k] = np.int64(_turned(U64(part[k]), turn, n, period, True))


@kernel(
    INT64, READ_INT64, READ_UINT32, READ_INT64, READ_INT64, READ_INT64, WRITE_INT64
)  # fmt: skip
def member_numbers(
    size: int,
    sizes: Int64s,
    key: UInt32s,
    classes: Int64s,
    members: Int64s,
    turns: Int64s,
    out: Int64s,
) -> None:
    """Write under which numbers rounds of classes deal members; -1 where one is left out.

    Parameters
    ----------
    size, sizes, key
        As for `class_members`.
    classes, members, turns : int64 (num,)
        Classes, members by their rank in the class, and rounds of the class.
    out : int64 (num,)
        Gets the numbers.
    """
    lanes = np.empty(ROOM, U64)
    for done in range(0, len(classes), NUM_LANES):
        num = min(NUM_LANES, len(classes) - done)
        for k in range(num):
            i, c, turn = U64(k), classes[done + k], U64(turns[done + k])
            n = U64(sizes[c])
            period = _period(n, U64(size))
            at = _turned(U64(members[done + k]), turn, n, period, False)
            lanes[AT + i], lanes[N + i] = min(at, period - ONE), period
            lanes[C0 + i], lanes[C1 + i], lanes[C3 + i] = U64(c) & LOW, turn & LOW, turn >> HALF
        part = out[done:]
        draw_each(lanes, num, key, True, part)
        for k in range(num):
            c, turn = classes[done + k], U64(turns[done + k])
            n = U64(sizes[c])
            period = _period(n, U64(size))
            left_out = _turned(U64(members[done + k]), turn, n, period, False) >= period
            part[k] = -1 if left_out else part[k] + np.int64(turn * period)
