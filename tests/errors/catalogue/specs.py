"""Errors of what is made by hand: orders, plans and phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from indexplan.reports.benchmark import bench
from tests.errors.catalogue.made import CURSOR, EMPTY, PLAN, Case
from tests.support.bins import ChangingBins


class Impostor(ip.Sequential):
    """An order that takes another's name."""

    algorithm = "sequential-v1"


def plan(**fields: Any) -> ip.Plan:
    """Make a plan that is right but for what is given."""
    sizes = {} if {"batch_size", "global_batch_size"} & set(fields) else {"batch_size": 2}
    return ip.Plan(**{"order": ip.Sequential(10), "sub_epochs": 2, **sizes, **fields})


def at(*places: Any) -> ip.Plan:
    """Make a plan with a phase at each of some places."""
    return plan(batch_size=[ip.Phase(place, size) for size, place in enumerate(places, 1)])


CASES: list[Case] = [
    ("JSON of too many objects", lambda: ip.Plan.from_json('{"a":[' + "[]," * 2**20 + "0]}")),
    ("JSON of too many numbers", lambda: ip.Plan.from_json('{"a":[' + "0," * 2**23 + "0]}")),
    ("two orders of one name", lambda: ip.register(Impostor)),
    ("no order", lambda: plan(order=10)),
    ("an array for an order", lambda: plan(order=np.zeros((3, 2), np.int8))),
    ("a long list for an order", lambda: plan(order=list(range(1000)))),
    ("a class for an order", lambda: plan(order=ip.Shuffle)),
    ("no batch size", lambda: plan(batch_size=None)),
    ("both batch sizes", lambda: plan(batch_size=1, global_batch_size=2)),
    ("a batch size of nothing", lambda: plan(batch_size=())),
    ("a nested size of nothing", lambda: plan(batch_size=(2, 0))),
    ("a huge nested size", lambda: plan(global_batch_size=(2**40, 2**40))),
    ("a huge global batch", lambda: plan(batch_size=2**40, world_size=2**30)),
    ("a size among phases", lambda: plan(batch_size=[ip.Phase(0, 2), 5])),
    ("a schedule that starts late", lambda: at(5)),
    ("phases in no order", lambda: at(0, 7, 5)),
    ("a phase at no sub-epoch", lambda: at(0, (1, 2))),
    (
        "phases by place in uneven epochs",
        lambda: plan(order=ChangingBins(10), batch_size=[ip.Phase(0, 1), ip.Phase(5, 2)]),
    ),
    ("carry over uneven epochs", lambda: plan(order=ChangingBins(10), remainder="carry")),
    ("a resume by hand", lambda: plan(_resumed=(0, 0))),
    ("a change of no field", lambda: PLAN.replace(ranks=3)),
    (
        "a global batch that an epoch does not fill",
        lambda: plan(global_batch_size=20, remainder="drop"),
    ),
    (
        "a phase whose global batch an epoch does not fill",
        lambda: ip.Plan(
            ip.Sequential(20),
            global_batch_size=[ip.Phase(0, 6), ip.Phase(12, 30)],
            remainder="drop",
        ),
    ),
    (
        "ranks whose global batch an epoch does not fill",
        lambda: (
            plan(batch_size=2, sub_epochs=3, remainder="drop").replace(world_size=4).steps(0, 0)
        ),
    ),
    ("a seed for a plan", lambda: plan(seed=3)),
    ("a plan's field with a slip", lambda: plan(batchsize=3, batch_size=3)),
    ("torch's keyword for an order", lambda: ip.Shuffle(10, drop_last=True)),  # type: ignore[call-arg]
    ("a phase at three numbers", lambda: ip.Phase(at=(1, 2, 3))),
    ("a phase at a negative epoch", lambda: ip.Phase(at=(-1, 0))),
    ("a phase at a negative sub-epoch", lambda: ip.Phase(at=(0, -1))),
    ("a parameter that a phase has not", lambda: ip.Phase(parameters={"size": 128})["resolution"]),
    ("parameters that are no mapping", lambda: ip.Phase(parameters=5)),
    ("a parameter without a name", lambda: ip.Phase(parameters={1: 2})),
    ("a parameter that is a list", lambda: ip.Phase(parameters={"a": [1]})),
    ("a resume from no cursor", lambda: PLAN.resume(5)),
    ("another order's cursor", lambda: PLAN.replace(order=ip.Shuffle(10)).resume(CURSOR)),
    ("other sub-epochs' cursor", lambda: PLAN.replace(sub_epochs=3).resume(CURSOR)),
    ("a bench of no step", lambda: bench(EMPTY)),
    ("a batch that nests too deep", lambda: plan(batch_size=(1,) * 900)),
    ("a parameter of 5,000 digits", lambda: ip.Phase(parameters={"a": 10**5000})),
]


# the cures, followed

DATASET = range(1000)


class Renamed(ip.Sequential):
    """An order with a name of its own."""

    algorithm = "test-renamed-v1"


