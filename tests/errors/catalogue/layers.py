"""Errors of orders over other orders, and of splits."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.plan.plan import dict_of, plan_of
from tests.errors.catalogue.made import Case
from tests.support.bins import Bins, ChangingBins


def layered(depth: int) -> Any:
    """Lay layers over an order."""
    order: ip.Order = ip.Sequential(5)
    for _ in range(depth):
        order = ip.Repeat(order, 1)
    return order


def copied(copies: int) -> ip.Plan:
    """Plan to read each sample many times."""
    return ip.Plan(ip.Repeat(ip.Sequential(3), copies), world_size=1, batch_size=1)


def pointed(indices: Any) -> Any:
    """Read a spec that has a path, or numbers, where a column's digest belongs."""
    plan = json.loads(ip.Plan(ip.Subset(ip.Sequential(3), [1, 2, 3], 10), batch_size=1).to_json())
    plan["order"]["indices"] = indices
    return ip.Plan.from_json(json.dumps(plan))


def ranged(ends: Any) -> Any:
    """Read a subset whose range has other ends."""
    data = ip.Subset(ip.Shuffle(1), range(1, 2), 5).to_dict()
    plan = json.loads(ip.Plan(ip.Sequential(5), batch_size=1).to_json())
    return ip.Plan.from_json(json.dumps({**plan, "order": {**data, "indices": {"range": ends}}}))


def in_itself() -> dict[str, Any]:
    """Return the dict form of an order whose field holds itself."""
    field: list[Any] = []
    field.append(field)
    return {"algorithm": "sequential-v1", "num_samples": field}


CASES: list[Case] = [
    ("a layer over no order", lambda: ip.Epochs(10, 5)),
    ("reads without end", lambda: ip.Repeat(ip.Sequential(3), 2**30).locate_all(0, [1, 2])),
    (
        "reads without end in part of an epoch inside",
        lambda: ip.Epochs(ip.Repeat(ip.Sequential(3), 2**40 // 2**10), 2**30).locate_all(0, [0]),
    ),
    (
        "epochs inside without end",
        lambda: ip.Epochs(ip.Subset(ip.Shuffle(1), [0], 2), 2**31).count(0, [1]),
    ),
    (
        "a field in itself",
        lambda: plan_of(
            {**dict_of(ip.Plan(ip.Sequential(5), batch_size=1)), "order": in_itself()}, None, None
        ),
    ),
    ("too many reads to explain", lambda: ip.explain(copied(2**17), 1)),
    ("epochs of changing sizes", lambda: ip.Epochs(ChangingBins(10), 5)),
    ("an epoch past the stream", lambda: ip.Epochs(ip.Shuffle(10), 11).take(2**32 - 1, 0)),
    ("a span that copies do not divide", lambda: ip.Repeat(ip.Shuffle(10), 3, span=10)),
    ("too many copies", lambda: ip.Repeat(ip.Shuffle(2**62), 2)),
    ("a subset of nothing", lambda: ip.Subset(ip.Shuffle(1), [], 5)),
    ("a subset of another size than its order's", lambda: ip.Subset(ip.Shuffle(5), [1, 2], 5)),
    ("a subset of one sample, and an order of more", lambda: ip.Subset(ip.Shuffle(5), [2], 5)),
    ("a subset of samples that are none", lambda: ip.Subset(ip.Shuffle(2), [1, 5], 5)),
    ("a mask of another dataset", lambda: ip.Subset(ip.Shuffle(2), np.array([True, True]), 5)),
    ("a range of two ends", lambda: ranged([1, 2])),
    ("a range of halves", lambda: ranged([1, 2, 0.5])),
    ("a range without a step", lambda: ranged([1, 2, 0])),
    ("a part that is empty", lambda: ip.Split(3, {"train": 0.9, "val": 0.1})),
    ("a part of nothing", lambda: ip.Split(10, {"train": 1, "val": 0})),
    ("parts without names", lambda: ip.Split(10, [0.9, 0.1])),
    ("groups of another dataset", lambda: ip.Split(3, {"all": 1}, groups=[1, 2])),
    ("sizes that do not add up", lambda: ip.types.Part(10, [5, 4], [0])),
    ("sizes that are no groups'", lambda: len(ip.types.Part(4, [5, 4], [0], groups=[1, 1, 2, 2]))),
    ("sizes that are no row", lambda: ip.types.Part(10, 10, [0])),
    ("too many sizes", lambda: ip.types.Part(2**17, [1] * 2**17, [0])),
    ("a size of nothing", lambda: ip.types.Part(10, [10, 0], [0])),
    ("parts twice", lambda: ip.types.Part(10, [5, 5], [1, 1])),
    ("a subset by an order of bins", lambda: ip.Subset(ip.Shuffle(5), Bins(10), 10)),
    (
        "a subset by an order of another dataset",
        lambda: ip.Subset(ip.Shuffle(5), ip.Shuffle(5), 10),
    ),
    ("epochs longer than all epochs inside", lambda: ip.Epochs(ip.Shuffle(3), 2**61)),
    ("layers too deep", lambda: layered(8)),
    ("numbers in a column's place", lambda: pointed([1, 2, 3])),
    ("a path in a column's place", lambda: pointed("a.npy")),
    (
        "a range of samples that are none",
        lambda: ip.Subset(ip.Sequential(2**62), range(2**64), 2**63 - 1),
    ),
]
