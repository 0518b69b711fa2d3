"""Mixing: how evenly the quarters of a dataset are read, window of steps by window of steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import IndexPlanError, integer
from indexplan.orders.base import Order
from indexplan.partition.steps import Steps
from indexplan.plan.bounds import steps_of
from indexplan.plan.plan import Plan, check_plan
from indexplan.plot.drawing import BLUE, GREY, new_figure, of_many, sample, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOWS, UNITS = 64, 2048  # at most so many windows, and units looked at in each
BAND = "#c0c0c0"  # it is narrow: the grey of other pictures would be too light
QUARTERS = ("first quarter", "second quarter", "third quarter", "last quarter")


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
        Steps in a window; by default as many as read some 2,048 units, at least one: what the
        optimizer sees in a few steps. Wider windows look better mixed.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each quarter: its share in up to 64 windows, and the band that 95 of 100
        windows of a perfect shuffle lie in. The title says how many lie in it.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order deals bins, or a number is out of range.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.BlockShuffle(100_000, block_size=1000, window=4)
    >>> figure = ip.plot.mixing(ip.Plan(order, world_size=4, batch_size=64))
    """
    check_plan("plan", plan)
    figure = new_figure(8, 4)
    order = plan.order
    if order.deals_bins:
        rule = "mixing needs an order of single samples"
        raise IndexPlanError(f"{rule}; got {order.algorithm}; plot the reading instead")
    steps = steps_of(plan, epoch, sub_epoch if sub_epoch is not None else 0)
    num_steps = steps.num_steps - steps.first_step
    if window is None:
        window = max(1, min(num_steps, UNITS * num_steps // max(1, steps.end - steps.start)))
    window = integer("window", window, 1, 2**63, "pass how many steps are looked at together")
    num_windows = -(-num_steps // window)
    starts = steps.first_step + window * sample(0, num_windows, WINDOWS)
    shares, counts = _shares(order, steps, starts, window)
    due = np.diff(_bounds(order.num_samples)) / order.num_samples
    # a perfect shuffle draws them without putting back, so its shares are hypergeometric
    rest = 1 - counts / order.num_samples
    band = 1.96 * np.sqrt(np.outer(rest / np.maximum(counts, 1), due * (1 - due)))
    inside = np.abs(shares - due) <= band + 1e-12
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    edges = np.append(starts, steps.num_steps)
    for i, (axes, name) in enumerate(zip(panels.flat, QUARTERS, strict=True)):
        axes.set_title(name, loc="left", fontsize="small")
        if not len(starts):
            axes.text(0.5, 0.5, "no steps here", transform=axes.transAxes, ha="center")
            continue
        low, high = (
            np.append(edge, edge[-1]) for edge in (due[i] - band[:, i], due[i] + band[:, i])
        )
        axes.fill_between(edges, 100 * low, 100 * high, step="post", color=BAND, linewidth=0)
        axes.axhline(100 * due[i], color=GREY, linewidth=0.8)
        axes.plot(starts, 100 * shares[:, i], "o", color=BLUE, markersize=3.5, clip_on=False)
    panels[0, 0].set_ylim(0, 100)  # the same in every picture, so that two can be compared
    panels[0, 0].set_yticks([0, 25, 50, 75, 100])
    panels[0, 0].xaxis.get_major_locator().set_params(nbins=5, integer=True)
    if steps.first_step < num_steps:  # else short numbers may be the same
        panels[0, 0].xaxis.set_major_formatter(lambda value, _: short(value))
    part = f", sub-epoch {steps.sub_epoch}" if plan.sub_epochs > 1 else ""
    percent = f"{100 * inside.mean():.0f}%" if inside.size else "none"
    figure.suptitle(
        f"Mixing: epoch {epoch}{part}, {order.algorithm}; {percent} of the points in the grey "
        "band, of a perfect shuffle 95%",
        x=0.01,
        ha="left",
        fontsize="medium",
    )
    each = of_many(window, window, "step")
    most = short(int(counts.max(initial=0)))
    windows = of_many(len(starts), num_windows, "window")
    figure.supxlabel(f"step ({windows} of {each}, {most} units of each looked at)", fontsize=10)
    figure.supylabel("% of a window's units", fontsize=10)
    return figure


def _bounds(num_samples: int) -> NDArray[np.int64]:
    """Return where each quarter of the dataset starts, and the end; int64, shape (5,)."""
    return np.array([-(-num_samples * i // 4) for i in range(5)], np.int64)


def _shares(
    order: Order, steps: Steps, starts: NDArray[np.int64], window: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the share of each quarter in each window, (windows, 4), and the units looked at."""
    shares, counts = np.zeros((len(starts), 4)), np.zeros(len(starts), np.int64)
    inner = _bounds(order.num_samples)[1:4]
    for i, start in enumerate(starts.tolist()):
        last = min(start + window, steps.num_steps) - 1
        low, high = steps.interval(start)[0], min(steps.interval(last)[1], steps.stop)
        indices = order.take(steps.epoch, sample(low, high, UNITS))
        counts[i] = len(indices)
        quarters = np.searchsorted(inner, indices, side="right")
        shares[i] = np.bincount(quarters, minlength=4) / max(1, len(indices))
    return shares, counts
