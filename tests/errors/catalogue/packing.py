"""Errors of packed bins, and of pieces."""

from __future__ import annotations

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
    ("a length of 0 to pack", lambda: ip.Packed([3, 0], 8)),
    ("a sample that is too long", lambda: ip.Packed([7, 9, 8, 10], 8)),
    ("lengths whose sum is too large", lambda: ip.Packed(np.tile(LARGE, 4), 2**40)),
    ("lengths whose sum is too large as they are counted", merged),
]
