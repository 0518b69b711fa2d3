"""Mixing: how evenly each window of steps reads from the four quarters of a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import IndexPlanError
from indexplan.keywords import named
from indexplan.orders.base import Order
from indexplan.partition.steps import Steps
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.plot import drawing, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WINDOWS, UNITS = 64, 2048  # at most this many windows, and units looked at in each
QUARTERS = ("first quarter", "second quarter", "third quarter", "last quarter")
OF_VALUES = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
# Of 100 windows of a full shuffle, 95 are between these times as uneven as they are on average: the
# square roots of a third of chi-squared's quantiles at 2.5% and 97.5%, with 3 degrees of freedom
# (K. Pearson, On the criterion that a given system of deviations..., 1900).
USUAL = (0.26820, 1.76526)
TWO_SIDED = 1.95996  # deviations of a normal distribution that hold 95%
LEAST = 0.05  # windows that are more even are drawn at this value, as the axis has no zero


@named
def mixing(
    plan: Plan,
    epoch: int | None = None,
    sub_epoch: int | None = None,
    *,
    values: Any = None,
) -> Figure:
    """Draw how well a sub-epoch is mixed: how much each window of steps reads of each quarter.

    Use it for orders that shuffle within blocks or shards, to compare them with a full shuffle. The
    quarters are those of the dataset, by index or, for a curriculum or a sorted order, by `values`.

    Parameters
    ----------
    plan : Plan
        With a world_size, or a global_batch_size; its order must be one of single samples.
    epoch, sub_epoch : int, optional
        Which steps; by default the first sub-epoch that is left to read.
    values : array_like of numbers, shape (num_samples,), or path of a .npy file, optional
        A number of each sample, such as its length or its score: the quarters are then those of
        the samples sorted by it, equal ones by index.

    Returns
    -------
    matplotlib.figure.Figure
        Above, how uneven the shares of the four quarters are in up to 64 windows, of as many steps
        as read some 2,048 units: the root of the
        sum of squared differences from even shares, divided by a full shuffle's average. Below, the
        shares. The grey bands hold 95 of 100 windows of a full shuffle; the caption says how many
        of these shares they hold.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order has bins, a number is out of range, or `values` are not
        one finite number for each sample.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.BlockShuffle(100_000, block_size=1000, window=4)
    >>> figure = ip.plot.mixing(ip.Plan(order, world_size=4, batch_size=64))
    """
    check_plan("plan", plan)
    figure = style.new_figure(8, 4.2)
    order = plan.order
    if order.deals_bins:
        raise IndexPlanError(
            "mixing",
            "needs an order of single samples",
            order.algorithm,
            "plot the reading instead",
        )
    epoch, sub_epoch = drawing.first_of(plan, epoch, sub_epoch)
    steps = layout_of(plan).steps(epoch, sub_epoch)
    num_steps = steps.num_steps - steps.first_step
    # what the optimizer sees in a few steps: wider windows would look better mixed
    window = max(1, min(num_steps, UNITS * num_steps // max(1, steps.end - steps.start)))
    num_windows = -(-num_steps // window)
    starts = steps.first_step + window * np.array(drawing.evenly(0, num_windows, WINDOWS), np.int64)
    quarters = _quarters(plan, values)
    shares, counts = _shares(order, steps, starts, window, quarters)
    due = np.diff(_bounds(order.num_samples)) / order.num_samples
    deviations = _deviations(order.num_samples, counts)
    low, high = due - TWO_SIDED * deviations, due + TWO_SIDED * deviations
    inside = (shares > low - 1e-12) & (shares < high + 1e-12)
    found, expected = ((each**2).sum(axis=1) for each in (shares - due, deviations))
    uneven = np.sqrt(np.divide(found, expected, out=np.ones(len(found)), where=expected > 0))
    above, below = style.panels(figure, 2, 1, sharex=True, height_ratios=(3, 2))[:, 0]
    names = QUARTERS if values is None else OF_VALUES
    edges = np.append(starts, steps.num_steps)
    if len(starts):
        above.axhspan(*USUAL, color=style.BAND, linewidth=0)
        below.stairs(
            100 * high.max(axis=1),
            edges,
            baseline=100 * low.min(axis=1),
            fill=True,
            color=style.BAND,
        ).set_label("95% of a full shuffle's")
        above.plot(starts, np.maximum(uneven, LEAST), "o", color=style.BLUE, markersize=3.5)
        for i, (name, color) in enumerate(zip(names, style.COLORS, strict=False)):
            below.plot(starts, 100 * shares[:, i], "o", color=color, markersize=2.5, label=name)
        lowest, highest = 100 * min(low.min(), shares.min()), 100 * max(high.max(), shares.max())
        room = max(1, 0.08 * (highest - lowest))
        below.set_ylim(max(-2, lowest - room), min(102, highest + room))
        style.explain(figure, columns=5)
    else:
        for axes in (above, below):
            style.nothing_here(axes, "no steps here")
    above.axhline(1, color=style.DARK, linewidth=0.8)
    above.set_yscale("log")
    above.set_yticks([0.1, 1, 10, 100], labels=["0.1", "1", "10", "100"])
    above.set_ylim(LEAST / 1.2, 120)  # the same in every picture, so that two can be compared
    above.minorticks_off()
    above.set_ylabel("how uneven\n(1: as a full shuffle)")
    style.measuring(below.yaxis, 4)
    below.set_ylabel("% of a window")
    each = drawing.of_many(window, window, "step")
    most = drawing.short(int(counts.max(initial=0)))
    windows = drawing.of_many(len(starts), num_windows, "window")
    below.set_xlabel(f"step ({windows} of {each}, {most} units of each looked at)")
    figure.align_ylabels()
    part = f", sub-epoch {steps.sub_epoch}" if plan.sub_epochs > 1 else ""
    style.heading(
        figure, f"Mixing: epoch {epoch}{part}, {order.algorithm}", _caption(uneven, inside)
    )
    return figure


def _caption(uneven: NDArray[np.float64], inside: NDArray[np.bool_]) -> str:
    """Return one sentence that says what to look for."""
    if not len(uneven):
        return "There are no steps, so there is nothing to mix."
    return (
        f"A window is typically {np.median(uneven):.2g} times as uneven as one of a full shuffle; "
        f"{100 * inside.mean():.0f}% of the shares below lie in the grey band, where 95% of a full "
        "shuffle's do."
    )


def _deviations(num_samples: int, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the standard deviations of a full shuffle's shares; shape (windows, 4).

    Its counts are multivariate hypergeometric (W. Feller, An Introduction to Probability Theory and
    Its Applications, volume 1, II.6), and certain in a window of the whole dataset.
    """
    due = np.diff(_bounds(num_samples)) / num_samples
    n = np.maximum(counts, 1)[:, None]
    found: NDArray[np.float64] = np.sqrt(
        due * (1 - due) / n * (num_samples - n) / max(1, num_samples - 1)
    )
    return found


