"""Errors of windows of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case

NOT_A_FLAG: Any = "False"

CASES: list[Case] = [
    ("a window longer than the row", lambda: ip.TokenWindows(100, 100)),
    ("targets of an epoch that is none", lambda: ip.TokenWindows(100, 10).targets(-1)),
]


# the cures, followed

CURED: dict[str, Callable[[], Any]] = {
    "a window longer than the row": lambda: (
        ip.TokenWindows(100, 99),
        ip.TokenWindows(101, 100),
    ),
    "targets of an epoch that is none": lambda: [
        ip.TokenWindows(100, 10).targets(epoch) for epoch in (0, 2**32 - 1)
    ],
}
