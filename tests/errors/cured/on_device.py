"""Cures about tensors on a device, followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from indexplan_torch import OnDevice, PlanLoader
from tests.errors.catalogue.on_device import BALANCED, BLOCKS, MIXED, PLAN, ROWS


def read(loader: Any) -> None:
    """Read a pass."""
    assert len(list(loader)) == len(loader) > 0


CURED: dict[str, Callable[[], Any]] = {
    "tensors before the plan": lambda: read(OnDevice(PLAN, ROWS)),
    "an order of another kind": lambda: (
        read(PlanLoader(ROWS, PLAN.replace(order=MIXED))),  # type: ignore[arg-type]
        read(OnDevice(PLAN.replace(order=ip.Sequential(10)), ROWS)),
    ),
    "blocks of rows on a device": lambda: (
        read(PlanLoader(ROWS, PLAN.replace(order=BLOCKS))),  # type: ignore[arg-type]
        read(OnDevice(PLAN.replace(order=ip.Shuffle(10)), ROWS)),
    ),
    "a plan with a balance": lambda: (
        read(PlanLoader(ROWS, BALANCED)),  # type: ignore[arg-type]
        read(OnDevice(BALANCED.replace(balance=None), ROWS)),
    ),
    "numbers that are no tensor": lambda: read(OnDevice(PLAN, (ROWS, ROWS))),
    "too few rows": lambda: read(
        OnDevice(PLAN.replace(order=ip.Shuffle(9)), {"x": ROWS[:9], "y": ROWS[:9]})
    ),
    "no tensors": lambda: read(OnDevice(PLAN, (ROWS,))),
    "tensors on two devices": lambda: read(OnDevice(PLAN, (ROWS, ROWS.to("cpu")))),
    "workers for tensors on a device": lambda: read(PlanLoader(ROWS, PLAN, num_workers=2)),  # type: ignore[arg-type]
    "compiled that is a word": lambda: [
        OnDevice(PLAN, ROWS, compiled=each) for each in (True, False)
    ],
}
