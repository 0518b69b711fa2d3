"""Errors of orders by class, and of shuffles inside windows."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case

CASES: list[Case] = [
    (
        "a window of nothing",
        lambda: ip.LocalShuffle(10, window=0),
        "window must be an integer from 1 to 2**63 - 1; got 0; pass how many are shuffled together",
    ),
]
