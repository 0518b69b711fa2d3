"""Errors of orders over shards."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case

HELD = "pass how many samples each shard holds"
NOT_A_FLAG: Any = "no"
NOT_A_GRID: Any = "steps"

CASES: list[Case] = [
    (
        "a shard of less than nothing",
        lambda: ip.ShardShuffle([5, 3, -1]),
        f"the size of shard 2 must be 0 or more; got -1; {HELD}",
    ),
    (
        "shards that are all empty",
        lambda: ip.ShardShuffle([0, 0]),
        f"the sum of sizes must be from 1 to 2**63 - 1; got 0; {HELD}",
    ),
    (
        "more samples than an index can name",
        lambda: ip.ShardShuffle([2**62, 2**62]),
        f"the sum of sizes must be from 1 to 2**63 - 1; got {2**63}; {HELD}",
    ),
    (
        "sizes that are no integers",
        lambda: ip.ShardShuffle([5.0, 3.0]),
        "sizes must be a flat list or array of integers; got [5.0, 3.0]; pass integers, such as an "
        "int64 array",
    ),
    (
        "no lanes",
        lambda: ip.ShardShuffle([5], lanes=0),
        "lanes must be an integer from 1 to 2**32 - 1; got 0; leave it out for 64",
    ),
    (
        "a stripe that lanes do not divide",
        lambda: ip.ShardShuffle([500], lanes=64, stripe=100),
        "stripe must be a multiple of lanes, 64; got 100; leave it out for 64 times the lanes",
    ),
    (
        "a stripe past the last place",
        lambda: ip.ShardShuffle([2**62], lanes=1, stripe=2**62),
        f"stripe must be an integer from 1 to 2**62 - 1; got {2**62}; leave it out for 64 times "
        "the lanes",
    ),
    (
        "a window of no shards",
        lambda: ip.ShardShuffle([5], window=0),
        "window must be an integer from 1 to 2**32 - 1; got 0; leave it out for 2",
    ),
    (
        "sticky, as a word",
        lambda: ip.ShardShuffle([5], sticky=NOT_A_FLAG),
        "sticky must be True or False; got 'no'; leave it out for False",
    ),
    (
        "a grid of another name",
        lambda: ip.ShardShuffle([5], grid=NOT_A_GRID),
        "grid must be epoch or stream; got 'steps'; leave it out, or use \"stream\" in a plan "
        'with remainder="carry"',
    ),
]
