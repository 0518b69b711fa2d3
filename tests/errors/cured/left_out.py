"""Cures of the errors of runs that take samples out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.left_out import PLAN, SHUFFLE, SINCE, WITHOUT, carried

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
            "a sample to exclude below 0",
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
    "a way to cut that is none": lambda: ip.Without(SHUFFLE, [3]),
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
