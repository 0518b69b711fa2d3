"""Errors of mixtures and groups."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

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


def resumed(order: ip.Order) -> ip.Plan:
    """Go on with another mixture than the one that a run was saved under."""
    cursor = ip.Plan(mixed(), world_size=1, batch_size=4).cursor(0, step=2)
    return ip.Plan(order, world_size=1, batch_size=4).resume(cursor)


def written(**fields: Any) -> Any:
    """Read a mixture whose dict form has other fields."""
    plan = json.loads(ip.Plan(mixed(), batch_size=1).to_json())
    return ip.Plan.from_json(json.dumps({**plan, "order": {**plan["order"], **fields}}))


CASES: list[Case] = [
    (
        "a weight of a million zeros",
        lambda: mixed({"a": Decimal("1e-1000000"), "b": 1}),
    ),
    ("what is no dict form to have been saved under", lambda: mixed().continues([1], 0, 0)),
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
    ("a weight that is true", lambda: mixed({"a": 1, "b": True})),
]
