"""Mixing: how evenly the quarters of a dataset are read, window of steps by window of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.errors import IndexPlanError, whole
from indexplan.plan import Plan
from indexplan.plot.drawing import (
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    PURPLE,
    new_figure,
    of_many,
    sample,
    short,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOWS, UNITS = 64, 2048  # at most so many windows, and units looked at in each
QUARTERS = ("first quarter", "second", "third", "last quarter")


def mixing(
    plan: Plan, epoch: int = 0, sub_epoch: int | None = None, *, window: int | None = None
) -> Figure:
    """Draw the share of each quarter of the dataset in windows of steps, over a sub-epoch.

    Parameters
    ----------
    plan : Plan
        With a world_size, or a global_batch_size; its order must deal single samples.
    epoch, sub_epoch : int
        Whose steps; by default the first sub-epoch of epoch 0.
    window : int, optional
        Steps in a window; by default the sub-epoch is cut into 64.

    Returns
    -------
    matplotlib.figure.Figure
        A line for each quarter against the ideal, a quarter, and the band that 95 of 100 windows
        of a perfect shuffle lie in.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order deals bins, or a number is out of range.

    Examples
    --------
    >>> import indexplan as ip, indexplan.plot
    >>> order = ip.BlockShuffle(100_000, block_size=1000, window=4)
    >>> figure = ip.plot.mixing(ip.Plan(order, world_size=4, batch_size=64))
    """
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    order = plan.order
    if order.deals_bins:
        rule = "mixing needs an order of single samples"
        raise IndexPlanError(f"{rule}; got {order.algorithm}; plot the reading instead")
    steps = plan._layout(epoch, sub_epoch if sub_epoch is not None else 0)  # noqa: SLF001
    num_steps = steps.num_steps - steps.first_step
    if window is None:
        window = max(1, -(-num_steps // WINDOWS))
    window = whole("window", window, 1, 2**63, "pass how many steps are looked at together")
    starts = steps.first_step + window * sample(0, -(-num_steps // window), WINDOWS)
    shares, counts = np.zeros((len(starts), 4)), np.zeros(len(starts))
    for i, start in enumerate(starts.tolist()):
        last = min(start + window, steps.num_steps) - 1
        low, high = steps.interval(start)[0], min(steps.interval(last)[1], steps.stop)
        positions = sample(low, high, UNITS)
        quarters = order.take(epoch, positions) // -(-order.num_samples // 4)
        counts[i] = len(positions)
        shares[i] = np.bincount(quarters, minlength=4)[:4] / max(1, len(positions))
    band = 1.96 * np.sqrt(0.25 * 0.75 / np.maximum(counts, 1))
    axes.fill_between(starts, 25 - 100 * band, 25 + 100 * band, color=LIGHT, label="95% band")
    axes.axhline(25, color=GREY, linewidth=0.8)
    styles = zip(QUARTERS, (BLUE, ORANGE, GREEN, PURPLE), "osv^", shares.T, strict=True)
    for name, color, marker, share in styles:
        axes.plot(starts, 100 * share, color=color, marker=marker, markersize=3, label=name)
    axes.set_ylim(0, max(50, 105 * shares.max(initial=0)))
    part = f", sub-epoch {steps.sub_epoch}" if plan.sub_epochs > 1 else ""
    axes.set_title(f"Mixing: epoch {epoch}{part}, {order.algorithm}", loc="left")
    most = int(counts.max(initial=0))
    each = of_many(window, window, "step")
    axes.set_xlabel(f"step (windows of {each}, {short(most)} units of each looked at)")
    axes.xaxis.set_major_formatter(lambda value, _: short(value))
    axes.set_ylabel("% of the window's units")
    figure.legend(fontsize="small", ncols=5, loc="outside lower center", frameon=False)
    return figure
