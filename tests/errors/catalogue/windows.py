"""Errors of windows of tokens."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import Case

CASES: list[Case] = [
    ("a window longer than the row", lambda: ip.TokenWindows(100, 100)),
    ("targets of an epoch that is none", lambda: ip.TokenWindows(100, 10).targets(-1)),
]
