"""Errors of runs that take samples out."""

from __future__ import annotations

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
