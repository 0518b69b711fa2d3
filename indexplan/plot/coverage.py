"""Coverage: how often each region of the dataset is read, which a shuffle reads evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.errors import IndexPlanError
from indexplan.plan import Plan
from indexplan.plot.drawing import BLUE, GREY, RED, new_figure, of_many, sample, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REGIONS = 64
WHOLE = 2**24  # an epoch of up to so many units is counted whole
SAMPLED = 2**14  # else so many: each may be a page of its own to be read from a disk


def coverage(plan: Plan, epoch: int = 0) -> Figure:
    """Draw how many units an epoch's order holds of each region of the dataset.

    A plan file that was damaged, or filled with zeros, is not flat. `indexplan.verify` proves
    what this only shows.

    Parameters
    ----------
    plan : Plan
        Such as a loaded one, whose files are read; its order must deal single samples.
    epoch : int, default 0
        The epoch.

    Returns
    -------
    matplotlib.figure.Figure
        A bar for each of 64 regions, in % of what is due to it; of large epochs a sample is
        read, 95 of 100 bars of an even order lie between the dashed lines.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order deals bins, or the epoch is out of range.

    Examples
    --------
    >>> import indexplan as ip, indexplan.plot
    >>> figure = ip.plot.coverage(ip.Plan(ip.Shuffle(10_000), batch_size=8))
    """
    figure = new_figure(8, 3.4)
    axes = figure.add_subplot()
    order, num_samples = plan.order, plan.order.num_samples
    if order.deals_bins:
        rule = "coverage needs an order of single samples"
        raise IndexPlanError(f"{rule}; got {order.algorithm}; use indexplan.verify")
    num_units = order.num_units(epoch)
    if num_units <= WHOLE:
        positions, indices = num_units, order.take(epoch, 0, num_units)
    else:
        positions, indices = SAMPLED, order.take(epoch, sample(0, num_units, SAMPLED))
    regions = min(REGIONS, num_samples)
    bounds = [-(-num_samples * i // regions) for i in range(regions + 1)]
    counts = np.histogram(indices, bounds)[0]
    due = np.diff(np.array(bounds, float)) * (positions / num_samples)
    percent = 100 * counts / due
    even = np.full(regions, 0.0)
    if positions < num_units:
        even = 196 / np.sqrt(due)
    flat = np.abs(percent - 100) <= np.maximum(even * 2, 1e-9)
    axes.bar(np.arange(regions) + 0.5, percent, 0.9, color=np.where(flat, BLUE, RED).tolist())
    for edge in {-even.max(), 0, even.max()}:
        axes.axhline(100 + edge, color=GREY, linewidth=1, linestyle="--" if edge else "-")
    axes.set_ylim(0, max(125, 1.1 * percent.max()))
    ticks = sample(0, regions + 1, 9)
    axes.set_xticks(ticks, labels=[short(bounds[i]) for i in ticks])
    axes.set_title(f"Coverage: epoch {epoch}, {order.algorithm}", loc="left")
    axes.set_xlabel(f"dataset index ({of_many(positions, num_units, 'position')} looked at)")
    axes.set_ylabel("% of the reads due")
    return figure
