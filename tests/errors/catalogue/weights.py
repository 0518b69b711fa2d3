"""Errors of weighted draws."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

PLAN = ip.Plan(ip.Weighted([(0, [1, 2]), (4, [2, 1])]), world_size=1, batch_size=1)
CURSOR = PLAN.cursor(4, step=1)


CASES: list[Case] = [
    ("weights in two dimensions", lambda: ip.Weighted(np.ones((2, 3)))),
    ("a weight that is no number", lambda: ip.Weighted([1, 2, float("nan")])),
    ("an infinite weight", lambda: ip.Weighted([1, float("inf"), 2])),
    ("a negative weight", lambda: ip.Weighted([*[1] * 200_000, -0.5])),
    ("no weight above 0", lambda: ip.Weighted([0, 0.0, -0.0])),
    ("no weights", lambda: ip.Weighted([])),
    ("weights that no float holds", lambda: ip.Weighted([2**53 + 1, 1])),
    ("text as weights", lambda: ip.Weighted(["1", "2"])),
    ("too few repeats", lambda: ip.Weighted([1, 0, 3], epoch_size=7, max_repeats=3)),
    ("weights of other lengths", lambda: ip.Weighted([(0, [1, 2]), (3, [1, 2, 3])])),
    ("weights from the middle on", lambda: ip.Weighted([(3, [1, 2])])),
    ("weights that go back", lambda: ip.Weighted([(0, [1, 2]), (3, [1, 2]), (3, [2, 1])])),
    ("weights with and without an epoch", lambda: ip.Weighted([(0, [1, 2]), [1, 2, 3]])),
    ("too many rows of weights", lambda: ip.Weighted([(0, [1])] * (2**16 + 1))),
    ("a cursor of other weights", lambda: PLAN.replace(order=ip.Weighted([3, 1])).resume(CURSOR)),
]
