"""Errors of pictures that are drawn into a figure of the user's own."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

import indexplan as ip
from tests.errors.catalogue.made import WHOLE, Case

NO_FIGURE: Any = 3


def twice() -> None:
    """Draw two pictures into one figure."""
    figure = Figure(layout="constrained")
    ip.plot.reading(WHOLE, figure=figure)
    ip.plot.reading(WHOLE, figure=figure)


CASES: list[Case] = [
    ("a picture in what is no figure", lambda: ip.plot.reading(WHOLE, figure=NO_FIGURE)),
    ("two pictures in one figure", twice),
    ("a picture of words", lambda: ip.plot.reading(WHOLE, values=["a", "b"])),
    ("a picture of another dataset's values", lambda: ip.plot.mixing(WHOLE, values=[1.0, 2.0])),
    ("a picture without a layout", lambda: ip.plot.reading(WHOLE, figure=Figure())),
    (
        "a picture with a layout that has no room for its legend",
        lambda: ip.plot.reading(WHOLE, figure=Figure(layout="tight")),
    ),
]
