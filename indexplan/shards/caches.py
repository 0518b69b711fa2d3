"""How many samples a node's cache of shards would have saved, under three rules of what to keep."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from heapq import heappop, heappush

from indexplan.orders.base import Int64

NEVER = 2**62  # the next use of a shard that is not used again


def lru(trace: Int64, sizes: Int64, room: int) -> int:
    """Return how many samples are found in a cache that drops the least recently used shard.

    Parameters
    ----------
    trace : int64 (uses,)
        The shards that a node needs, one after another.
    sizes : int64 (num_shards,)
        Samples in each shard.
    room : int
        Samples that the cache can hold.
    """
    kept: OrderedDict[int, int] = OrderedDict()
    used = found = 0
    for shard, size in zip(trace.tolist(), sizes[trace].tolist(), strict=True):
        if shard in kept:
            found += size
            kept.move_to_end(shard)
        elif size <= room:
            while used + size > room:
                used -= kept.popitem(last=False)[1]
            kept[shard] = size
            used += size
    return found


def pinned(trace: Int64, sizes: Int64, room: int) -> int:
    """Return how many samples are found in a cache that keeps the first shards that fit."""
    kept: set[int] = set()
    used = found = 0
    for shard, size in zip(trace.tolist(), sizes[trace].tolist(), strict=True):
        if shard in kept:
            found += size
        elif used + size <= room:
            kept.add(shard)
            used += size
    return found


def belady(trace: Int64, sizes: Int64, room: int) -> int:
    """Return how many samples are found in a cache that drops the shard needed again last.

    That may be the shard just read, which is then not kept.
    """
    kept: dict[int, int] = {}  # the next use of each shard
    waiting: list[tuple[int, int]] = []  # (-next use, shard), including outdated entries
    used = found = 0
    needed = zip(trace.tolist(), sizes[trace].tolist(), _next_uses(trace), strict=True)
    for shard, size, again in needed:
        if shard in kept:
            found += size
        elif size <= room:
            while used + size > room and -waiting[0][0] > again:
                late, other = heappop(waiting)
                if kept.get(other) == -late:
                    del kept[other]
                    used -= int(sizes[other])
            if used + size > room:
                continue
            used += size
        else:
            continue
        kept[shard] = again
        heappush(waiting, (-again, shard))
    return found


RULES: dict[str, Callable[[Int64, Int64, int], int]] = {
    "LRU": lru,
    "pinned": pinned,
    "Belady": belady,
}


def _next_uses(trace: Int64) -> list[int]:
    """Return for each use of a shard where its next use is; NEVER or more if there is none.

    All are different, so that an entry of the heap is outdated if it is not the shard's next use.
    """
    coming: dict[int, int] = {}
    nexts = []
    for i, shard in zip(range(len(trace) - 1, -1, -1), reversed(trace.tolist()), strict=True):
        nexts.append(coming.get(shard, NEVER + i))
        coming[shard] = i
    return nexts[::-1]
