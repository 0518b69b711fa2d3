"""What errors of plans, and of what is asked of them, are provoked with."""

from __future__ import annotations

import copy
import json
from typing import Any

import indexplan as ip
import indexplan.plot
from indexplan.reports.benchmark import bench
from tests.errors.catalogue.made import PLAN, WHOLE, cursor
from tests.support.bins import Bins, ChangingBins


def plan(**fields: Any) -> ip.Plan:
    """Make a plan that is right but for what is given."""
    sizes = {} if {"batch_size", "global_batch_size"} & set(fields) else {"batch_size": 2}
    return ip.Plan(**{"order": ip.Sequential(10), "sub_epochs": 2, **sizes, **fields})


def at(*places: Any) -> ip.Plan:
    """Make a plan with a phase at each of some places."""
    return plan(batch_size=[ip.Phase(place, size) for size, place in enumerate(places, 1)])


PHASE = {"at": 0, "size": 2, "parameters": {}}
DATASET = {
    "kind": "folder",
    "pattern": "**/*",
    "num_samples": 10,
    "num_bytes": 10,
    "names_sha256": "",
    "sizes_sha256": "",
    "header": None,
}


def resume(**changes: Any) -> ip.Plan:
    """Resume from a cursor whose saved form was edited."""
    return PLAN.resume(cursor(**changes))


def dataset(**changes: Any) -> ip.Dataset:
    """Read a dataset's identity whose saved form was edited."""
    return ip.Dataset.from_dict({**DATASET, **changes})


CHANGING = ip.Plan(ChangingBins(10), world_size=1, batch_size=2)


SOURCES = {"all": ip.Sequential(2), "hard": ip.Shuffle(2)}
MIXED = ip.Plan(ip.Mixture(SOURCES, {"all": 1, "hard": 1}), world_size=1, batch_size=2)


def planned(balance: Any, **fields: Any) -> ip.Plan:
    """Return a plan of three samples."""
    fields = {"world_size": 1, "batch_size": 2, **fields}
    return ip.Plan(ip.Sequential(3), balance=balance, **fields)


def read_balance(balance: Any) -> None:
    """Read a plan from JSON that has this for its balance."""
    data = {**json.loads(planned(None).to_json()), "balance": balance}
    ip.Plan.from_json(json.dumps(data), columns=[[1, 2, 3]])


def edited_balance(**fields: Any) -> None:
    """Read a plan whose balance has some fields changed."""
    read_balance({**ip.Balance([1, 2, 3]).to_dict(), **fields})


STREAM = ip.stream(WHOLE, WHOLE.cursor(2**32 - 1, step=2), rank=0)


def load_stream(**changes: Any) -> None:
    """Load a state that was edited."""
    stream = ip.stream(WHOLE, rank=0)
    stream.load_state_dict({**stream.state_dict(), **changes})