def unfilled(size: int = 20, **fields: Any) -> Any:
    """Make a plan that drops what does not fill a global batch, unless told otherwise."""
    return plan(global_batch_size=size, **{"remainder": "drop", **fields}).steps(0, 0)[0]


def phased(size: int = 30, remainder: Any = "drop") -> Any:
    """Make a plan whose second phase has a global batch of some size."""
    phases = [ip.Phase(0, 6), ip.Phase(12, size)]
    plan = ip.Plan(ip.Sequential(20), global_batch_size=phases, remainder=remainder)
    return plan.steps(1)[0]


def ranked(size: int = 2, sub_epochs: int = 3, remainder: Any = "drop") -> Any:
    """Make a plan for so many ranks that they may not fill a global batch."""
    made = plan(batch_size=size, sub_epochs=sub_epochs, remainder=remainder)
    return made.replace(world_size=4).steps(0, 0)[0]


CURED: dict[str, Callable[[], Any]] = {
    "JSON of too many objects": lambda: ip.Plan.from_json(PLAN.to_json()),
    "JSON of too many numbers": lambda: ip.Plan.from_json(PLAN.to_json()),
    "two orders of one name": lambda: ip.register(Renamed),
    **dict.fromkeys(
        ("no order", "an array for an order", "a long list for an order", "a class for an order"),
        lambda: plan(order=ip.Shuffle(len(DATASET))),
    ),
    "no batch size": lambda: (plan(batch_size=2), plan(global_batch_size=2)),
    "both batch sizes": lambda: (plan(batch_size=1), plan(global_batch_size=2)),
    **dict.fromkeys(
        (
            "a batch size of nothing",
            "a nested size of nothing",
        ),
        lambda: (plan(batch_size=2), plan(batch_size=(5, 3))),
    ),
    "a huge nested size": lambda: plan(global_batch_size=(2**10, 2**10)),
    "a huge global batch": lambda: plan(batch_size=2**20, world_size=2**30),
    "a size among phases": lambda: plan(batch_size=[ip.Phase(0, 2), ip.Phase(5, 5)]),
    "a schedule that starts late": lambda: at(0, 5),
    "phases in no order": lambda: at(0, 5, 7),
    "a phase at no sub-epoch": lambda: at(0, (1, 1)),
    "phases by place in uneven epochs": lambda: plan(
        order=ChangingBins(10), batch_size=[ip.Phase(0, 1), ip.Phase((5, 0), 2)]
    ),
    "carry over uneven epochs": lambda: [
        plan(order=ChangingBins(10), remainder=other) for other in ("drop", "pad", "spread")
    ],
    "a resume by hand": lambda: plan(world_size=2).resume(CURSOR),
    "a change of no field": lambda: PLAN.replace(world_size=3),
    "a global batch that an epoch does not fill": lambda: (
        unfilled(5),
        unfilled(remainder="spread"),
        unfilled(remainder="pad"),
    ),
    "a phase whose global batch an epoch does not fill": lambda: (
        phased(20),
        phased(remainder="spread"),
        phased(remainder="pad"),
    ),
    "ranks whose global batch an epoch does not fill": lambda: (
        ranked(size=1),
        ranked(sub_epochs=1),
        ranked(remainder="spread"),
        ranked(remainder="pad"),
    ),
    "a seed for a plan": lambda: plan(order=ip.Shuffle(10, seed=3)),
    "a plan's field with a slip": lambda: plan(batch_size=3),
    "torch's keyword for an order": lambda: ip.Plan(ip.Shuffle(10), batch_size=2, remainder="drop"),
    **dict.fromkeys(
        (
            "a phase at three numbers",
            "a phase at a negative epoch",
            "a phase at a negative sub-epoch",
        ),
        lambda: (ip.Phase(at=1), ip.Phase(at=(1, 2))),
    ),
    "a parameter that a phase has not": lambda: ip.Phase(
        parameters={"size": 128, "resolution": 192}
    )["resolution"],
    **dict.fromkeys(
        (
            "parameters that are no mapping",
            "a parameter without a name",
            "a parameter that is a list",
        ),
        lambda: ip.Phase(parameters={"resolution": 192}),
    ),
    "a resume from no cursor": lambda: (
        PLAN.resume(ip.Cursor.from_json(CURSOR.to_json())),
        PLAN.resume(ip.Cursor.from_dict(CURSOR.to_dict())),
    ),
    "another order's cursor": lambda: PLAN.resume(CURSOR),
    "other sub-epochs' cursor": lambda: (
        PLAN.replace(sub_epochs=3).replace(sub_epochs=2).resume(CURSOR)
    ),
    "a bench of no step": lambda: bench(EMPTY.replace(batch_size=5)),
    "a batch that nests too deep": lambda: plan(batch_size=(1,) * 62),
    "a parameter of 5,000 digits": lambda: ip.Phase(parameters={"a": "1" + "0" * 5000}),
}
