"""Errors of windows of tokens."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case


def other_windows() -> ip.Plan:
    """Resume a run of windows of 10 tokens with windows of 20."""
    plan = ip.Plan(ip.TokenWindows(1000, 10), world_size=1, batch_size=4)
    return plan.replace(order=ip.TokenWindows(1000, 20)).resume(plan.cursor(0, step=5))


CASES: list[Case] = [
    ("a run of shorter windows", other_windows),
    ("a window longer than the row", lambda: ip.TokenWindows(100, 100)),
    ("targets of an epoch that is none", lambda: ip.TokenWindows(100, 10).targets(-1)),
]
