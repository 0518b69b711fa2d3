"""Errors of packed bins, and of pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

LARGE = np.full(2**21, 2**40)


def merged() -> None:
    """Let samples that are short count as one that is not."""
    row = np.ones(2**23, np.int64)
    row[5] = 2**40
    ip.Packed(row, 2**40, min_stratum=2**23).num_units(0)


CASES: list[Case] = [
    ("truths as lengths", lambda: ip.Packed([True], 8)),
    ("no lengths to pack", lambda: ip.Packed([], 8)),
    ("a length of 0 to pack", lambda: ip.Packed([3, 0], 8)),
    ("a sample that is too long", lambda: ip.Packed([7, 9, 8, 10], 8)),
    ("lengths whose sum is too large", lambda: ip.Packed(np.tile(LARGE, 4), 2**40)),
    ("lengths whose sum is too large as they are counted", merged),
]


# the cures, followed


def in_larger_units() -> Any:
    """Count the lengths that were too large together in larger units."""
    row = np.ones(2**23, np.int64)
    row[5] = 2**40 // 1024
    return ip.Packed(row, 2**40 // 1024, min_stratum=2**23).num_units(0)


CURED: dict[str, Callable[[], Any]] = {
    "truths as lengths": lambda: ip.Packed(np.array([1], np.int64), 8),
    "no lengths to pack": lambda: ip.Packed([3, 5], 8),
    "a length of 0 to pack": lambda: ip.Packed([3], 8),
    "a sample that is too long": lambda: (
        ip.Packed([7, 9, 8, 10], 10),
        ip.Packed(np.minimum([7, 9, 8, 10], 8), 8),
        ip.Packed([7, 8, 1, 8, 8, 2], 8),
    ),
    "lengths whose sum is too large": lambda: ip.Packed(np.tile(LARGE // 1024, 4), 2**30),
    "lengths whose sum is too large as they are counted": in_larger_units,
}
