"""Errors of orders by class, and of shuffles inside windows."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case

LABELS = [3, 3, 3, 5, 5, 9]

CASES: list[Case] = [
    ("labels of nothing", lambda: ip.ClassBalanced([])),
    ("labels that are text", lambda: ip.ClassBatches(["cat", "dog"], 1, 1)),
    ("weights of other classes", lambda: ip.ClassBalanced(LABELS, weights=[1, 2])),
    (
        "weights of labels that there are not",
        lambda: ip.ClassBalanced(LABELS, weights={3: 1, 5: 1, 7: 2}),
    ),
    ("a negative weight of a class", lambda: ip.ClassBalanced(LABELS, weights=[1, -2, 3])),
    (
        "a class that no epoch is large enough for",
        lambda: ip.ClassBalanced(LABELS, weights=[1e300, 1e-300, 0]),
    ),
    (
        "an epoch that is too small for a class",
        lambda: ip.ClassBalanced(LABELS, weights=[1, 0.01, 0]),
    ),
    ("an epoch past the stream of classes", lambda: ip.ClassBalanced(LABELS, 2**60).take(4, 0)),
    ("a small class", lambda: ip.ClassBatches([0, 0, 1], 1, 2)),
    ("small classes", lambda: ip.ClassBatches(LABELS, 2, 3)),
    ("more classes than there are", lambda: ip.ClassBatches(LABELS, 4, 1)),
    (
        "more classes than are large enough",
        lambda: ip.ClassBatches(LABELS, 3, 2, short="leave_out"),
    ),
]
