"""One style for all pictures: colours, a heading that says what to look for, and axes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import IndexPlanError, install
from indexplan.plot.drawing import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision can tell apart; kinds of bars differ
# by their hatching as well, for prints without colour
NAMED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9"
BLUE, ORANGE, GREEN, PURPLE, RED, SKY = NAMED
COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
DARK, GREY, BAND, LIGHT = "#262626", "#6b6b6b", "#cfcfcf", "#e8e8e8"

# font sizes in points: of titles; of captions and the names of axes; of tick labels and legends
TITLE, WORDS, SMALL = 11, 9, 8
TICKS = 6  # at most this many intervals between the ticks of an axis
STEPS = (1, 2, 2.5, 5, 10)  # intervals are one of these, times a power of ten


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of that many inches, which never opens a window.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing.
    """
    try:
        import matplotlib.figure  # noqa: F401 (also where pictures were drawn before)

        from indexplan.plot.picture import Picture
    except ImportError as error:
        raise IndexPlanError(
            "matplotlib", "must be installed for pictures", error, install("plot")
        ) from error
    return Picture.of(width, height)


def panels(figure: Figure, rows: int = 1, columns: int = 1, **options: Any) -> np.ndarray[Any, Any]:
    """Return the figure's axes in this style; an array of shape (rows, columns)."""
    found: np.ndarray[Any, Any] = figure.subplots(rows, columns, squeeze=False, **options)
    for axes in found.flat:
        axes.set_facecolor("white")
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(GREY)
        axes.tick_params(labelsize=SMALL, color=GREY, labelcolor=DARK, length=3)
        axes.grid(axis="y", color=LIGHT, linewidth=0.6)
        axes.set_axisbelow(True)
        for axis in (axes.xaxis, axes.yaxis):
            axis.label.set(fontsize=WORDS, color=DARK)
            counting(axis)
    return found


def counting(axis: Any, most: int = TICKS) -> None:
    """Put ticks at whole numbers only, and give each a label that differs from the others."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    class Counts(FuncFormatter):
        def format_ticks(self, values: Any) -> list[str]:
            return tick_labels(values)

    axis.set_major_locator(MaxNLocator(nbins=most, steps=STEPS, integer=True, min_n_ticks=1))
    axis.set_major_formatter(Counts(lambda value, _: short(value)))


def measuring(axis: Any, most: int = TICKS) -> None:
    """Put ticks at round numbers, whole or not: for ratios and other values that are no counts."""
    from matplotlib.ticker import MaxNLocator, ScalarFormatter

    axis.set_major_locator(MaxNLocator(nbins=most, steps=STEPS))
    axis.set_major_formatter(ScalarFormatter(useOffset=False))


def tick_labels(values: Any) -> list[str]:
    """Return short labels, or whole numbers if short labels would be equal."""
    labels = [short(value) for value in values]
    if len(set(labels)) < len(labels):
        return [f"{value:,.0f}" for value in values]
    return labels


def explain(figure: Figure, columns: int = 4, **options: Any) -> None:
    """Put a legend below the panels."""
    legend = figure.legend(
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        fontsize=SMALL,
        labelcolor=DARK,
        **options,
    )
    legend.set_gid("legend")


def heading(figure: Figure, title: str, caption: str) -> None:
    """Put a title over a figure, and below it one sentence that says what to look for.

    The figure grows by the height that they take.
    """
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(caption, int(14.2 * width))  # characters of 9 points in an inch
    above = 0.36 + 0.155 * len(lines)
    figure.set_size_inches(width, height + above)
    left, top = 0.08 / width, height + above
    for gid, words, below, size, weight in (
        ("title", title, 0.07, TITLE, "bold"),
        ("caption", "\n".join(lines), 0.3, WORDS, "normal"),
    ):
        text = figure.text(left, 1 - below / top, words, va="top", ha="left", fontsize=size)
        text.set(gid=gid, fontweight=weight, color=DARK)
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, 0, 1, height / top))


def nothing_here(axes: Any, words: str) -> None:
    """Say why a panel is empty, and hide its axes' ticks."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", fontsize=SMALL, color=DARK)
    axes.set_xticks([])
