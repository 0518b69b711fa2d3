"""Errors of packed bins, and of pieces."""

from __future__ import annotations

import numpy as np

import indexplan as ip
from tests.errors.catalogue.made import Case

NUMBERS = "pass numbers in one dimension, or the path of a .npy file of them"
EMPTY = "leave out what is empty, or count in larger units"
CUT = "use np.minimum(lengths, max_length), where the dataset cuts them, or ip.pieces to split them"
LARGE = np.full(2**21, 2**40)
SUM = "the sum of lengths, each as the longest of its stratum, must be below 2**63; got"


def merged() -> None:
    """Let samples that are short count as one that is not."""
    row = np.ones(2**23, np.int64)
    row[5] = 2**40
    ip.Packed(row, 2**40, min_stratum=2**23).num_units(0)


CASES: list[Case] = [
    (
        "truths as lengths",
        lambda: ip.Packed([True], 8),
        "lengths must be a flat list or array of integers; got [True]; pass integers, such as an "
        "int64 array",
    ),
    (
        "no lengths to pack",
        lambda: ip.Packed([], 8),
        "lengths must be from 1 to 4294967296 numbers; got 0; pass the length of each sample",
    ),
    (
        "a length of 0 to pack",
        lambda: ip.Packed([3, 0], 8),
        f"the length of sample 1 must be an integer from 1 to 1099511627776; got 0; {EMPTY}",
    ),
    (
        "bins of no tokens",
        lambda: ip.Packed([3], 0),
        "max_length must be an integer from 1 to 2**63 - 1; got 0; pass how many tokens a bin may "
        "have",
    ),
    (
        "a sample that is too long",
        lambda: ip.Packed([7, 9, 8, 10], 8),
        "max_length must be at least 10, the longest length; got 8, but 2 samples are longer, "
        f"the first of them sample 1; {CUT}",
    ),
    (
        "packed bins of no samples",
        lambda: ip.Packed([3], 8, max_samples=0),
        "max_samples must be an integer from 1 to 2**31 - 1; got 0; leave it out, or pass how many "
        "samples a bin may have",
    ),
    (
        "strata of nothing",
        lambda: ip.Packed([3], 8, min_stratum=0),
        "min_stratum must be an integer from 1 to 4294967296; got 0; leave it out for 1",
    ),
    (
        "a seed below 0",
        lambda: ip.Packed([3], 8, seed=-1),
        "seed must be an integer from 0 to 2**128 - 1; got -1; hash other seeds to such an integer "
        "first",
    ),
    (
        "lengths whose sum is too large",
        lambda: ip.Packed(np.tile(LARGE, 4), 2**40),
        f"{SUM} {2**63}; count in larger units",
    ),
    (
        "lengths whose sum is too large as they are counted",
        merged,
        f"{SUM} {2**63}; count in larger units",
    ),
    (
        "pieces of nothing",
        lambda: ip.pieces([3, 5], 0),
        "max_length must be an integer from 1 to 2**63 - 1; got 0; pass how many tokens a piece "
        "may have",
    ),
    (
        "pieces of no lengths",
        lambda: ip.pieces([3, -5], 2),
        f"the length of sample 1 must be an integer from 1 to 1099511627776; got -5; {EMPTY}",
    ),
    (
        "too many pieces",
        lambda: ip.pieces([2**40, 5], 100),
        "the number of pieces must be at most 4294967296; got 10995116279; raise max_length",
    ),
]
