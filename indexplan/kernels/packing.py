"""Packing samples into bins by length, group by group, for packed-v1. Frozen.

Bins that are alike form a group: a move puts some samples of a stratum into each bin of a group, or
into its first bins. So the cost depends on the number of moves, not of samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    WRITE_GROUPS,
    WRITE_INT64,
    WRITE_TABLE,
    helper,
    kernel,
)
from indexplan.kernels.strata import BEFORE, BIN, MANY, PLACE, STRATUM

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]

# A group of equal bins has the number of the move that made it, which also tells how old it is;
# group 0 are the empty bins. Columns of the table of groups: the room left in each bin, the samples
# in each, the first of the bins that are left in the group, and how many these are.
LEFT, SIZE, FIRST, COUNT = range(4)

FEW = 1024  # moves for which there is room at first


@helper
def _ahead(one: int, other: int, groups: Int64s, most: bool) -> bool:
    """Return whether a group comes before another: most room first, or least; ties to the older."""
    room, rooms = groups[one, LEFT], groups[other, LEFT]
    ahead: bool = one < other if room == rooms else (room > rooms) == most
    return ahead


@helper
def _push(heap: Int64s, group: int, groups: Int64s, most: bool) -> None:
    """Put a group into a heap, an array with its size at 0 and its first group at 1."""
    heap[0] += 1
    at = heap[0]
    while at > 1 and _ahead(group, heap[at >> 1], groups, most):
        heap[at] = heap[at >> 1]
        at >>= 1
    heap[at] = group


@helper
def _pop(heap: Int64s, groups: Int64s, most: bool) -> None:
    """Take the first group out of a heap."""
    group, at, child = heap[heap[0]], 1, 2
    heap[0] -= 1
    while child <= heap[0]:
        if child < heap[0] and _ahead(heap[child + 1], heap[child], groups, most):
            child += 1
        if not _ahead(heap[child], group, groups, most):
            break
        heap[at] = heap[child]
        at, child = child, 2 * child
    heap[at] = group


@kernel(
    READ_INT64,
    READ_INT64,
    INT64,
    INT64,
    WRITE_INT64,
    WRITE_TABLE,
    WRITE_GROUPS,
    WRITE_INT64,
    WRITE_INT64,
)
def pack(
    firsts: Int64s,
    lengths: Int64s,
    max_samples: int,
    tail: int,
    state: Int64s,
    moves: UInt32s,
    groups: Int64s,
    roomy: Int64s,
    tight: Int64s,
) -> bool:
    """Make moves that pack samples into bins, until all are packed or the tables are full.

    Returns whether all are packed. If not, the next call continues with longer tables.

    Parameters
    ----------
    firsts : int64 (num_strata + 1,)
        The first place of each stratum in the row of all samples, and the number of samples.
    lengths : int64 (num_strata,)
        The length that each sample of a stratum counts as, falling.
    max_samples : int
        Most samples in a bin.
    tail : int
        While more than this is left, samples go into the bins with the most room; then into those
        with the least room that suffices.
    state : int64 (5,)
        Where the packing stands: see `packed`.
    moves : uint32 (size, 5)
        Gets the moves, as for `fill_bins`, of one stratum after another.
    groups : int64 (size, 4)
        Gets the group that each move made.
    roomy, tight : int64 (size + 1,)
        Heaps of groups.
    """
    begin, place, left, num_bins, made = state[0], state[1], state[2], state[3], state[4]
    for c in range(begin, len(lengths)):
        length, num = lengths[c], firsts[c + 1] - place
        spread = left > tail
        while (
            place == firsts[c] and not spread and roomy[0] > 0 and groups[roomy[1], LEFT] >= length
        ):
            _push(tight, roomy[1], groups, False)
            _pop(roomy, groups, True)
        while num > 0:
            if made == len(moves):
                state[0], state[1], state[2], state[3], state[4] = c, place, left, num_bins, made
                return False
            heap = roomy if spread else tight
            opened = heap[0] == 0 or groups[heap[1], LEFT] < length
            group = 0 if opened else heap[1]
            if opened:  # open as many new bins as may be needed
                groups[0, FIRST], groups[0, COUNT] = num_bins, num
            room, size, first = groups[group, LEFT], groups[group, SIZE], groups[group, FIRST]
            # if no other bin comes in between, a bin takes all that it can before the next one
            many = 1 if spread and not opened else min(room // length, max_samples - size, num)
            count = min(groups[group, COUNT], num // many)
            groups[group, FIRST] += count
            groups[group, COUNT] -= count
            if opened:
                num_bins += count
                groups[0, COUNT] = 0
            elif groups[group, COUNT] == 0:
                _pop(heap, groups, spread)
            moves[made, PLACE], moves[made, STRATUM], moves[made, BIN] = place, c, first
            moves[made, MANY], moves[made, BEFORE] = many, group
            room, size = room - many * length, size + many
            groups[made, LEFT], groups[made, SIZE] = room, size
            groups[made, FIRST], groups[made, COUNT] = first, count
            if room > 0 and size < max_samples:
                _push(roomy, made, groups, True)
            place += many * count
            num -= many * count
            made += 1
        left -= length * (firsts[c + 1] - firsts[c])
    state[4] = made
    return True


def packed(
    firsts: Int64s, lengths: Int64s, max_length: int, max_samples: int, total: int, tail: int
) -> tuple[UInt32s, Int64s]:
    """Return the moves that pack all samples into bins, and the groups after all moves.

    Parameters
    ----------
    firsts, lengths, max_samples, tail
        As for `pack`.
    max_length : int
        Most tokens in a bin; no length is above it.
    total : int
        The sum of the lengths of all samples, below 2**63.

    Returns
    -------
    moves : uint32 (num_moves + 1, 5)
        As for `fill_bins`.
    groups : int64 (num_moves + 1, 4)
        The group that each move made.
    """
    moves, groups = np.zeros((FEW, 5), np.uint32), np.zeros((FEW, 4), np.int64)
    heaps = np.zeros((2, FEW + 1), np.int64)
    num_bins = (total - 1) // max_length + 1
    groups[0, LEFT], groups[0, COUNT] = max_length, num_bins
    heaps[0, 0] = 1  # of the heap with the empty bins
    # the stratum, the place in the row of samples, the tokens that are left, bins and moves
    state = np.array([0, firsts[0], total, num_bins, 1], np.int64)
    given = firsts, lengths, max_samples, tail, state
    while not pack(*given, moves, groups, *heaps):
        moves, groups = np.concatenate([moves, moves]), np.concatenate([groups, groups])
        heaps = np.concatenate([heaps, heaps], axis=1)
    num = int(state[4])
    return moves[:num].copy(), groups[:num].copy()
