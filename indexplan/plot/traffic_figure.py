"""Traffic: how many shards are live on each node, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import wrong
from indexplan.keywords import named
from indexplan.plot.drawing import short
from indexplan.plot.style import (
    BLUE,
    COLORS,
    DARK,
    SKY,
    explain,
    heading,
    new_figure,
    nothing_here,
    panels,
    root_of,
)
from indexplan.shards.downloads import Traffic

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


@named
def traffic(found: Traffic, *, figure: Figure | SubFigure | None = None) -> Figure:
    """Draw how many shards are live on each node, step by step.

    A shard is live from its first read on a node to its last, in each epoch: the node has to keep
    the live ones.

    Parameters
    ----------
    found : Traffic
        What `indexplan.traffic` returned.
    figure : Figure or SubFigure, optional
        Your own, to draw into; empty, and with constrained layout. By default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A line for each of up to six nodes; for more, a band from the node with the fewest to the
        one with the most, and the median. The caption has downloads and mixing.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, or found is not a Traffic.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ShardShuffle([64] * 1024, lanes=16, stripe=64)
    >>> found = ip.traffic(ip.Plan(order, world_size=8, batch_size=8), ranks_per_node=2)
    >>> figure = ip.plot.traffic(found)
    """
    if not isinstance(found, Traffic):
        raise wrong("traffic", "a Traffic", found, "pass what indexplan.traffic returns")
    figure = new_figure(8, 3.4, figure)
    axes: Any = panels(figure)[0, 0]
    edges = np.concatenate([np.zeros(1, np.int64), found.stops])
    if not len(found.stops):
        nothing_here(axes, "no steps here")
    elif found.num_nodes <= len(COLORS):
        for node, color in enumerate(COLORS[: found.num_nodes]):
            width = 1 + 1.5 * (found.num_nodes - 1 - node)  # equal lines all show
            _stairs(axes, found.live_at[:, node], edges, color, f"node {node}", width)
    else:
        least, most = found.live_at.min(axis=1), found.live_at.max(axis=1)
        axes.stairs(most, edges, baseline=least, fill=True, color=SKY, alpha=0.5, label="all nodes")
        _stairs(axes, np.median(found.live_at, axis=1), edges, BLUE, "their median", 1)
    for done in np.cumsum(found.num_steps)[:-1].tolist():
        axes.axvline(done, color=DARK, linewidth=0.6, linestyle=":")  # where an epoch ends
    axes.set_ylim(0, 1.1 * max(1, found.live_at.max(initial=0)))
    axes.set_ylabel("live shards of a node")
    if len(found.stops):
        axes.set_xlabel("step")
        explain(figure, columns=6)
    nodes = f"{found.num_nodes:,} node{'s' * (found.num_nodes != 1)}"
    title = f"Traffic: {nodes} read {short(found.num_shards)} shards"
    heading(figure, title, _caption(found))
    return root_of(figure)


def _stairs(axes: Any, heights: Any, edges: Any, color: str, label: str, width: float) -> None:
    axes.stairs(heights, edges, baseline=None, color=color, linewidth=width, label=label)


def _caption(found: Traffic) -> str:
    times = sum(found.times) / len(found.times)
    means = sum(each.mean for each in found.different) / len(found.different)
    return (
        f"The nodes together download the dataset {times:.2f} times an epoch, and a step mixes "
        f"{means:,.0f} shards: the lower the lines, the smaller a node's cache may be."
    )
