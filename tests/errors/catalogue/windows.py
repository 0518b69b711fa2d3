"""Errors of windows of tokens."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case

NOT_A_FLAG: Any = "False"

CASES: list[Case] = [
    ("a row of no tokens", lambda: ip.TokenWindows(0, 1)),
    ("windows of no tokens", lambda: ip.TokenWindows(100, 0)),
    ("an overlap below 0", lambda: ip.TokenWindows(100, 10, overlap=-1)),
    ("a shift that is a word", lambda: ip.TokenWindows(100, 10, shift=NOT_A_FLAG)),
    ("a window longer than the row", lambda: ip.TokenWindows(100, 100)),
    ("targets of an epoch that is none", lambda: ip.TokenWindows(100, 10).targets(-1)),
]
