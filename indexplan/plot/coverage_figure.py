"""Coverage: how often each region of the dataset is read, which a shuffle reads evenly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import Cure, IndexPlanError
from indexplan.keywords import named
from indexplan.orders.base import not_located
from indexplan.plan.plan import Plan, check_plan
from indexplan.plot.chance import counts_between
from indexplan.plot.drawing import first_of, of_many, sample, short
from indexplan.plot.style import (
    BAND,
    BLUE,
    DARK,
    RED,
    explain,
    heading,
    new_figure,
    panels,
    root_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

REGIONS = 64
WHOLE = 2**24  # an epoch of up to this many units is counted whole
SAMPLED = 2**14  # else this many: each may take reading a page from a disk
# The share of pictures of full shuffles that may have a region above the band, and the same for one
# below. The tail of each region is that divided by their number (Bonferroni's inequality).
FALSE_ALARMS = 0.001


@named
def coverage(
    plan: Plan, epoch: int | None = None, *, figure: Figure | SubFigure | None = None
) -> Figure:
    """Draw how often an epoch's order reads each region of the dataset.

    Use it to see at a glance whether a plan reads all of the dataset: a plan file that was damaged,
    or filled with zeros, and loaded with ``check="opened"``, is not flat. `indexplan.verify` proves
    what this only shows.

    Parameters
    ----------
    plan : Plan
        Its order must be one of single samples. If it was loaded, its files are read.
    epoch : int, optional
        By default the first that is left to read; it is drawn whole.
    figure : Figure or SubFigure, optional
        Your own, to draw into; empty, and with constrained layout. By default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        A bar for each of 64 regions, in % of the reads that it is due. An epoch of up to 2**24
        units is counted whole, and each bar must be at 100. Of a larger one a sample is read, and
        the grey band is what chance allows: of a thousand full shuffles, one has a bar above it,
        and one has a bar below. Its edges are quantiles of the hypergeometric distribution, which
        is nearly binomial here. Bars that end outside are red, unless the order may repeat or leave
        out samples, and the reads that are due are not known.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order has bins, or the epoch is out of range.

    Examples
    --------
    >>> import indexplan as ip
    >>> figure = ip.plot.coverage(ip.Plan(ip.Shuffle(10_000), batch_size=8))
    """
    check_plan("plan", plan)
    figure = new_figure(8, 3, figure)
    epoch, order, num_samples = first_of(plan, epoch)[0], plan.order, plan.order.num_samples
    if order.deals_bins:
        raise IndexPlanError(
            "coverage",
            "needs an order of single samples",
            order.algorithm,
            Cure("use indexplan.verify", "use `indexplan verify`"),
        )
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
    none = np.where(counts > 0, 2.0, 1.0)  # the ratio where no read is due
    percent = 100 * np.divide(counts, due, out=none, where=due > 0)
    flat = np.full(regions, True)
    low = high = np.full(regions, 100.0)
    if meant:
        if not counted:
            low, high = _band(np.array(bounds, np.int64), len(indices))
        flat = (percent > low - 1e-9) & (percent < high + 1e-9)
    axes = panels(figure)[0, 0]
    kinds = (BLUE, "reads", None, flat), (RED, "too many or too few", "///", ~flat)
    for color, label, hatch, chosen in kinds:
        at = np.flatnonzero(chosen)
        if len(at):
            axes.bar(
                at + 0.5, percent[at], 0.9, color=color, label=label, hatch=hatch, edgecolor="white"
            )
    if low is not high:
        band = axes.stairs(high, baseline=low, fill=True, label="what chance allows")
        band.set(color=BAND, zorder=0.8)  # behind the bars; its edges are in front of them
        for edge in (low, high):
            axes.stairs(edge, baseline=None, color=DARK, linewidth=0.8, linestyle="--")
    axes.axhline(100, color=DARK, linewidth=0.8)
    axes.set_ylim(0, 1.1 * max(percent.max(), high.max()))
    axes.margins(x=0.01)
    labelled = sample(0, regions + 1, 9)
    axes.set_xticks(labelled, labels=[short(bounds[i]) for i in labelled])
    looked_at = of_many(len(indices), num_units, "position")
    axes.set_xlabel(f"dataset index, {regions} regions ({looked_at} looked at)")
    axes.set_ylabel("% of the reads due")
    explain(figure)
    caption = _caption(int((~flat).sum()), meant, counted)
    heading(figure, f"Coverage: epoch {epoch}, {order.algorithm}", caption)
    return root_of(figure)


def _band(
    bounds: NDArray[np.int64], looked_at: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and highest % of the reads due that chance allows each region."""
    sizes, total = np.diff(bounds), int(bounds[-1])
    tail = FALSE_ALARMS / len(sizes)
    of_size = {n: counts_between(looked_at, n, total, tail) for n in set(sizes.tolist())}
    allowed = np.array([of_size[n] for n in sizes.tolist()])  # shape (regions, 2)
    low, high = 100 * allowed.T / (sizes * (looked_at / total))
    return low, high


def _caption(wrong: int, meant: bool, counted: bool) -> str:
    """Return one sentence that says what to look for."""
    if not meant:
        return "This order may repeat or leave out samples, so its bars may have any height."
    if wrong:
        return (
            f"Red regions ({wrong}) are read too often or too seldom: files are damaged or "
            "missing, and `indexplan verify` tells which."
        )
    if counted:
        return "Every bar is at 100%: the epoch reads each region as often as it should."
    return (
        "Every bar ends in the grey band: as far as a sample can tell, the epoch reads each region "
        "as often as it should."
    )
