"""Errors of balance."""

from __future__ import annotations

import json
from typing import Any

import indexplan as ip
import indexplan.plot
from tests.errors.catalogue.made import (
    Case,
    Command,
    array,
    nothing,
)

BINS = ip.ClassBatches([0] * 4, classes=1, per_class=4, epoch_size=4)


def planned(balance: Any, **fields: Any) -> ip.Plan:
    """Return a plan of three samples."""
    fields = {"world_size": 1, "batch_size": 2, **fields}
    return ip.Plan(ip.Sequential(3), balance=balance, **fields)


def read(balance: Any) -> None:
    """Read a plan from JSON that has this for its balance."""
    data = {**json.loads(planned(None).to_json()), "balance": balance}
    ip.Plan.from_json(json.dumps(data), columns=[[1, 2, 3]])


def described(**fields: Any) -> None:
    """Read a plan whose balance has some fields changed."""
    read({**ip.Balance([1, 2, 3]).to_dict(), **fields})


CASES: list[Case] = [
    ("a balance that is none", lambda: planned([1, 2, 3])),
    ("a balance of other samples", lambda: planned(ip.Balance([1, 2]))),
    ("a balance of a length of 0", lambda: ip.Balance([1, 0])),
    ("a balance that weighs nothing", lambda: ip.Balance([1], linear=0)),
    (
        "a balance of costs past 2**63",
        lambda: planned(
            ip.Balance([1, 2, 2**31], quadratic=1), batch_size=[ip.Phase(0, 1), ip.Phase(1, 2)]
        ),
    ),
    (
        "a balance of bins that cost more than 2**63",
        lambda: ip.Plan(
            BINS, world_size=1, batch_size=1, balance=ip.Balance([2**40] * 4, linear=2**22)
        ).batch(0, step=0, rank=0),
    ),
    (
        "a balance of lengths in another unit than those of the order",
        lambda: ip.Plan(
            ip.DocumentWindows([50, 30], 10), world_size=1, batch_size=2, balance=ip.Balance([5, 3])
        ).batch(0, step=0, rank=0),
    ),
    (
        "a balance in JSON that is none",
        lambda: read(None),
    ),
    ("a balance of another algorithm", lambda: described(algorithm="balance-v9")),
    ("a balance in JSON that holds its lengths", lambda: described(lengths=[1, 2, 3])),
]

BALANCED = "build a.plan --num-samples 3 --batch-size 2 --balance"

COMMANDS: list[Command] = [
    (
        f"{BALANCED} ''",
        nothing,
        lambda: array("lengths.npy", [1, 2, 3]),
        f"{BALANCED} \"Balance('lengths.npy')\"",
    ),
    (
        f"{BALANCED} a.npy",
        nothing,
        lambda: (array("a.npy", [1, 2, 3]), array("lengths.npy", [1, 2, 3])),
        f"{BALANCED} \"Balance('a.npy')\"",
    ),
    (
        f"{BALANCED} 3",
        nothing,
        lambda: (array("a.npy", [1, 2, 3]), array("lengths.npy", [1, 2, 3])),
        f"{BALANCED} \"Balance('lengths.npy')\"",
    ),
    (
        f"{BALANCED} \"Balance('a.npy')\"",
        nothing,
        lambda: (array("a.npy", [1, 2, 3]), array("lengths.npy", [1, 2, 3])),
        f"{BALANCED} \"Balance('a.npy')\"",
    ),
    (
        f"{BALANCED} 'Balance([1, 2, 3], squared=1)'",
        nothing,
        f"{BALANCED} 'Balance([1, 2, 3], quadratic=1)'",
    ),
    (
        f"{BALANCED} 'Balance([1, 2, 3], quadratic=0.5)'",
        nothing,
        f"{BALANCED} 'Balance([1, 2, 3])'",
        f"{BALANCED.replace('a.plan', 'b.plan')} 'Balance([1, 2, 3], linear=2, quadratic=1)'",
    ),
]
