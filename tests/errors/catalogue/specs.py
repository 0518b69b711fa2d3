"""Errors of what is made by hand: orders, plans and phases."""

from __future__ import annotations

from typing import Any

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
