"""Errors of windows of tokens."""

from __future__ import annotations

from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import Case

RANGE = "must be an integer from 1 to 2**63 - 1"
NOT_A_FLAG: Any = "False"

CASES: list[Case] = [
    (
        "a row of no tokens",
        lambda: ip.TokenWindows(0, 1),
        f"num_tokens {RANGE}; got 0; pass len(tokens)",
    ),
    (
        "windows of no tokens",
        lambda: ip.TokenWindows(100, 0),
        f"length {RANGE}; got 0; pass the model's context length",
    ),
    (
        "an overlap below 0",
        lambda: ip.TokenWindows(100, 10, overlap=-1),
        "overlap must be an integer from 0 to 2**63 - 1; got -1; leave it out for 1",
    ),
    (
        "a shift that is a word",
        lambda: ip.TokenWindows(100, 10, shift=NOT_A_FLAG),
        "shift must be True or False; got 'False'; leave it out for True",
    ),
    (
        "a window longer than the row",
        lambda: ip.TokenWindows(100, 100),
        "length + overlap must be at most 100, num_tokens; got 101; use shorter windows, or more "
        "tokens",
    ),
    (
        "the window of a token that is none",
        lambda: ip.TokenWindows(100, 10).window_of(0, [3, 100]),
        "index must be from 0 to 99; got 100; name one of the order's 100 samples",
    ),
    (
        "targets of an epoch that is none",
        lambda: ip.TokenWindows(100, 10).targets(-1),
        "epoch must be an integer from 0 to 2**32 - 1; got -1; count from 0; a run ends with epoch "
        "2**32 - 1",
    ),
]
