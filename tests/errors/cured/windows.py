"""Cures of the errors of windows of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip

CURED: dict[str, Callable[[], Any]] = {
    "a row of no tokens": lambda: ip.TokenWindows(len(range(100)), 1),
    "windows of no tokens": lambda: ip.TokenWindows(100, 10),
    "an overlap below 0": lambda: ip.TokenWindows(100, 10),
    "a shift that is a word": lambda: ip.TokenWindows(100, 10),
    "a window longer than the row": lambda: (
        ip.TokenWindows(100, 99),
        ip.TokenWindows(101, 100),
    ),
    "targets of an epoch that is none": lambda: [
        ip.TokenWindows(100, 10).targets(epoch) for epoch in (0, 2**32 - 1)
    ],
}
