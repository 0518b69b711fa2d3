"""The report on rules for choosing a tail is right."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import packing
from benchmarks.measure.packing import Found, first, least_squares, summary


def test_choices() -> None:
    """The first that has hardly more bins than the fewest, or the one with the least squares."""
    case = {0: Found(1003, 4, 1, 1), 2: Found(1002, 2, 1, 9), 5: Found(1000, 1, 8, 5)}
    tails = tuple(case)
    assert summary([case], tails, 400, first).split() == ["20.0", "2.00", "2.00", "2.00", "1.0"]
    squares = summary([case, case], tails, 400, least_squares)
    assert squares.split() == ["0.0", "1.00", "1.00", "1.00", "8.0"]
    wide = summary([case], tails, 200, least_squares)
    assert wide.split() == ["30.0", "4.00", "4.00", "4.00", "1.0"]


def test_tails() -> None:
    """All 3 short ones in the last bin, or one in each; then no tail but the one that is asked."""
    lengths = np.array([8, 8, 8, 2, 2, 2, 1, 1, 1, 1, 1, 1])
    best, spread = packing.pack(lengths, 10, 100), packing.pack(lengths, 12, 0)
    assert (best.num, best.squares) == (4, 4 + 4 + 4 + 36)
    assert (spread.num, spread.squares) == (3, 3 * 16)