def _bounds(num_samples: int) -> NDArray[np.int64]:
    """Return where each quarter of the dataset starts, and the end; int64, shape (5,)."""
    return np.array([-(-num_samples * i // 4) for i in range(5)], np.int64)


def _quarters(plan: Plan, values: Any) -> NDArray[np.int8] | None:
    """Return the quarter of each sample by its value; None where the index tells."""
    if values is None:
        return None
    column, bounds = drawing.values_of(plan, values), _bounds(plan.order.num_samples)
    found, each = np.empty(len(column), np.int8), np.arange(4, dtype=np.int8)
    found[np.argsort(column, kind="stable")] = np.repeat(each, np.diff(bounds))
    return found


def _shares(
    order: Order,
    steps: Steps,
    starts: NDArray[np.int64],
    window: int,
    of_sample: NDArray[np.int8] | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return each quarter's share in each window, shape (windows, 4), and how many were seen."""
    shares, counts = np.zeros((len(starts), 4)), np.zeros(len(starts), np.int64)
    inner = _bounds(order.num_samples)[1:4]
    for i, start in enumerate(starts.tolist()):
        last = min(start + window, steps.num_steps) - 1
        low, high = steps.interval(start)[0], min(steps.interval(last)[1], steps.stop)
        indices = order.take(steps.epoch, drawing.evenly(low, high, UNITS))
        counts[i] = len(indices)
        if of_sample is None:
            quarters = np.searchsorted(inner, indices, side="right")
        else:
            quarters = of_sample[indices].astype(np.int64)
        shares[i] = np.bincount(quarters, minlength=4) / max(1, len(indices))
    return shares, counts
