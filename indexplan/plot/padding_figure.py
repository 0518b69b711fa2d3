"""Padding: how much of a step's tokens is padding, if each bin is padded to its longest sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.errors import wrong
from indexplan.keywords import named
from indexplan.orders.strata import lengths_of
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.plan.totals import valid_positions
from indexplan.plot.drawing import evenly, first_of, of_many, short
from indexplan.plot.style import (
    BLUE,
    DARK,
    ORANGE,
    explain,
    heading,
    measuring,
    new_figure,
    panel_title,
    panels,
    root_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from indexplan.partition.steps import Steps

STEPS = 512  # at most this many are drawn
BINS = 2**16  # and at most as many as have this many bins, but at least one
LIMITS = ("max_length", "max_tokens")  # of a bin, in orders that have one


@named
def padding(
    plan: Plan,
    epoch: int | None = None,
    sub_epoch: int | None = None,
    *,
    lengths: Any = None,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw how much of each step is padding, and how full its bins are.

    Use it to see what batches by length, or packing, save on your lengths.

    Parameters
    ----------
    plan : Plan
        With an order of bins, such as `LengthGrouped`, `TokenBudget` or `Packed`.
    epoch, sub_epoch : int, optional
        Which steps; by default the first sub-epoch that is left to read.
    lengths : array_like of int, shape (num_samples,), optional
        The length of each sample; by default the order's own.
    figure : Figure or SubFigure, optional
        Your own, to draw into; empty, and with constrained layout. By default a new one.

    Returns
    -------
    matplotlib.figure.Figure
        For each of up to 512 steps, a point: the percentage of its tokens that are padding, if each
        bin is padded to its longest sample. The line is the same for random samples, in bins of as
        many. If the order has a limit of tokens for a bin, a second panel shows what percentage of
        it the samples of a step's bins fill, without padding.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, the order has no bins or has no lengths, there is another
        number of lengths than samples, or the sub-epoch is out of range or has no steps.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.Packed([1 + i % 50 for i in range(1000)], max_length=64)
    >>> figure = ip.plot.padding(ip.Plan(order, global_batch_size=8))
    """
    check_plan("plan", plan)
    layout = layout_of(plan)
    order: Any = plan.order
    inside = getattr(order, "known", (order,))[0]  # the order in a plan directory, or None
    if not order.deals_bins:
        cure = "pack them, or group them by length"
        raise wrong("an order", "one that deals bins, for this", order.algorithm, cure)
    found = getattr(inside, "lengths", None) if lengths is None else lengths
    if found is None:
        cure = "pass lengths=, the length of each sample"
        raise wrong("an order", "one with lengths, for this", order.algorithm, cure)
    column = lengths_of(found).array
    if len(column) != order.num_samples:
        rule = f"of {order.num_samples} samples"
        raise wrong("lengths", rule, len(column), "pass the length of each sample")
    epoch, sub_epoch = first_of(plan, epoch, sub_epoch)
    steps = layout.steps(epoch, sub_epoch)
    num_steps = steps.num_steps - steps.first_step
    if not num_steps:
        cure = "pass an epoch and sub_epoch with steps"
        raise wrong("a picture of padding", "of at least one step", 0, cure)
    most = max(1, min(STEPS, BINS // max(layout.partition.sizes)))
    shown = evenly(steps.first_step, steps.num_steps, most)
    limit = next((getattr(inside, name) for name in LIMITS if hasattr(inside, name)), None)
    rows = np.array([_of_step(plan, column, steps, step) for step in shown], float)
    tokens, padded, of_random, padded_random, bins = rows.T
    figure = new_figure(8, 3 if limit is None else 4.5, figure)
    found = panels(figure, 1 if limit is None else 2, 1, sharex=True)[:, 0]
    share = 100 * (1 - tokens.sum() / padded.sum())
    random = 100 * (1 - of_random.sum() / padded_random.sum())
    percent = 100 * (1 - tokens / padded)
    found[0].plot(shown, percent, "o", color=ORANGE, markersize=3, label="a step")
    found[0].axhline(random, color=DARK, linewidth=0.8, label="random samples")
    measuring(found[0].yaxis)
    found[0].set_ylim(0, 1.1 * max(percent.max(), random, 1))
    found[0].set_ylabel("% padding")
    panel_title(found[0], f"padded to the longest: {share:.1f}%; random samples: {random:.1f}%")
    if limit is not None:
        found[1].plot(shown, 100 * tokens / (bins * limit), "o", color=BLUE, markersize=3)
        measuring(found[1].yaxis)
        found[1].set_ylabel(f"% of {short(limit)}")
        fill = 100 * tokens.sum() / (bins.sum() * limit)
        panel_title(found[1], f"one after another: {fill:.2f}% of the limit of a bin")
    found[-1].set_xlabel(f"step ({of_many(len(shown), num_steps, 'step')})")
    figure.align_ylabels()
    explain(figure)
    part = f", sub-epoch {sub_epoch}" if plan.sub_epochs > 1 else ""
    title = f"Padding: epoch {epoch}{part}, {of_many(len(column), len(column), 'sample')}"
    heading(figure, title, _caption(limit is not None))
    return root_of(figure)


def _caption(limited: bool) -> str:
    """Return one sentence that says what to look for."""
    above = "The further the points lie below the line, the more padding the bins save"
    if not limited:
        return f"{above}."
    return f"{above}; those of the lower panel are how full bins are if nothing is padded."


def _of_step(plan: Plan, lengths: Any, steps: Steps, step: int) -> list[int]:
    """Return a step's tokens without and with padding, both for random samples, and its bins."""
    random, sums = np.random.default_rng(step), [0] * 5
    for where in valid_positions(steps, step):
        samples, offsets = plan.order.take(*where), plan.order.offsets(*where)
        counts, found = np.diff(offsets), []
        for some in (samples, random.integers(len(lengths), size=len(samples))):
            each = lengths[some].astype(np.int64)
            longest = np.maximum.reduceat(each, offsets[:-1])
            found += [int(each.sum()), int((longest * counts).sum())]
        sums = [a + b for a, b in zip(sums, [*found, len(counts)], strict=True)]
    return sums
