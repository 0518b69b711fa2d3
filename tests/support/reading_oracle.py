"""Who reads which shard when, from batches and sets: too simple to be wrong."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import Bins
from tests.support.strategies import seeds


def shard_of(sizes: Sequence[int]) -> list[int]:
    """Return the shard of each sample."""
    return [shard for shard, size in enumerate(sizes) for _ in range(size)]


def read_in(
    plan: ip.Plan, sizes: Sequence[int], epoch: int, sub_epoch: int, step: int, ranks: range
) -> list[int]:
    """Return the shard of each sample that some ranks read in a step."""
    shards = shard_of(sizes)
    batches = [plan.batch(epoch, sub_epoch, step=step, rank=rank).tolist() for rank in ranks]
    return [shards[index] for batch in batches for index in batch]


@st.composite
def shards_of(draw: st.DrawFn, num_samples: int) -> list[int]:
    """Draw sizes of shards, some of them empty, that hold so many samples."""
    cuts = sorted(draw(st.lists(st.integers(0, num_samples), max_size=12)))
    edges = [0, *cuts, num_samples]
    return [high - low for low, high in pairwise(edges)]


@st.composite
def orders_of_all_kinds(draw: st.DrawFn) -> ip.Order:
    """Draw an order of samples, of bins, of samples that come again, or of shards."""
    n, seed = draw(st.integers(1, 80)), draw(seeds)
    kind = draw(st.sampled_from(["samples", "bins", "again", "shards"]))
    if kind == "shards":
        sizes = draw(shards_of(n))
        lanes = draw(st.integers(1, 5))
        return ip.ShardShuffle(sizes, lanes=lanes, stripe=3 * lanes, window=1, seed=seed)
    if kind == "bins":
        return Bins(n)
    return ip.Weighted(range(1, n + 1), seed=seed) if kind == "again" else ip.Shuffle(n, seed)
