"""Errors of orders that are made for global batches."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case

DISTINCT = ip.Distinct([1, 1, 2, 3, 4, 5], 2)
BINS = ip.Batched(ip.Shuffle(12), 3)
MIXED = ip.Mixture({"a": ip.Batched(ip.Shuffle(9), 3)}, {"a": 1})


def resumed() -> ip.Plan:
    """Change to larger global batches in the middle of one."""
    cursor = ip.Plan(ip.Flat(BINS), global_batch_size=1).cursor(0, step=4)
    return ip.Plan(ip.Flat(BINS), global_batch_size=3).resume(cursor)


CASES: list[Case] = [
    ("a label with many samples", lambda: ip.Plan(ip.Distinct([7, 7, 1], 2), global_batch_size=2)),
    ("more samples in a batch than there are", lambda: ip.Distinct([7, 1], 3)),
    ("bins of bins", lambda: ip.Batched(BINS, 2)),
    ("an epoch that bins do not fill", lambda: ip.Batched(ip.Shuffle(10), 3)),
    ("bins of several sizes", lambda: ip.Flat(ip.Packed([3, 4, 5], 9))),
    (
        "a group that fills no bin",
        lambda: ip.Plan(ip.Flat(ip.Grouped([0, 0, 0, 1], 2)), global_batch_size=2),
    ),
    (
        "no full bin",
        lambda: ip.Plan(ip.Flat(ip.LengthGrouped([1, 2], 3)), global_batch_size=3),
    ),
    ("in a mixture", lambda: ip.Mixture({"a": DISTINCT}, {"a": 1})),
    ("without some samples", lambda: ip.Without(DISTINCT, [3])),
    (
        "a phase at a cursor of another Flat",
        lambda: MIXED.with_phase(ip.Plan(ip.Flat(BINS), global_batch_size=3).cursor(0, step=1), {}),
    ),
    ("another global batch", lambda: ip.Plan(DISTINCT, global_batch_size=3)),
    ("sub-epochs that cut", lambda: ip.Plan(DISTINCT, global_batch_size=2, sub_epochs=2)),
    ("a resume inside a global batch", resumed),
]
