"""Errors of runs that take samples out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

SHUFFLE = ip.Shuffle(20, seed=1)
PLAN = ip.Plan(SHUFFLE, world_size=2, batch_size=2)
SINCE = PLAN.cursor(1, step=2)
WITHOUT = ip.Without(SHUFFLE, [3, 5], since=SINCE)


def without(**changes: Any) -> ip.Order:
    """Read an order without samples that has other fields in JSON."""
    return ip.Without(**{"order": SHUFFLE, "samples": np.array([3, 5]), **changes})


def carried(order: ip.Order, batch_size: int) -> ip.Plan:
    """Fill the last step of an epoch with units of the next ones."""
    return ip.Plan(order, world_size=1, batch_size=batch_size, remainder="carry")


def no_longer_skipped() -> ip.Plan:
    """Change weights at a cursor, before which a whole sub-epoch was left out."""
    gone = ip.Without(ip.Mixture({"a": ip.Sequential(8)}, {"a": 1}), [2, 3])
    plan = ip.Plan(gone, world_size=1, batch_size=1, sub_epochs=4)
    cursor = plan.cursor(0, 2, step=0)
    new = {"b": SHUFFLE}
    return plan.replace(order=gone.with_phase(cursor, {"a": 0, "b": 1}, sources=new)).resume(cursor)


CASES: list[Case] = [
    ("a sample to exclude that is none", lambda: ip.Without(SHUFFLE, [3, 20])),
    ("no sample to exclude", lambda: ip.Without(SHUFFLE, [])),
    ("a sample to exclude twice", lambda: ip.Without(SHUFFLE, [3, 5, 3])),
    ("a sample that is excluded already", lambda: ip.Without(WITHOUT, [5, 6], since=SINCE)),
    ("all samples excluded", lambda: ip.Without(SHUFFLE, range(20))),
    (
        "all samples of a subset excluded",
        lambda: ip.Without(ip.Subset(ip.Shuffle(2), [1, 2], 9), [1, 2, 3]),
    ),
    ("another way to cut than before", lambda: ip.Without(WITHOUT, [6], SINCE, "unit")),
    ("windows of tokens without tokens", lambda: ip.Without(ip.TokenWindows(99, 9), [3])),
    ("since no cursor", lambda: ip.Without(SHUFFLE, [3], since=7)),
    (
        "since a cursor of another order",
        lambda: ip.Without(
            SHUFFLE, [3], since=PLAN.replace(order=ip.Shuffle(20)).cursor(1, step=2)
        ),
    ),
    (
        "since a place before that of earlier samples",
        lambda: ip.Without(WITHOUT, [6], since=PLAN.replace(order=WITHOUT).cursor(1, step=1)),
    ),
    (
        "since a position that is none",
        lambda: ip.Without(
            SHUFFLE, [3], since=ip.Cursor.from_dict({**SINCE.to_dict(), "position": 21})
        ),
    ),
    ("a group that is no row of three", lambda: without(since=[[0, 0]])),
    ("groups that fall", lambda: without(since=[[1, 0, 1], [0, 0, 1]])),
    ("groups of other samples", lambda: without(since=[[0, 0, 1]])),
    ("groups around an order with some", lambda: without(order=WITHOUT, since=[[0, 0, 2]])),
    (
        "a cursor past the place where samples leave",
        lambda: PLAN.replace(order=WITHOUT).resume(PLAN.cursor(1, step=3)),
    ),
    (
        "carry over bins that lose samples",
        lambda: ip.Plan(ip.Without(ip.Packed([3, 5, 4], 8), [1]), batch_size=1, remainder="carry"),
    ),
    (
        "a step of millions of epochs that keep one sample",
        lambda: carried(ip.Without(ip.Shuffle(2), [1]), 2**21).batch(0, step=0, rank=0),
    ),
    (
        "a step past the last epoch without some samples",
        lambda: carried(ip.Without(ip.Shuffle(5), [1]), 3).indices(2**32 - 1, rank=0),
    ),
    (
        "other weights of an order that has none",
        lambda: WITHOUT.with_phase(PLAN.replace(order=WITHOUT).cursor(1, step=3), {"a": 1}),
    ),
    ("a cursor in a sub-epoch that comes later now", no_longer_skipped),
]


# the cures, followed

MASK = np.arange(20) == 3


def reread() -> Any:
    """Write a spec with to_json, and read it."""
    return ip.Plan.from_json(PLAN.replace(order=WITHOUT).to_json(), columns=[[3, 5]])


def of(order: ip.Order, step: int) -> ip.Cursor:
    """Return a cursor of epoch 1 of the plan with another order."""
    return PLAN.replace(order=order).cursor(1, step=step)


def in_order_of_places() -> Any:
    """Exclude first what leaves first."""
    first = ip.Without(SHUFFLE, [6], since=PLAN.cursor(1, step=1))
    return ip.Without(first, [3, 5], since=of(first, 2))


def weights_of_a_mixture() -> Any:
    """Change the weights of a mixture without some samples."""
    gone = ip.Without(ip.Mixture({"a": SHUFFLE, "b": ip.Shuffle(9)}, {"a": 1, "b": 1}), [3])
    return gone.with_phase(of(gone, 3), {"a": 1, "b": 2})


def changed_later() -> Any:
    """Change weights at a cursor with a step above 0, where a whole sub-epoch was left out."""
    gone = ip.Without(ip.Mixture({"a": ip.Sequential(8)}, {"a": 1}), [2, 3])
    plan = ip.Plan(gone, world_size=1, batch_size=1, sub_epochs=4)
    cursor = plan.cursor(0, 2, step=1)
    order = gone.with_phase(cursor, {"a": 0, "b": 1}, sources={"b": SHUFFLE})
    return plan.replace(order=order).resume(cursor)


CURED: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(
        [
            "a sample to exclude that is none",
            "no sample to exclude",
        ],
        lambda: [ip.Without(SHUFFLE, [3]), ip.Without(SHUFFLE, np.flatnonzero(MASK))],
    ),
    "a sample to exclude twice": lambda: ip.Without(SHUFFLE, np.unique([3, 5, 3])),
    "a sample that is excluded already": lambda: ip.Without(
        WITHOUT, np.setdiff1d([5, 6], WITHOUT.samples.array), since=SINCE
    ),
    "all samples excluded": lambda: ip.Without(SHUFFLE, range(19)),
    "all samples of a subset excluded": lambda: ip.Without(
        ip.Subset(ip.Shuffle(2), [1, 2], 9), [1, 3]
    ),
    "another way to cut than before": lambda: ip.Without(WITHOUT, [6], SINCE, "piece"),
    "windows of tokens without tokens": lambda: ip.Without(
        ip.DocumentWindows([20, 20, 20, 20, 19], 9), [3]
    ),
    "since no cursor": lambda: ip.Without(SHUFFLE, [3], since=SINCE),
    "since a cursor of another order": lambda: ip.Without(SHUFFLE, [3], since=SINCE),
    "since a place before that of earlier samples": in_order_of_places,
    "since a position that is none": lambda: ip.Without(SHUFFLE, [3], PLAN.cursor(1, step=5)),
    **dict.fromkeys(
        [
            "a group that is no row of three",
            "groups that fall",
            "groups of other samples",
            "groups around an order with some",
        ],
        reread,
    ),
    "a cursor past the place where samples leave": lambda: [
        PLAN.replace(order=WITHOUT).resume(PLAN.cursor(1, step=2)),
        PLAN.replace(order=WITHOUT).resume(of(WITHOUT, 3)),
        PLAN.replace(order=ip.Without(SHUFFLE, [3, 5], PLAN.cursor(1, step=3))).resume(
            PLAN.cursor(1, step=3)
        ),
    ],
    "carry over bins that lose samples": lambda: [
        ip.Plan(ip.Without(ip.Packed([3, 5, 4], 8), [1]), batch_size=size, remainder="pad")
        for size in (1, [ip.Phase(0, 1), ip.Phase((1, 0), 2)])
    ],
    "a step of millions of epochs that keep one sample": lambda: carried(
        ip.Without(ip.Shuffle(2), [1]), 2**10
    ).batch(0, step=0, rank=0),
    "a step past the last epoch without some samples": lambda: (
        carried(ip.Without(ip.Shuffle(5), [1]), 3)
        .replace(remainder="pad")
        .indices(2**32 - 1, rank=0)
    ),
    "other weights of an order that has none": weights_of_a_mixture,
    "a cursor in a sub-epoch that comes later now": changed_later,
}
