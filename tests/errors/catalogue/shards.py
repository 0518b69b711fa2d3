"""Errors of orders over shards."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case

CASES: list[Case] = [
    ("a shard of less than nothing", lambda: ip.ShardShuffle([5, 3, -1])),
    ("shards that are all empty", lambda: ip.ShardShuffle([0, 0])),
    ("more samples than an index can name", lambda: ip.ShardShuffle([2**62, 2**62])),
    ("sizes that are no integers", lambda: ip.ShardShuffle([5.0, 3.0])),
    ("a stripe that lanes do not divide", lambda: ip.ShardShuffle([500], lanes=64, stripe=100)),
]
