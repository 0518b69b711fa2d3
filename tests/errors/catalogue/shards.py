"""Errors of orders over shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

NOT_A_FLAG: Any = "no"
NOT_A_GRID: Any = "steps"

CASES: list[Case] = [
    ("a shard of less than nothing", lambda: ip.ShardShuffle([5, 3, -1])),
    ("shards that are all empty", lambda: ip.ShardShuffle([0, 0])),
    ("more samples than an index can name", lambda: ip.ShardShuffle([2**62, 2**62])),
    ("sizes that are no integers", lambda: ip.ShardShuffle([5.0, 3.0])),
    ("a stripe that lanes do not divide", lambda: ip.ShardShuffle([500], lanes=64, stripe=100)),
]


# the cures, followed

CURED: dict[str, Callable[[], Any]] = {
    "a shard of less than nothing": lambda: ip.ShardShuffle([5, 3, 1]),
    "shards that are all empty": lambda: ip.ShardShuffle([0, 7]),
    "more samples than an index can name": lambda: ip.ShardShuffle([2**62, 2**61]),
    "sizes that are no integers": lambda: ip.ShardShuffle(np.asarray([5.0, 3.0], np.int64)),
    "a stripe that lanes do not divide": lambda: ip.ShardShuffle([500], lanes=64),
}
