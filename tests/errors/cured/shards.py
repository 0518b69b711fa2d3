"""The cures of errors of orders over shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip

CURED: dict[str, Callable[[], Any]] = {
    "a shard of less than nothing": lambda: ip.ShardShuffle([5, 3, 1]),
    "shards that are all empty": lambda: ip.ShardShuffle([0, 7]),
    "more samples than an index can name": lambda: ip.ShardShuffle([2**62, 2**61]),
    "sizes that are no integers": lambda: ip.ShardShuffle(np.asarray([5.0, 3.0], np.int64)),
    "no lanes": lambda: ip.ShardShuffle([5]),
    "a stripe that lanes do not divide": lambda: ip.ShardShuffle([500], lanes=64),
    "a stripe past the last place": lambda: ip.ShardShuffle([2**62], lanes=1),
    "a window of no shards": lambda: ip.ShardShuffle([5]),
    "sticky, as a word": lambda: ip.ShardShuffle([5]),
    "a grid of another name": lambda: ip.Plan(
        ip.ShardShuffle([5], grid="stream"), world_size=1, batch_size=2, remainder="carry"
    ).batch(epoch=0, rank=0, step=0),
}
