"""Cures of the errors of bins by length and by group, and of sums over a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.lengths import PLAN

ROWS = np.ones((2, 2), np.int64)


def opened_again() -> None:
    """Open a column's file again once it is complete."""
    np.save("lengths.npy", np.arange(1, 99))
    ip.LengthGrouped("lengths.npy", 2).num_units(0)


CURED: dict[str, Callable[[], Any]] = {
    "lengths in two dimensions": lambda: ip.LengthGrouped(
        [len(each) for each in np.ones((2, 2))], 8
    ),
    "whole floats as lengths": lambda: ip.TokenBudget(np.asarray([3.0, 5.0], np.int64), 8),
    "truths as groups": lambda: ip.Grouped(np.array([True, False]).astype(np.int64), 8),
    "objects as lengths": lambda: [ip.LengthGrouped([3], 8), ip.LengthGrouped([3, 1], 8)],
    "no lengths": lambda: ip.LengthGrouped([3, 5], 8),
    "a length of 0": lambda: ip.LengthGrouped([7] * 200_000, 8),
    "a negative length": lambda: ip.TokenBudget([3, 5], 8),
    "a length that is too large": lambda: ip.LengthGrouped([1, (2**40 + 1) // 2], 8),
    "bins of nothing": lambda: ip.LengthGrouped([3, 5], 2),
    "no buckets": lambda: ip.LengthGrouped([3, 5], 8),
    "no buckets for a budget": lambda: ip.TokenBudget([3, 5], 8),
    "no budget": lambda: ip.TokenBudget([3, 5], 8),
    "samples above the budget": lambda: [
        ip.TokenBudget([3, 50, 9, 60], 60),
        ip.TokenBudget([3, 8, 8, 8], 8),
        ip.TokenBudget([3], 8),
    ],
    "a sample above the budget": lambda: [
        ip.TokenBudget([3, 50, 9], 50),
        ip.TokenBudget([3, 10, 9], 10),
        ip.TokenBudget([3, 9], 10),
    ],
    "a budget of no samples": lambda: [
        ip.TokenBudget([3, 5], 8),
        ip.TokenBudget([3, 5], 8, max_samples=2),
    ],
    "multiples of nothing": lambda: ip.TokenBudget([3, 5], 8),
    "multiples above the samples of a bin": lambda: [
        ip.TokenBudget([3, 5], 8, max_samples=4),
        ip.TokenBudget([3, 5], 8, max_samples=8, multiple_of=8),
    ],
    "a group that is too large": lambda: ip.Grouped(
        np.unique([0, 1, 65536], return_inverse=True)[1], 8
    ),
    "bins of no sample of a group": lambda: [
        ip.Grouped([0, 1], 4),
        ip.Grouped([0, 1], {0: 4, 1: 2}),
    ],
    "a batch size that is none": lambda: [ip.Grouped([0, 1], 8), ip.Grouped([0, 1], {0: 8, 1: 8})],
    "a group without a batch size": lambda: [
        ip.Grouped([4, 4, 7], 2),
        ip.Grouped([4, 4, 7], {4: 2, 7: 1}),
    ],
    "a group with two batch sizes": lambda: [
        ip.Grouped([0, 1], 2),
        ip.Grouped([0, 1], {0: 2, 1: 3}),
    ],
    "a batch size of no group": lambda: [ip.Grouped([0, 1], 4), ip.Grouped([0, 1], {0: 4, 1: 4})],
    "a sum of floats over a step": lambda: PLAN.step_total(
        np.array([1, 2, 3], np.int64), 0, step=0
    ),
    "a sum over a step of another dataset": lambda: [
        PLAN.step_total([1, 2, 3], 0, step=0),
        PLAN.step_total(None, 0, step=0),
    ],
    "a sum over a step that is too large": lambda: [
        PLAN.step_total([2**52, 2**52, 5], 0, step=0),
        PLAN.replace(batch_size=1).step_total([2**62, 2**62, 5], 0, step=0),
    ],
    "lengths that have changed": opened_again,
}
