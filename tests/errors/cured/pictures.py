"""The cures of errors of pictures that are drawn into a figure of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

import indexplan as ip
from tests.errors.catalogue.made import WHOLE


def as_said() -> None:
    """Draw into a figure that is made as the error says."""
    figure = plt.figure(layout="constrained")
    ip.plot.reading(WHOLE, figure=figure)
    plt.close(figure)


def in_parts() -> None:
    """Draw two pictures into the parts of one figure."""
    for part in Figure(layout="constrained").subfigures(1, 2):
        ip.plot.reading(WHOLE, figure=part)


CURED: dict[str, Callable[[], Any]] = {
    "a picture in what is no figure": lambda: ip.plot.reading(WHOLE),
    "two pictures in one figure": in_parts,
    "a picture of words": lambda: ip.plot.reading(WHOLE, values=range(WHOLE.order.num_samples)),
    "a picture of another dataset's values": lambda: ip.plot.mixing(
        WHOLE, values=range(WHOLE.order.num_samples)
    ),
    "a picture without a layout": as_said,
    "a picture with a layout that has no room for its legend": as_said,
}
