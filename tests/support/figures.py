"""What the tests of pictures share: plans, and the data behind a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

import indexplan as ip

PLAN = ip.Plan(ip.Shuffle(203), world_size=4, batch_size=8)


def legend(figure: Any) -> list[str]:
    """What a figure's legend explains."""
    return [text.get_text() for each in figure.legends for text in each.get_texts()]


def heading(figure: Any) -> tuple[str, str]:
    """A figure's title, and its caption on one line."""
    found = {text.get_gid(): text.get_text().replace("\n", " ") for text in figure.texts}
    return found["title"], found["caption"]


def notes(figure: Any) -> list[str]:
    """What the panels say of themselves."""
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def shares(figure: Any) -> np.ndarray[Any, Any]:
    """The shares in a picture of mixing, in %; shape (quarters, windows)."""
    lines = [line for line in figure.axes[1].lines if line.get_marker() == "o"]
    assert {"None"} == {line.get_linestyle() for line in lines}  # points, not joined
    return np.array([line.get_ydata() for line in lines])
