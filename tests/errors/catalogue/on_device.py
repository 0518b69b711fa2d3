"""Errors of tensors on a device."""

from __future__ import annotations

from typing import Any

import torch

import indexplan as ip
from indexplan_torch import OnDevice
from tests.errors.catalogue.made import Case

PLAN = ip.Plan(ip.Shuffle(10), batch_size=2)
ROWS = torch.zeros(10)
MIXED = ip.Mixture({"a": ip.Shuffle(5), "b": ip.Shuffle(5, seed=1)}, weights={"a": 1, "b": 1})
BLOCKS = ip.BlockShuffle(10, block_size=2, window=2)
BALANCED = PLAN.replace(balance=ip.Balance([1] * 10), world_size=1)
SWAPPED: Any = ROWS
LIST: Any = [1, 2]

CASES: list[Case] = [
    ("tensors before the plan", lambda: OnDevice(SWAPPED, ROWS)),
    ("an order of another kind", lambda: OnDevice(PLAN.replace(order=MIXED), ROWS)),
    ("blocks of rows on a device", lambda: OnDevice(PLAN.replace(order=BLOCKS), ROWS)),
    ("a plan with a balance", lambda: OnDevice(BALANCED, ROWS)),
    ("numbers that are no tensor", lambda: OnDevice(PLAN, LIST)),
    ("too few rows", lambda: OnDevice(PLAN, {"x": ROWS, "y": ROWS[:9]})),
    ("no tensors", lambda: OnDevice(PLAN, ())),
    ("tensors on two devices", lambda: OnDevice(PLAN, (ROWS, ROWS.to("meta")))),
    ("workers for tensors on a device", lambda: OnDevice(PLAN, ROWS, num_workers=2)),
    ("compiled that is a word", lambda: OnDevice(PLAN, ROWS, compiled="yes")),  # type: ignore[arg-type]
]
