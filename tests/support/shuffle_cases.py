"""The 1,000 known answers of shuffle-v1 that are for every language."""

from __future__ import annotations

import json
from typing import NamedTuple

from tests.golden.lines import FOLDER

PATH = FOLDER / "shuffle_v1_cases.json"


class Case(NamedTuple):
    """The indices at the positions from `start` on."""

    n: int
    seed: int
    epoch: int
    start: int
    indices: list[int]


def read() -> list[Case]:
    """Return the cases; large numbers are texts in the file."""
    rows = json.loads(PATH.read_text())["cases"]
    return [Case(*map(int, row[:4]), [*map(int, row[4])]) for row in rows]


CASES = read()
