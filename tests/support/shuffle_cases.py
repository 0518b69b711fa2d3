"""The 1,000 known answers of shuffle-v1 that are for every language."""

from __future__ import annotations

from typing import NamedTuple

from tests.golden.lines import cases


class Case(NamedTuple):
    """The indices at the positions from `start` on."""

    n: int
    seed: int
    epoch: int
    start: int
    indices: list[int]


CASES = [  # large numbers are texts in the file
    Case(*map(int, row[:4]), [*map(int, row[4])]) for row in cases("shuffle_v1_cases")
]
