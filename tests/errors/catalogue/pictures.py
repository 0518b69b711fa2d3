"""Errors of pictures that are drawn of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import indexplan as ip
from tests.errors.catalogue.made import WHOLE, Case

CASES: list[Case] = [
    ("a picture of words", lambda: ip.plot.reading(WHOLE, values=["a", "b"])),
    ("a picture of another dataset's values", lambda: ip.plot.mixing(WHOLE, values=[1.0, 2.0])),
]


# the cures, followed

CURED: dict[str, Callable[[], Any]] = {
    "a picture of words": lambda: ip.plot.reading(WHOLE, values=range(WHOLE.order.num_samples)),
    "a picture of another dataset's values": lambda: ip.plot.mixing(
        WHOLE, values=range(WHOLE.order.num_samples)
    ),
}
