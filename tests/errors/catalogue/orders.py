"""What errors of orders and their columns are provoked with."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

import indexplan as ip
from indexplan.orders import Traits
from indexplan.plan.plan import dict_of, plan_of
from tests.errors.catalogue.made import saved
from tests.support.bins import Bins, ChangingBins
from tests.support.forging import rehashed, rewritten
from tests.support.listed import Listed, Wrapped


@dataclass(frozen=True, eq=False)
class Nowhere(ip.Order):
    """An order that does not say where it reads samples."""

    num_samples: int

    algorithm = "test-nowhere-v1"

    def fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        out[:] = 0


def of(name: str, **body: Any) -> Any:
    """Make a class of orders with something of its own."""
    return type(name, (ip.Sequential,), body)


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


SHUFFLE = ip.Shuffle(20, seed=1)
HALVES = ip.Plan(SHUFFLE, world_size=2, batch_size=2)
SINCE = HALVES.cursor(1, step=2)
WITHOUT = ip.Without(SHUFFLE, [3, 5], since=SINCE)


def left_out(**changes: Any) -> ip.Order:
    """Read an order without samples that has other fields in JSON."""
    return ip.Without(**{"order": SHUFFLE, "samples": np.array([3, 5]), **changes})


def carried(order: ip.Order, batch_size: int) -> ip.Plan:
    """Fill the last step of an epoch with units of the next ones."""
    return ip.Plan(order, world_size=1, batch_size=batch_size, remainder="carry")


class Nameless(ip.Sequential):
    """Names groups, and nothing else of them."""

    algorithm = "test-nameless-v1"
    group_names = ("a",)


A, B, C = ip.Shuffle(10), ip.Shuffle(5), ip.Shuffle(8)


def mixed(weights: Any = None, **fields: Any) -> Any:
    """Mix two sources."""
    return ip.Mixture({"a": A, "b": B}, weights or {"a": 1, "b": 1}, **fields)


PLANNED = mixed([(0, {"a": 1, "b": 1}), (50, {"a": 1, "b": 3})])


def resumed(order: ip.Order) -> ip.Plan:
    """Go on with another mixture than the one that a run was saved under."""
    cursor = ip.Plan(mixed(), world_size=1, batch_size=4).cursor(0, step=2)
    return ip.Plan(order, world_size=1, batch_size=4).resume(cursor)


def edited_mixture(**fields: Any) -> Any:
    """Read a mixture whose dict form has other fields."""
    plan = json.loads(ip.Plan(mixed(), batch_size=1).to_json())
    return ip.Plan.from_json(json.dumps({**plan, "order": {**plan["order"], **fields}}))


LABELS = [3, 3, 3, 5, 5, 9]


DISTINCT = ip.Distinct([1, 1, 2, 3, 4, 5], 2)
BATCHED = ip.Batched(ip.Shuffle(12), 3)


THREE = ip.Plan(ip.Sequential(3), world_size=1, batch_size=3)


DOCUMENTS = ip.DocumentWindows([5, 3, 9, 4], 10)
PIECES = ip.Plan(DOCUMENTS, world_size=1, batch_size=1)


DIGEST = ip.Column([3, 1]).to_dict()["sha256"]


def listed(columns: Any = None, samples: Any = None, **identity: Any) -> Any:
    """Read an order whose column has another identity, or something else in its place."""
    data = Listed([3, 1], 5).to_dict()
    data["samples"] = samples or {**data["samples"], **identity}
    plan = json.loads(ip.Plan(ip.Sequential(5), batch_size=1).to_json())
    return ip.Plan.from_json(json.dumps({**plan, "order": data}), columns=columns)
