"""Times of many orders of magnitude side by side, as bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from indexplan.plot.style import (
    BLUE,
    GREY,
    LIGHT,
    ORANGE,
    SMALL,
    heading,
    new_figure,
    panels,
    root_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def timings(title: str, seconds: Mapping[str, float], notes: Mapping[str, str]) -> Figure:
    """Draw a bar for each time, on a logarithmic axis, the first at the top.

    Parameters
    ----------
    title : str
    seconds : mapping of str to float
        Times in seconds, above 0, by name.
    notes : mapping of str to str
        Why names without a time have none.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing.
    """
    names = [*seconds, *notes]
    figure = new_figure(8, 0.42 * len(names) + 0.7)
    axes = panels(figure)[0, 0]
    axes.grid(visible=False)
    low = min(seconds.values()) / 3
    for place, name in enumerate(names):
        if name in seconds:
            color = ORANGE if name.startswith("torch") else BLUE
            axes.barh(place, seconds[name] - low, left=low, color=color)
            words = _label(seconds[name])
            axes.text(seconds[name] * 1.15, place, words, va="center", fontsize=SMALL)
        else:
            axes.text(low * 1.15, place, notes[name], va="center", color=GREY, fontsize=SMALL)
    axes.set_xscale("log")
    axes.set_xlim(low, max(seconds.values()) * 6)
    axes.set_yticks(range(len(names)), labels=names)
    axes.set_ylim(len(names) - 0.4, -0.6)  # the first at the top; rows without a bar count too
    axes.set_xlabel("seconds")
    axes.grid(visible=True, axis="x", color=LIGHT, linewidth=0.6)
    heading(figure, title, "The shorter the bar the faster; the axis is logarithmic.")
    return root_of(figure)


def _label(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"
