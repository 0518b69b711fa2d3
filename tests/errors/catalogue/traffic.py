"""Errors of questions about who reads which shard."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import OPEN, WHOLE, Case

HUGE = ip.Plan(ip.Sequential(2**31), world_size=8, batch_size=8)
WIDE = ip.Plan(ip.Sequential(10), world_size=2**30, batch_size=1)

CASES: list[Case] = [
    ("reads of a plan that knows of no shards", lambda: ip.reads(WHOLE, None, 0)),
    ("shards of another dataset", lambda: ip.reads(WHOLE, [4, 4], 0)),
    ("reads of no ranks", lambda: ip.reads(WHOLE, [10], 0, ranks=range(2, 2))),
    ("reads of a rank too many", lambda: ip.reads(WHOLE, [10], 0, ranks=range(3))),
    ("nodes of no ranks", lambda: ip.traffic(WHOLE, [10], ranks_per_node=0)),
    ("traffic of no epochs", lambda: ip.traffic(WHOLE, [10], epochs=[])),
    ("traffic of too many samples", lambda: ip.traffic(HUGE, [2**31])),
    ("traffic of too many nodes", lambda: ip.traffic(WIDE, [5, 5], ranks_per_node=1)),
    ("reads of a plan whose ranks are open", lambda: ip.reads(OPEN, [10], 0)),
]
