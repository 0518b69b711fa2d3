"""Errors of mixtures and groups."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case
from tests.support.bins import ChangingBins


class Nameless(ip.Sequential):
    """Names groups, and nothing else of them."""

    algorithm = "test-nameless-v1"
    group_names = ("a",)


A, B, C = ip.Shuffle(10), ip.Shuffle(5), ip.Shuffle(8)


def mixed(weights: Any = None, **fields: Any) -> Any:
    """Mix two sources."""
    return ip.Mixture({"a": A, "b": B}, weights or {"a": 1, "b": 1}, **fields)


PLANNED = mixed([(0, {"a": 1, "b": 1}), (50, {"a": 1, "b": 3})])


def nested(depth: int) -> Any:
    """Lay mixtures into each other."""
    order: Any = A
    for seed in range(depth):
        order = ip.Mixture({"a": order}, {"a": 1}, seed=seed)
    return order


def resumed(order: ip.Order) -> ip.Plan:
    """Go on with another mixture than the one that a run was saved under."""
    cursor = ip.Plan(mixed(), world_size=1, batch_size=4).cursor(0, step=2)
    return ip.Plan(order, world_size=1, batch_size=4).resume(cursor)


def written(**fields: Any) -> Any:
    """Read a mixture whose dict form has other fields."""
    plan = ip.Plan(mixed(), batch_size=1).to_dict()
    return ip.Plan.from_dict({**plan, "order": {**plan["order"], **fields}})


CASES: list[Case] = [
    (
        "a weight of a million zeros",
        lambda: mixed({"a": Decimal("1e-1000000"), "b": 1}),
    ),
    *(
        (
            f"what {type(order).__name__} was saved under is no dict form",
            lambda order=order: order.continues([1], 0, 0),
        )
        for order in (A, ip.Epochs(A, 5), ip.Weighted([1, 2]), mixed())
    ),
    ("the groups of samples of an order without", lambda: ip.Shuffle(5).group_of([1, 2])),
    ("the groups' shares of an order without", lambda: ip.Shuffle(5).group_shares(0, 0, 5)),
    ("groups that no sample is in", lambda: Nameless(5).group_of(0)),
    ("groups without shares", lambda: Nameless(5).group_shares(0, 0, 5)),
    ("sources without names", lambda: ip.Mixture([A, B], [1, 1])),
    ("no sources", lambda: ip.Mixture({}, {})),
    ("sources named alike", lambda: ip.Mixture([("a", A), ("a", B)], {"a": 1})),
    ("a source that is no order", lambda: ip.Mixture({"a": 10}, {"a": 1})),
    ("a source of changing sizes", lambda: ip.Mixture({"a": ChangingBins(5)}, {"a": 1})),
    (
        "two equal sources",
        lambda: ip.Mixture({"a": ip.Sequential(9), "b": ip.Sequential(9)}, {"a": 1, "b": 1}),
    ),
    (
        "two sources of one size and seed",
        lambda: ip.Mixture({"a": A, "b": ip.Repeat(A, copies=2, span=20)}, {"a": 1, "b": 1}),
    ),
    (
        "a mixture in a mixture of its seed",
        lambda: ip.Mixture({"a": mixed(seed=7)}, {"a": 1}, seed=7),
    ),
    (
        "too many samples in all sources",
        lambda: ip.Mixture({"a": ip.Shuffle(2**62), "b": ip.Sequential(2**62)}, {"a": 1, "b": 1}),
    ),
    ("sources nested too deep", lambda: ip.Mixture({"a": nested(8)}, {"a": 1})),
    ("weights of other names", lambda: mixed({"a": 1, "c": 1})),
    ("a negative weight", lambda: mixed({"a": 1, "b": -0.5})),
    ("weights that are all 0", lambda: mixed({"a": 0, "b": 0.0})),
    ("weights without names", lambda: mixed([0.5, 0.5])),
    ("no phases of weights", lambda: ip.Mixture({"a": A}, [])),
    (
        "phases that do not rise",
        lambda: mixed([(0, {"a": 1, "b": 1}), (9, {"a": 1, "b": 2}), (9, {"a": 1, "b": 3})]),
    ),
    ("a first phase past the start", lambda: mixed([(5, {"a": 1, "b": 1})])),
    ("shares of fewer sources", lambda: written(phases=[[0, [1]]])),
    ("shares that are all 0", lambda: written(phases=[[0, [0, 0]]])),
    ("shares that are too large together", lambda: written(phases=[[0, [2**61, 2**61]]])),
    ("a period in a dict form", lambda: written(period=65536)),
    ("epochs of no units", lambda: mixed(epoch_size=0)),
    (
        "a source that is never read to its end",
        lambda: mixed({"a": 1, "b": 0}, epoch_size="all_exhausted"),
    ),
    ("a phase before the run", lambda: mixed().with_phase(-1, {"a": 1, "b": 1})),
    ("a phase from nowhere", lambda: mixed().with_phase(None, {"a": 1, "b": 1})),
    (
        "a phase from a cursor of another order",
        lambda: mixed().with_phase(ip.Plan(A, batch_size=1).start, {"a": 1, "b": 1}),
    ),
    ("a phase before one that is planned", lambda: PLANNED.with_phase(7, {"a": 1, "b": 1})),
    (
        "a phase before one that is planned somehow",
        lambda: PLANNED.with_phase(7, {"a": 1, "b": 1}, planned="later"),
    ),
    (
        "a source that joins before a phase that is kept",
        lambda: PLANNED.with_phase(7, {"a": 1, "b": 1, "c": 1}, sources={"c": C}, planned="keep"),
    ),
    (
        "a source that joins under a name that is taken",
        lambda: mixed().with_phase(7, {"a": 1, "b": 1}, sources={"b": ip.Shuffle(8)}),
    ),
    (
        "a source that joins without a weight",
        lambda: mixed().with_phase(7, {"a": 1, "b": 1}, sources={"c": ip.Shuffle(8)}),
    ),
    (
        "a source that joins before a cursor",
        lambda: resumed(mixed().with_phase(7, {"a": 1, "b": 1, "c": 1}, sources=[("c", C)])),
    ),
    (
        "a source that grew",
        lambda: resumed(ip.Mixture({"a": ip.Shuffle(11), "b": B}, {"a": 1, "b": 1}, epoch_size=15)),
    ),
    (
        "a source that is gone",
        lambda: resumed(ip.Mixture({"b": B}, {"b": 1}, epoch_size=15)),
    ),
    ("an epoch past the end of the run", lambda: mixed(epoch_size=2**62).take(2, 0)),
    ("an epoch of a source past the last", lambda: mixed(epoch_size=2**40).take(1, 0)),
    ("reads in an epoch of a source past the last", lambda: mixed(epoch_size=2**40).count(1, 0)),
    ("a weight that is true", lambda: mixed({"a": 1, "b": True})),
]


# the cures, followed

EQUAL = {"a": 1, "b": 1}
THREE = {"a": 1, "b": 1, "c": 1}
CURSOR = ip.Plan(mixed(), world_size=1, batch_size=4).cursor(0, step=2)
EARLIER = ip.Plan(mixed(), world_size=1, batch_size=4).cursor(0, step=1)


class Named(Nameless):
    """Names groups, and writes the rest of them."""

    algorithm = "test-named-v1"

    def group(self, indices: Any) -> Any:
        """Put each sample into the one group."""
        return np.zeros(len(indices), np.int64)

    def aim(self, epoch: int, start: int, stop: int) -> Any:
        """Give that group all."""
        return np.ones(1)


def continued(order: ip.Order) -> Any:
    """Ask an order whether its own run continues, which it does."""
    assert order.continues(order.to_dict(), CURSOR.epoch, CURSOR.position)


def earlier(order: ip.Order) -> Any:
    """Resume an earlier cursor under a mixture that a source joins."""
    return ip.Plan(order, world_size=1, batch_size=4).resume(EARLIER)


def sourced() -> Any:
    """Name the sources, as the cure does."""
    return ip.Mixture({"web": ip.Shuffle(10), "code": ip.Shuffle(20)}, {"web": 0.7, "code": 0.3})


def weighed() -> Any:
    """Weigh the sources, as the cure does, for all of the run and by phases."""
    return (
        mixed({"a": 0.7, "b": 0.3}),
        mixed([(0, {"a": 0.7, "b": 0.3}), (10**9, {"a": 0.3, "b": 0.7})]),
    )


CURED: dict[str, Callable[[], Any]] = {
    **{
        f"what {type(order).__name__} was saved under is no dict form": partial(continued, order)
        for order in (A, ip.Epochs(A, 5), ip.Weighted([1, 2]), mixed())
    },
    "the groups of samples of an order without": lambda: mixed().group_of([1, 2]),
    "the groups' shares of an order without": lambda: mixed().group_shares(0, 0, 5),
    "groups that no sample is in": lambda: Named(5).group_of(0),
    "groups without shares": lambda: Named(5).group_shares(0, 0, 5),
    **dict.fromkeys(
        (
            "sources without names",
            "no sources",
            "sources named alike",
            "a source that is no order",
        ),
        sourced,
    ),
    "a source of changing sizes": lambda: ip.Mixture({"b": B}, {"b": 1}),
    "two equal sources": lambda: (
        ip.Mixture({"a": ip.Sequential(9), "b": ip.Shuffle(9)}, EQUAL),
        ip.Mixture({"a": ip.Sequential(9)}, {"a": 1}),
    ),
    "two sources of one size and seed": lambda: ip.Mixture(
        {"a": ip.Shuffle(10, seed=1), "b": ip.Repeat(A, copies=2, span=20)}, EQUAL
    ),
    "a mixture in a mixture of its seed": lambda: ip.Mixture(
        {"a": mixed(seed=7)}, {"a": 1}, seed=6
    ),
    "too many samples in all sources": lambda: ip.Mixture({"a": ip.Shuffle(2**62)}, {"a": 1}),
    "sources nested too deep": lambda: ip.Mixture({"a": nested(6)}, {"a": 1}, seed=9),
    "weights of other names": lambda: (mixed({"a": 1, "b": 0}), mixed(EQUAL)),
    **dict.fromkeys(
        (
            "a negative weight",
            "a weight that is true",
        ),
        lambda: mixed({"a": 1, "b": 0}),
    ),
    **dict.fromkeys(
        (
            "weights that are all 0",
            "weights without names",
            "no phases of weights",
        ),
        weighed,
    ),
    "phases that do not rise": lambda: mixed(
        [(0, EQUAL), (9, {"a": 1, "b": 2}), (10, {"a": 1, "b": 3})]
    ),
    "a first phase past the start": lambda: mixed([(0, EQUAL)]),
    "a weight of a million zeros": lambda: mixed({"a": Decimal("1e-4000"), "b": 1}),
    **dict.fromkeys(
        (
            "shares of fewer sources",
            "shares that are all 0",
            "shares that are too large together",
            "a period in a dict form",
        ),
        lambda: ip.Plan.from_json(ip.Plan(mixed(), batch_size=1).to_json()),
    ),
    **dict.fromkeys(
        ("epochs of no units",),
        lambda: [mixed(epoch_size=size) for size in (20, "first_exhausted", "all_exhausted")],
    ),
    "a source that is never read to its end": lambda: mixed(EQUAL, epoch_size="all_exhausted"),
    **dict.fromkeys(
        (
            "a phase before the run",
            "a phase from nowhere",
            "a phase from a cursor of another order",
        ),
        lambda: (
            mixed().with_phase(CURSOR, EQUAL),
            mixed(epoch_size=15).with_phase(2 * 15 + 3, EQUAL),
        ),
    ),
    "a phase before one that is planned": lambda: (
        PLANNED.with_phase(7, EQUAL, planned="keep"),
        PLANNED.with_phase(7, EQUAL, planned="drop"),
    ),
    "a phase before one that is planned somehow": lambda: (
        PLANNED.with_phase(7, EQUAL, planned="keep"),
        PLANNED.with_phase(7, EQUAL, planned="drop"),
    ),
    "a source that joins before a phase that is kept": lambda: PLANNED.with_phase(
        7, THREE, sources={"c": C}, planned="drop"
    ).with_phase(50, {"a": 1, "b": 3, "c": 1}),
    "a source that joins under a name that is taken": lambda: mixed().with_phase(
        7, THREE, sources={"c": ip.Shuffle(8)}
    ),
    "a source that joins without a weight": lambda: mixed().with_phase(
        7, {**EQUAL, "c": 0}, sources={"c": ip.Shuffle(8)}
    ),
    "a source that joins before a cursor": lambda: (
        earlier(mixed().with_phase(7, THREE, sources=[("c", C)])),
        resumed(mixed().with_phase(CURSOR, THREE, sources=[("c", C)])),
    ),
    "a source that grew": lambda: resumed(
        mixed().with_phase(CURSOR, THREE, sources={"c": ip.Shuffle(1)})
    ),
    "a source that is gone": lambda: resumed(mixed(EQUAL, epoch_size=15)),
    "an epoch past the end of the run": lambda: mixed(epoch_size=2**20).take(2, 0),
    "an epoch of a source past the last": lambda: (
        mixed(epoch_size=2**35).take(0, 0),
        mixed(epoch_size=2**20).take(1, 0),
    ),
    "reads in an epoch of a source past the last": lambda: mixed(epoch_size=2**20).count(1, 0),
}
