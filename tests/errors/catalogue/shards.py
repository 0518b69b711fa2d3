"""Errors of orders over shards."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case

NOT_A_FLAG: Any = "no"
NOT_A_GRID: Any = "steps"

CASES: list[Case] = [
    ("a shard of less than nothing", lambda: ip.ShardShuffle([5, 3, -1])),
    ("shards that are all empty", lambda: ip.ShardShuffle([0, 0])),
    ("more samples than an index can name", lambda: ip.ShardShuffle([2**62, 2**62])),
    ("sizes that are no integers", lambda: ip.ShardShuffle([5.0, 3.0])),
    ("no lanes", lambda: ip.ShardShuffle([5], lanes=0)),
    ("a stripe that lanes do not divide", lambda: ip.ShardShuffle([500], lanes=64, stripe=100)),
    ("a stripe past the last place", lambda: ip.ShardShuffle([2**62], lanes=1, stripe=2**62)),
    ("a window of no shards", lambda: ip.ShardShuffle([5], window=0)),
    ("sticky, as a word", lambda: ip.ShardShuffle([5], sticky=NOT_A_FLAG)),
    ("a grid of another name", lambda: ip.ShardShuffle([5], grid=NOT_A_GRID)),
]
