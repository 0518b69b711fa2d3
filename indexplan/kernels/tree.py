"""The tree of two-way choices by which a mixture deals its slots to sources. Frozen: mixture-v1.

Each node deals its slots to two children, the minority and the majority. A tree is the one of some
candidates in which the counts of sources stay closest to their shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import READ_INT64, WRITE_GROUPS, WRITE_INT64, helper, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]

MOST_ALONE = 15  # smallest sources that a candidate joins apart from the others
# The columns of a node: its slots in a block, those of its minority, the children (a node's number,
# or ~ that of a source), and how to divide by the minority's slots m: y // m == y * factor >> shift
# for y < 2**NUMERATOR, as factor is 2**shift / m rounded up, and its error, below 1, times y is
# less than 2**shift / m.
SLOTS, MINOR, FIRST, SECOND, FACTOR, SHIFT = range(6)
COLUMNS, NUMERATOR = 6, 27


@helper
def _quotient(x: int, y: int) -> int:
    """Return x // y, for 0 <= x <= 2**52 and 0 < y <= 2**20.

    A quotient of floats is never rounded up to a whole number that it is less than, as those differ
    by 1 / y or more. It takes a third of the time.
    """
    quotient: int = np.int64(np.float64(x) / np.float64(y))
    return quotient


@helper
def _huffman(
    first: int, last: int, made: int, share: Int64s, children: Int64s, parent: Int64s
) -> int:
    """Join the leaves [first, last), which rise by share, into one tree; return its root.

    Joined nodes get the numbers from `made` on. They rise by share too, so the smallest two are
    always among the first leaf and the first joined node that are left.
    """
    if last - first == 1:
        return first
    oldest, stop = made, made + last - first - 1
    while made < stop:
        total = 0
        for side in range(2):
            if first < last and (oldest == made or share[first] <= share[oldest]):
                child, first = first, first + 1
            else:
                child, oldest = oldest, oldest + 1
            children[made, side], parent[child] = child, made
            total += share[child]
        share[made] = total
        made += 1
    return made - 1


@helper
def _candidate(
    alone: int, num: int, share: Int64s, children: Int64s, parent: Int64s, own: Int64s
) -> None:
    """Join all leaves, the `alone` smallest apart from the others; the root is joined last."""
    root = 2 * num - 2
    if alone == 0:
        _huffman(0, num, num, share, children, parent)
    else:
        small = _huffman(0, alone, num, share, children, parent)
        large = _huffman(alone, num, num + alone - 1, share, children, parent)
        share[root] = share[small] + share[large]
        parent[small] = parent[large] = root
        if share[small] > share[large]:
            small, large = large, small
        children[root, 0], children[root, 1] = small, large
    own[:] = -1


@helper
def _own(v: int, share: Int64s, children: Int64s) -> int:
    """Return how far a node's count of its minority is off at most, in 2**-32: less than a slot."""
    x, y = np.uint32(share[v]), np.uint32(share[children[v, 0]])
    while y:
        x, y = y, x % y
    return _quotient((share[v] - np.int64(x)) << 32, share[v])


@helper
def _reach(
    num: int, limit: int, share: Int64s, children: Int64s, parent: Int64s, own: Int64s
) -> int:
    """Return how far a source of a candidate may be from its share, in 2**-32, or at least `limit`.

    A node's own count is off by less than a slot, and of the node's deviation each child inherits
    its part.
    """
    root, most = 2 * num - 2, 0
    for leaf in range(num):
        reach, child = 0, leaf
        while child != root:
            up = parent[child]
            if own[up] < 0:
                own[up] = _own(up, share, children)
            reach += _quotient(own[up] * share[leaf], share[child])
            child = up
        most = max(most, reach)
        if most >= limit:
            break
    return most


@kernel(READ_INT64, READ_INT64, WRITE_GROUPS, WRITE_INT64)
def plant(shares: Int64s, leaves: Int64s, nodes: Int64s, ups: Int64s) -> int:
    """Write the tree of some shares.

    Parameters
    ----------
    shares : int64 (k,)
        Slots of each source in a block; at most 2**20 together.
    leaves : int64 (n,)
        The sources with slots, by rising share, then number.
    nodes : int64 (n - 1, 6)
        Gets the nodes, breadth first from the root, the minority first.
    ups : int64 (n - 1 + k,)
        Gets for each node v, at v, and for each source j, at n - 1 + j, its parent, times 2, plus 1
        if it is the minority there; -1 for the root, and for sources without slots.

    Returns
    -------
    int
        How far a source may be from its share at most, in 2**-32 slots.
    """
    num = len(leaves)
    ups[:] = -1
    if num == 1:
        return 0
    share, parent = np.empty(2 * num - 1, np.int64), np.empty(2 * num - 1, np.int64)
    children, own = np.empty((2 * num - 1, 2), np.int64), np.empty(2 * num - 1, np.int64)
    for i in range(num):
        share[i] = shares[leaves[i]]
    best, least = 0, np.int64(2**62)
    for alone in range(max(0, min(MOST_ALONE, num - 2)) + 1):
        _candidate(alone, num, share, children, parent, own)
        reach = _reach(num, least, share, children, parent, own)
        if reach < least:
            best, least = alone, reach
    _candidate(best, num, share, children, parent, own)
    queue = np.empty(num - 1, np.int64)
    queue[0], known = 2 * num - 2, 1
    for v in range(num - 1):
        node = queue[v]
        minor, bits = share[children[node, 0]], 0
        while 1 << bits < minor:
            bits += 1
        shift = NUMERATOR + bits
        nodes[v, SLOTS], nodes[v, MINOR] = share[node], minor
        nodes[v, FACTOR], nodes[v, SHIFT] = ((1 << shift) + minor - 1) // minor, shift
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
