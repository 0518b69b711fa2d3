"""Errors of questions about who reads which shard."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import OPEN, WHOLE, Case

NO_RANKS: Any = 8

CASES: list[Case] = [
    (
        "reads of a plan that knows of no shards",
        lambda: ip.reads(WHOLE, None, 0),
        "shards must be samples in each shard, as the order knows of none; got None; pass a list, "
        "an array or a column of sizes",
    ),
    (
        "shards of another dataset",
        lambda: ip.reads(WHOLE, [4, 4], 0),
        "the sum of sizes must be 10, the samples of the plan's order; got 8; pass the sizes of "
        "the shards of that dataset",
    ),
    (
        "reads of no ranks",
        lambda: ip.reads(WHOLE, [10], 0, ranks=range(2, 2)),
        "ranks must be some ranks, such as range(8, 16); got range(2, 2); leave it out for all",
    ),
    (
        "reads of ranks that are a number",
        lambda: ip.reads(WHOLE, [10], 0, ranks=NO_RANKS),
        "ranks must be some ranks, such as range(8, 16); got 8; leave it out for all",
    ),
    (
        "reads of a rank too many",
        lambda: ip.reads(WHOLE, [10], 0, ranks=[0, 2]),
        "rank must be an integer from 0 to 1; got 2; plan.replace(world_size=...) changes how "
        "many ranks there are",
    ),
    (
        "reads of nothing",
        lambda: ip.reads(WHOLE, [10], 0, most=0),
        "most must be an integer from 1 to 2**63 - 1; got 0; leave it out to look at all steps",
    ),
    (
        "reads of a plan whose ranks are open",
        lambda: ip.reads(OPEN, [10], 0),
        "world_size must be set for this; got None; use plan.replace(world_size=...) or "
        "--world-size, the number of running ranks",
    ),
]
