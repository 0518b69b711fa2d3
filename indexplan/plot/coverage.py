"""Coverage: how often each region of the dataset is read, which a shuffle reads evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.errors import IndexPlanError
from indexplan.orders.base import not_located
from indexplan.plan.plan import Plan, check_plan
from indexplan.plot.drawing import BLUE, GREY, RED, new_figure, of_many, sample, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REGIONS = 64
WHOLE = 2**24  # an epoch of up to so many units is counted whole
SAMPLED = 2**14  # else so many: each may be a page of its own to be read from a disk
SIGMAS = 4  # a region of an even order lies further off once in 16,000 times


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
        A bar for each of 64 regions, in % of what is due to it. An epoch of up to 2**24 units is
        counted whole: each bar is 100. Of larger ones a sample is read, and bars of an even order
        lie between the dashed lines, 4 standard deviations off. Other bars are red, unless the
        order may repeat or leave out samples.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order deals bins, or the epoch is out of range.

    Examples
    --------
    >>> import indexplan as ip
    >>> figure = ip.plot.coverage(ip.Plan(ip.Shuffle(10_000), batch_size=8))
    """
    check_plan("plan", plan)
    figure = new_figure(8, 3.4)
    axes = figure.add_subplot()
    order, num_samples = plan.order, plan.order.num_samples
    if order.deals_bins:
        rule = "coverage needs an order of single samples"
        raise IndexPlanError(f"{rule}; got {order.algorithm}; use indexplan.verify")
    num_units = order.num_units(epoch)
    counted = num_units <= WHOLE
    if counted:
        indices = order.take(epoch, 0, num_units)
    else:
        indices = order.take(epoch, sample(0, num_units, SAMPLED))
    regions = min(REGIONS, num_samples)
    bounds = [-(-num_samples * i // regions) for i in range(regions + 1)]
    counts = np.histogram(indices, bounds)[0]
    due = np.diff(np.array(bounds, float)) * (len(indices) / num_samples)
    meant = order.traits.reads == "once"
    if not (meant or max(num_samples, num_units) > WHOLE or not_located(order)):
        starts = np.arange(num_samples)
        due = np.histogram(starts, bounds, weights=order.count(epoch, starts))[0]
        meant = True
    none = np.where(counts > 0, 2.0, 1.0)  # where no read is due
    percent = 100 * np.divide(counts, due, out=none, where=due > 0)
    off = 0.0 if counted else float((100 * SIGMAS / np.sqrt(due)).max())
    flat = np.full(regions, True)
    said = "this order may repeat or leave out samples"
    if meant:
        flat = np.abs(percent - 100) <= off + 1e-9
        once = "every sample once" if order.traits.reads == "once" else "as often as the order says"
        said = f"100%: {once}" if counted else f"{SIGMAS} standard deviations of a shuffle"
    for color, label, chosen in ((BLUE, "reads", flat), (RED, "too many or too few", ~flat)):
        at = np.flatnonzero(chosen)
        if len(at):
            axes.bar(at + 0.5, percent[at], 0.9, color=color, label=label)
    axes.axhline(100, color=GREY, linewidth=1, label=said if off == 0 else None)
    if off:
        axes.axhline(100 - off, color=GREY, linewidth=1, linestyle="--", label=said)
        axes.axhline(100 + off, color=GREY, linewidth=1, linestyle="--")
    axes.set_ylim(0, max(125, 1.1 * percent.max(), 1.1 * (100 + off)))
    labelled = sample(0, regions + 1, 9)
    axes.set_xticks(labelled, labels=[short(bounds[i]) for i in labelled])
    axes.set_title(f"Coverage: epoch {epoch}, {order.algorithm}", loc="left")
    looked_at = of_many(len(indices), num_units, "position")
    axes.set_xlabel(f"dataset index, {regions} regions ({looked_at} looked at)")
    axes.set_ylabel("% of the reads due")
    figure.legend(fontsize="small", ncols=3, loc="outside lower center", frameon=False)
    return figure
