"""Cures of the errors of what is made by hand: orders, plans and phases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from indexplan.reports.benchmark import bench
from tests.errors.catalogue.made import CURSOR, EMPTY, PLAN
from tests.errors.catalogue.specs import at, plan
from tests.support.bins import ChangingBins

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
    "no samples": lambda: ip.Shuffle(len(DATASET)),
    "a float of samples": lambda: ip.Shuffle(len(DATASET)),
    "a negative seed": lambda: ip.Shuffle(10, seed=hash(-1) % 2**128),
    "a boolean seed": lambda: ip.Shuffle(10, seed=hash(True)),
    "an empty block": lambda: ip.BlockShuffle(10, 5),
    "a window of no blocks": lambda: ip.BlockShuffle(10, 2, window=3),
    "two orders of one name": lambda: ip.register(Renamed),
    **dict.fromkeys(
        ("no order", "an array for an order", "a long list for an order", "a class for an order"),
        lambda: plan(order=ip.Shuffle(len(DATASET))),
    ),
    "no ranks": plan,
    "no sub-epochs": lambda: ip.Plan(ip.Sequential(10), batch_size=2),
    "an unknown remainder": plan,
    "no batch size": lambda: (plan(batch_size=2), plan(global_batch_size=2)),
    "both batch sizes": lambda: (plan(batch_size=1), plan(global_batch_size=2)),
    **dict.fromkeys(
        (
            "a batch size that is no integer",
            "a batch size of nothing",
            "a nested size of nothing",
        ),
        lambda: (plan(batch_size=2), plan(batch_size=(5, 3))),
    ),
    "a huge nested size": lambda: plan(global_batch_size=(2**10, 2**10)),
    "a huge global batch": lambda: plan(batch_size=2**20, world_size=2**30),
    "a size among phases": lambda: plan(batch_size=[ip.Phase(0, 2), ip.Phase(5, 5)]),
    "a size among phases in a tuple": lambda: plan(batch_size=(ip.Phase(0, 2), ip.Phase(5, 5))),
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
            "a phase at a float",
            "a phase at three numbers",
            "a phase at a negative epoch",
            "a phase at a negative sub-epoch",
        ),
        lambda: (ip.Phase(at=1), ip.Phase(at=(1, 2))),
    ),
    "a phase of no units": lambda: (ip.Phase(size=5), ip.Phase(size=(5, 3))),
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
    "a number as text for a batch size": lambda: (plan(batch_size=32), plan(batch_size=(5, 3))),
    "a resume from no cursor": lambda: (
        PLAN.resume(ip.Cursor.from_json(CURSOR.to_json())),
        PLAN.resume(ip.Cursor.from_dict(CURSOR.to_dict())),
    ),
    "another order's cursor": lambda: PLAN.resume(CURSOR),
    "other sub-epochs' cursor": lambda: (
        PLAN.replace(sub_epochs=3).replace(sub_epochs=2).resume(CURSOR)
    ),
    "a seed for no rank": lambda: ip.worker_seed(0, epoch=0, rank=0, worker=0),
    "a bench of no step": lambda: bench(EMPTY.replace(batch_size=5)),
    "a batch that nests too deep": lambda: plan(batch_size=(1,) * 62),
    "a parameter of 5,000 digits": lambda: ip.Phase(parameters={"a": "1" + "0" * 5000}),
}
