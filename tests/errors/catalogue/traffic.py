"""Errors of questions about who reads which shard."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import OPEN, WHOLE, Case

NO_RANKS: Any = 8
HUGE = ip.Plan(ip.Sequential(2**31), world_size=8, batch_size=8)
WIDE = ip.Plan(ip.Sequential(10), world_size=2**30, batch_size=1)

CASES: list[Case] = [
    (
        "reads of a plan that knows of no shards",
        lambda: ip.reads(WHOLE, None, 0),
        "shards must be the number of samples in each shard, as the order does not know it; got "
        "None; pass a list, an array or a column of sizes",
    ),
    (
        "shards of another dataset",
        lambda: ip.reads(WHOLE, [4, 4], 0),
        "the sum of sizes must be 10, the number of samples of the plan's order; got 8; pass the "
        "sizes of the shards of that dataset",
    ),
    (
        "reads of no ranks",
        lambda: ip.reads(WHOLE, [10], 0, ranks=range(2, 2)),
        "ranks must be at least one rank, such as range(8, 16); got range(2, 2); leave it out "
        "for all",
    ),
    (
        "reads of ranks that are a number",
        lambda: ip.reads(WHOLE, [10], 0, ranks=NO_RANKS),
        "ranks must be at least one rank, such as range(8, 16); got 8; leave it out for all",
    ),
    (
        "reads of a rank too many",
        lambda: ip.reads(WHOLE, [10], 0, ranks=[0, 2]),
        "rank must be an integer from 0 to 1; got 2; use plan.replace(world_size=...) to change "
        "how many ranks there are",
    ),
    (
        "reads of nothing",
        lambda: ip.reads(WHOLE, [10], 0, most=0),
        "most must be an integer from 1 to 2**63 - 1; got 0; leave it out to look at all steps",
    ),
    (
        "nodes of no ranks",
        lambda: ip.traffic(WHOLE, [10], ranks_per_node=0),
        "ranks_per_node must be an integer from 1 to 2**31 - 1; got 0; leave it out for 8",
    ),
    (
        "a cache of nothing",
        lambda: ip.traffic(WHOLE, [10], cache=0),
        "cache must be an integer from 1 to 2**63 - 1; got 0; pass how many samples a node can "
        "keep, or leave it out",
    ),
    (
        "traffic of no epochs",
        lambda: ip.traffic(WHOLE, [10], epochs=[]),
        "epochs must be at least one epoch; got []; leave it out for the first unfinished one",
    ),
    (
        "traffic of too many samples",
        lambda: ip.traffic(HUGE, [2**31]),
        "units of the epochs must be at most 1073741824, to be drawn; got 2147483648; ask for "
        "fewer epochs, or ip.reads for some steps",
    ),
    (
        "traffic of too many nodes",
        lambda: ip.traffic(WIDE, [5, 5], ranks_per_node=1),
        "shards times nodes must be at most 268435456; got 2147483648; ask ip.reads for some "
        "ranks at a time",
    ),
    (
        "a picture of something else",
        lambda: ip.plot.traffic(NO_RANKS),
        "traffic must be a Traffic; got 8; pass what indexplan.traffic returns",
    ),
    (
        "reads of a plan whose ranks are open",
        lambda: ip.reads(OPEN, [10], 0),
        "world_size must be set for this; got None; use plan.replace(world_size=...), "
        "with the number of running ranks",
    ),
]
