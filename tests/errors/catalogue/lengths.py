"""Errors of bins by length and by group, and of sums over a step."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

PLAN = ip.Plan(ip.Sequential(3), world_size=1, batch_size=3)


def too_many() -> None:
    """Name a file of more samples than there may be, which takes no room."""
    num = 2**32 + 1
    with Path("many.npy").open("wb") as file:
        header = {"descr": "<u4", "fortran_order": False, "shape": (num,)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * num)
    ip.LengthGrouped("many.npy", 8)


def changed() -> None:
    """Change a column's file before the bins are cut."""
    np.save("lengths.npy", np.arange(1, 9))
    order = ip.LengthGrouped("lengths.npy", 2)
    order.to_dict()
    np.save("lengths.npy", np.arange(1, 99))
    order.num_units(0)


CASES: list[Case] = [
    ("lengths in two dimensions", lambda: ip.LengthGrouped(np.ones((2, 2), np.int64), 8)),
    ("whole floats as lengths", lambda: ip.TokenBudget([3.0, 5.0], 8)),
    ("truths as groups", lambda: ip.Grouped([True, False], 8)),
    ("objects as lengths", lambda: ip.LengthGrouped([3, None], 8)),
    ("no lengths", lambda: ip.LengthGrouped([], 8)),
    ("more lengths than there may be", too_many),
    ("a length of 0", lambda: ip.LengthGrouped([*[7] * 200_000, 0, 0], 8)),
    ("a length that is too large", lambda: ip.LengthGrouped([3, 2**40 + 1], 8)),
    ("samples above the budget", lambda: ip.TokenBudget([3, 50, 9, 60], 8)),
    ("a sample above the budget", lambda: ip.TokenBudget([3, 50, 9], 10)),
    ("a group that is too large", lambda: ip.Grouped([0, 1, 65536], 8)),
    ("bins of no sample of a group", lambda: ip.Grouped([0, 1], [4, 0])),
    ("a group without a batch size", lambda: ip.Grouped([4, 4, 7], {4: 2})),
    ("a group with two batch sizes", lambda: ip.Grouped([0, 1], [(0, 2), (1, 3), (0, 4)])),
    ("a batch size of no group", lambda: ip.Grouped([0, 1], {"portrait": 4})),
    ("a sum over a step of another dataset", lambda: PLAN.step_total([1, 2], 0, step=0)),
    ("a sum over a step that is too large", lambda: PLAN.step_total([2**62, 2**62, 5], 0, step=0)),
    ("lengths that have changed", changed),
]
