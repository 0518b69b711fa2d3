"""Cures of the errors of weighted draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import array
from tests.errors.catalogue.weights import CURSOR, PLAN


def flat(rows: Any) -> Any:
    """Pass numbers in one dimension, and the path of a file of them."""
    numbers = np.ravel(rows)
    return ip.Weighted(numbers), ip.Weighted(array("weights.npy", numbers))


CURED: dict[str, Callable[[], Any]] = {
    "weights in two dimensions": lambda: flat(np.ones((2, 3))),
    "weights in rows of two": lambda: flat([[1.0, 2.0], [3.0, 4.0]]),
    "a weight that is no number": lambda: ip.Weighted([1, 2, 0]),
    "an infinite weight": lambda: ip.Weighted([1, 0, 2]),
    "a negative weight": lambda: ip.Weighted([*[1] * 200_000, 0]),
    "no weight above 0": lambda: ip.Weighted([0, 1, 0]),
    "no weights": lambda: ip.Weighted([1, 0]),
    "weights that no float holds": lambda: ip.Weighted([(2**53 + 1) / 2, 1 / 2]),
    "a mask as weights": lambda: ip.Subset(ip.Shuffle(1), [True, False], 2),
    "text as weights": lambda: ip.Weighted(np.asarray(["1", "2"], float)),
    "draws of nothing": lambda: ip.Weighted([1, 2], epoch_size=5),
    "too many draws": lambda: ip.Weighted([1, 2], epoch_size=2**61 - 1),
    "no repeats at all": lambda: (ip.Weighted([1, 2], max_repeats=1), ip.Weighted([1, 2])),
    "too few repeats": lambda: (
        ip.Weighted([1, 0, 3], epoch_size=6, max_repeats=3),
        ip.Weighted([1, 0, 3], epoch_size=7, max_repeats=4),
    ),
    "weights of other lengths": lambda: ip.Weighted([1, 2]).updated(3, [1, 0]),
    "weights before others that are planned": lambda: (
        PLAN.order.updated(3, [1, 1], planned="keep"),  # type: ignore[attr-defined]
        PLAN.order.updated(3, [1, 1], planned="drop"),  # type: ignore[attr-defined]
    ),
    "weights from the middle on": lambda: ip.Weighted([(0, [1, 2]), (3, [1, 2])]),
    "weights that go back": lambda: ip.Weighted([(0, [1, 2]), (3, [1, 2]), (4, [2, 1])]),
    "weights with and without an epoch": lambda: ip.Weighted([(0, [1, 2, 3]), (7, [3, 2, 1])]),
    "too many rows of weights": lambda: ip.Weighted([(0, [1])]),
    "a cursor of other weights": lambda: PLAN.replace(
        order=ip.Weighted([(0, [1, 2]), (4, [2, 1]), (5, [3, 1])])
    ).resume(CURSOR),
}
