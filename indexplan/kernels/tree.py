"""The tree of two-way choices by which a mixture deals its slots to sources. Frozen: mixture-v1.

Each node deals its slots to two children, the minority and the majority, in the exact ratio of
their shares. A tree is the one of some candidates in which the counts of sources stay closest to
their shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    READ_INT64,
    WRITE_GROUPS,
    WRITE_INT64,
    WRITE_RATIOS,
    helper,
    kernel,
)
from indexplan.kernels.philox import U64
from indexplan.kernels.ratios import part, ticks_in

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Float64s: TypeAlias = NDArray[np.float64]
    Int64s: TypeAlias = NDArray[np.int64]

MOST_ALONE = 15  # smallest sources that a candidate joins apart from the others
RARE = 12  # a node with a window of 2**12 slots or more draws words of 64 bits
SLOT = 2**32  # in which deviations are measured
# The columns of a node. Of p / q, the part of its slots that its minority gets: p, q, q // p and
# q mod p. A window has TICKS, and LEFT / p of one more; a slot has 2**BITS. And the children: a
# node's number, or ~ that of a source.
P, Q, SLOTS, REST, TICKS, LEFT, BITS, FIRST, SECOND = range(9)
COLUMNS = 9
# What guesses of quotients need, as floats: p / q, (q mod p) / p, 2**BITS / p and p / (q - p).
OF_SLOTS, OF_UNITS, OF_TICKS, OF_MAJORITY = range(4)
RATIOS = 4


@helper
def _huffman(first: int, last: int, made: int, share: Int64s, children: Int64s) -> int:
    """Join the leaves [first, last), which rise by share, into one tree; return its root.

    Joined nodes get the numbers from `made` on. They rise by share too, so the smallest two are
    always among the first leaf and the first joined node that are left.
    """
    if last - first == 1:
        return first
    oldest, stop = made, made + last - first - 1
    while made < stop:
        total = np.int64(0)
        for side in range(2):
            if first < last and (oldest == made or share[first] <= share[oldest]):
                child, first = first, first + 1
            else:
                child, oldest = oldest, oldest + 1
            children[made, side] = child
            total += share[child]
        share[made] = total
        made += 1
    return made - 1


@helper
def _candidate(alone: int, num: int, share: Int64s, children: Int64s) -> None:
    """Join all leaves, the `alone` smallest apart from the others; the root is joined last."""
    root = 2 * num - 2
    if alone == 0:
        _huffman(0, num, num, share, children)
    else:
        small = _huffman(0, alone, num, share, children)
        large = _huffman(alone, num, num + alone - 1, share, children)
        share[root] = share[small] + share[large]
        if share[small] > share[large]:
            small, large = large, small
        children[root, 0], children[root, 1] = small, large


@helper
def _own(slots: int, minor: int) -> int:
    """Return how far a node's count of its minority is off at most: (1 - 1 / q) slots, or 1."""
    if slots >= SLOT:  # then 1 / q need not be known, which would take longer than all else
        return SLOT
    x, y = np.uint32(slots), np.uint32(minor)
    while y:
        x, y = y, x % y
    own: int = SLOT - SLOT // (slots // np.int64(x))
    return own


@helper
def _reach(num: int, limit: int, share: Int64s, children: Int64s, reach: Int64s) -> int:
    """Return how far a source of a candidate may be from its share, or at least `limit`.

    Of a node's deviation, each child inherits its part, rounded up.
    """
    root = 2 * num - 2
    most: int = np.int64(0)
    reach[root] = 0
    for v in range(root, num - 1, -1):  # children have lower numbers
        own = _own(share[v], share[children[v, 0]])
        for side in range(2):
            child = children[v, side]
            ratio = np.float64(share[child]) / np.float64(share[v])
            whole, rest = part(reach[v], share[child], share[v], ratio)
            reach[child] = own + whole + (rest > 0)
            if child < num and reach[child] > most:
                most = reach[child]
                if most >= limit:
                    return most
    return most


@helper
def _write(slots: int, minor: int, node: Int64s, ratio: Float64s) -> None:
    """Write how a node deals its slots."""
    q, p = slots, minor
    while p:
        q, p = p, q % p
    p, q = minor // q, slots // q
    whole, rest, bits = q // p, q % p, 0
    while whole >> (bits + 1):
        bits += 1
    f = (30 if bits < RARE else 62) - bits
    ticks_each = np.float64(np.int64(1) << f) / np.float64(p)
    ticks, left = ticks_in(rest, U64(f), p, ticks_each)
    node[P], node[Q], node[SLOTS], node[REST] = p, q, whole, rest
    node[TICKS], node[LEFT], node[BITS] = (whole << f) + np.int64(ticks), np.int64(left), f
    ratio[OF_SLOTS] = np.float64(p) / np.float64(q)
    ratio[OF_UNITS] = np.float64(rest) / np.float64(p)
    ratio[OF_TICKS] = ticks_each
    ratio[OF_MAJORITY] = np.float64(p) / np.float64(q - p)


@kernel(READ_INT64, READ_INT64, WRITE_GROUPS, WRITE_RATIOS, WRITE_INT64)
def plant(shares: Int64s, leaves: Int64s, nodes: Int64s, ratios: Float64s, ups: Int64s) -> int:
    """Write the tree of some shares.

    Parameters
    ----------
    shares : int64 (k,)
        Of each source, from 0 on; less than 2**62 together.
    leaves : int64 (n,)
        The sources with a share, by rising share, then number.
    nodes : int64 (n - 1, 9)
        Gets the nodes, breadth first from the root, the minority first.
    ratios : float64 (n - 1, 4)
        Gets their ratios.
    ups : int64 (n - 1 + k,)
        Gets for each node v, at v, and for each source j, at n - 1 + j, its parent, times 2, plus 1
        if it is the minority there; -1 for the root, and for sources without a share.

    Returns
    -------
    int
        How far a source may be from its share at most, in 2**-32 slots.
    """
    num = len(leaves)
    ups[:] = -1
    if num == 1:
        return 0
    share, reach = np.empty(2 * num - 1, np.int64), np.empty(2 * num - 1, np.int64)
    children = np.empty((2 * num - 1, 2), np.int64)
    for i in range(num):
        share[i] = shares[leaves[i]]
    best, least = 0, np.int64(2**62)
    for alone in range(max(0, min(MOST_ALONE, num - 2)) + 1):
        _candidate(alone, num, share, children)
        far = _reach(num, least, share, children, reach)
        if far < least:
            best, least = alone, far
    _candidate(best, num, share, children)
    queue = np.empty(num - 1, np.int64)
    queue[0], known = 2 * num - 2, 1
    for v in range(num - 1):
        node = queue[v]
        _write(share[node], share[children[node, 0]], nodes[v], ratios[v])
        for side in range(2):
            child = children[node, side]
            if child < num:
                nodes[v, FIRST + side], at = ~leaves[child], num - 1 + leaves[child]
            else:
                nodes[v, FIRST + side], at = known, known
                queue[known] = child
                known += 1
            ups[at] = v << 1 | 1 - side
    within: int = least
    return within
