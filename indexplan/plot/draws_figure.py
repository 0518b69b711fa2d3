"""Draws: how often the steps read each class or source, compared with the shares aimed at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.files.read import computed
from indexplan.keywords import named
from indexplan.orders.mixture import Mixture
from indexplan.plan.plan import Plan
from indexplan.plot.style import (
    COLORS,
    DARK,
    as_written,
    explain,
    heading,
    measuring,
    new_figure,
    panels,
    root_of,
)
from indexplan.reports.shares_drawn import Course, course_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

LONGEST = 24  # characters of a name


@named
def draws(
    plan: Plan, epoch: int | None = None, *, figure: Figure | SubFigure | None = None
) -> Figure:
    """Draw how often an epoch's steps read each source or class, and how often they should.

    Use it to see whether a mixture or balanced classes come in the shares that you asked for, at
    every place of an epoch.

    Parameters
    ----------
    plan : Plan
        With an order that has groups: a `Mixture`, `ClassBalanced`, `ClassBatches`, `Grouped`, or
        a layer around one.
    epoch : int, optional
        By default the plan's first.
    figure : Figure or SubFigure, optional
        Your own, to draw into; empty, and with constrained layout. By default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        Above, points for each group's share of the samples in parts of the epoch, and a line for
        the share it should have; below, how many samples the count is ahead of that. Of more than
        six groups, it shows the three drawn most and the three drawn least. For a mixture of
        bins, bins are counted. A mixture's caption says how far from its share a source may be.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, or as `indexplan.draws` does.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ClassBalanced([0] * 90 + [1] * 10)
    >>> figure = ip.plot.draws(ip.Plan(order, world_size=4, batch_size=5))
    """
    found = course_of(plan, epoch)
    names, noun = found.total.names, found.total.noun
    figure = new_figure(8, 4.5, figure)
    above, below = panels(figure, 2, 1, sharex=True, height_ratios=(2, 1))[:, 0]
    begins = np.concatenate([np.zeros(1, np.int64), found.at])
    middles = (begins[1:] + begins[:-1]) / 2
    in_windows, aims = _in_windows(found)
    chosen = _chosen(found)
    for color, group in zip(COLORS, chosen, strict=False):
        name = names[group]
        name = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
        points = {"color": color, "markersize": 3.5, "label": as_written(name)}
        above.plot(middles, in_windows[:, group], "o", **points)
        if len(aims):
            above.stairs(aims[:, group], begins, baseline=None, color=color, linewidth=1)
        below.plot(found.at, (found.drawn - found.aimed)[:, group], color=color, linewidth=1)
    below.axhline(0, color=DARK, linewidth=0.8)
    for axes in (above, below):
        measuring(axes.yaxis)
    both = np.concatenate([in_windows, aims.reshape(-1, len(names))])
    above.set_ylim(0, 1.1 * both[:, chosen].max(initial=0) or 1)
    above.set_ylabel(f"% of the {noun}")
    ahead = np.abs(found.drawn - found.aimed).max(initial=0)
    below.set_ylim(-1.1 * max(1, ahead), 1.1 * max(1, ahead))
    below.set_ylabel(f"{noun} ahead")
    below.set_xlabel("units read of the epoch")
    figure.align_ylabels()
    explain(figure, columns=3)
    total = len(names)
    shown = f"{len(chosen)} of {total:,} groups, those drawn most and least. "
    some = shown if len(chosen) < total else ""
    caption = (
        f"{some}Points on the lines are shares as aimed at; below, a line that stays near 0 is a "
        f"group that is never many {noun} ahead of its aim, or behind it."
    )
    order = computed(plan.order)
    if isinstance(order, Mixture) and len(order.weights) == 1:
        caption += (
            f" Each source is within {order.within:.2f} of its share at every place of a run."
        )
    heading(figure, _title(found), caption)
    return root_of(figure)


def _in_windows(found: Course) -> tuple[np.ndarray, np.ndarray]:
    """Return the percentages drawn, and aimed at, between one point and the next."""
    rows = []
    for table in (found.drawn, found.aimed):
        parts = np.diff(table, axis=0, prepend=np.zeros((1, table.shape[1])))
        rows.append(100 * parts / np.maximum(parts.sum(axis=1, keepdims=True), 1))
    return rows[0], rows[1]


def _chosen(found: Course) -> list[int]:
    """Return the groups to draw: all if few, else those drawn most and least."""
    drawn = found.total.drawn
    if len(drawn) <= len(COLORS):
        return list(range(len(drawn)))
    order = np.argsort(-drawn, kind="stable").tolist()
    half = len(COLORS) // 2
    return [*order[:half], *order[-half:]]


def _title(found: Course) -> str:
    total = found.total
    words = f"Draws: epoch {total.start[0]}, {int(total.drawn.sum()):,} {total.noun}"
    if total.num_looked_at < total.num_units:
        words += f", the first {total.num_looked_at:,} of {total.num_units:,} units"
    return words
