"""Errors of pictures that are drawn of values."""

from __future__ import annotations

import indexplan as ip
from tests.errors.catalogue.made import WHOLE, Case

CASES: list[Case] = [
    ("a picture of words", lambda: ip.plot.reading(WHOLE, values=["a", "b"])),
    ("a picture of another dataset's values", lambda: ip.plot.mixing(WHOLE, values=[1.0, 2.0])),
]
