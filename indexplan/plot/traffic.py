"""Traffic: how many shards are live on each node, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import wrong
from indexplan.plan.traffic import Traffic
from indexplan.plot.drawing import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, new_figure, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)


def traffic(found: Traffic) -> Figure:
    """Draw how many shards are live on each node of a run over its steps.

    Parameters
    ----------
    found : Traffic
        What `indexplan.traffic` returned.

    Returns
    -------
    matplotlib.figure.Figure
        A line for each of up to six nodes; of more, a band from the node with the fewest to that
        with the most, and the median. The title has downloads and mixing.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, or it is something else.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.ShardShuffle([64] * 1024, lanes=16, stripe=64)
    >>> found = ip.traffic(ip.Plan(order, world_size=8, batch_size=8), ranks_per_node=2)
    >>> figure = ip.plot.traffic(found)
    """
    if not isinstance(found, Traffic):
        raise wrong("traffic", "a Traffic", found, "pass what indexplan.traffic returns")
    figure = new_figure(8, 4)
    axes: Any = figure.subplots()
    edges = np.concatenate([np.zeros(1, np.int64), found.stops])
    if not len(found.stops):
        pass  # no steps: axes without lines
    elif found.num_nodes <= len(COLORS):
        for node, color in enumerate(COLORS[: found.num_nodes]):
            _stairs(axes, found.live_at[:, node], edges, color, f"node {node}")
    else:
        least, most = found.live_at.min(axis=1), found.live_at.max(axis=1)
        axes.stairs(most, edges, baseline=least, fill=True, color=SKY, alpha=0.5, label="all nodes")
        _stairs(axes, np.median(found.live_at, axis=1), edges, BLUE, "their median")
    for done in np.cumsum(found.num_steps)[:-1].tolist():
        axes.axvline(done, color="black", linewidth=0.6, linestyle=":")  # where an epoch ends
    axes.set_ylim(bottom=0)
    axes.set_ylabel("live shards of a node")
    axes.set_xlabel("step")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    if len(found.stops):
        figure.legend(loc="outside right upper", frameon=False, fontsize=9)
    figure.suptitle(_title(found), x=0.01, ha="left", fontsize="medium")
    return figure


def _stairs(axes: Any, heights: Any, edges: Any, color: str, label: str) -> None:
    axes.stairs(heights, edges, baseline=None, color=color, linewidth=1, label=label)


def _title(found: Traffic) -> str:
    times = sum(found.times) / len(found.times)
    means = sum(each.mean for each in found.different) / len(found.different)
    nodes = f"{found.num_nodes:,} node{'s' * (found.num_nodes != 1)}"
    return (
        f"Traffic: {nodes} read {short(found.num_shards)} shards, and download the dataset "
        f"{times:.2f} times an epoch;\na step mixes {means:,.0f} shards"
    )
