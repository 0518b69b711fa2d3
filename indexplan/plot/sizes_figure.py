"""Sizes: how large steps are over the run, and what padding bins need."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from indexplan.errors import invalid
from indexplan.keywords import named
from indexplan.orders.strata import lengths_of
from indexplan.partition.phases import Phase
from indexplan.partition.steps import Span, Steps
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.plan.totals import valid_positions
from indexplan.plot import drawing, style
from indexplan.seeds import EPOCH_STOP, check_epochs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUB_EPOCHS, PHASES, LINES = 1000, 300, 130  # at most this many are shown
STEPS, BINS = 256, 2**16  # whose padding is counted: steps, and bins of all of these


@named
def sizes(plan: Plan, epochs: Iterable[int] | None = None) -> Figure:
    """Draw how the size of steps and their padding change over the run.

    Use it to check a schedule of batch sizes before you train, and to see what batches by length,
    or packing, save on your lengths.

    Parameters
    ----------
    plan : Plan
        With a world_size, or a global_batch_size.
    epochs : iterable of int, optional
        The epochs; by default from the plan's start to one past the last phase's. Those before
        the start of a resumed plan are left out.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for the units of a step over all ranks, with lines between sub-epochs. If there
        are more than 1,000 sub-epochs, some of them are looked at, among them those where phases
        start. If the order has bins whose lengths are known, a second panel has a point for each of
        up to 256 steps: the percentage of its tokens that are padding, if each bin is padded to its
        longest sample. The line is the same for random samples, in bins of as many.

    Raises
    ------
    IndexPlanError
        If matplotlib is missing, there is no epoch, all are before the plan's start, or the plan
        has neither a world_size nor a global_batch_size.

    Examples
    --------
    >>> import indexplan as ip
    >>> phases = [ip.Phase(0, 32), ip.Phase((2, 0), 16)]
    >>> figure = ip.plot.sizes(ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=phases))
    """
    check_plan("plan", plan)
    layout = layout_of(plan)
    chosen = _default(plan) if epochs is None else _sorted(epochs)
    if not chosen:
        raise invalid("epochs", "at least one epoch", chosen, "leave it out")
    layout.steps(chosen[-1], plan.sub_epochs - 1)
    chosen = chosen[bisect_left(chosen, plan.start.epoch) :]
    column_of_lengths = _lengths(plan.order)
    padded = column_of_lengths is not None
    figure = style.new_figure(8, 2.4 + 1.8 * padded)
    heights = [2, *[1.5] * padded]
    column = style.panels(figure, len(heights), 1, sharex=True, height_ratios=heights)[:, 0]
    numbers, total = _numbers(plan, chosen)
    rows = _rows(plan, chosen, numbers)
    if column_of_lengths is not None:
        _padding(column[-1], plan, rows, column_of_lengths)
    if len(numbers) < total:
        rows = _joined(rows, chosen)
    units = [row.size for row in rows]
    # with caps, so that one sub-epoch among thousands can be seen
    starts, stops = [row.start for row in rows], [row.stop for row in rows]
    column[0].hlines(units, starts, stops, color=style.BLUE, linewidth=2.5, capstyle="projecting")
    column[0].set_ylim(0, 1.15 * max(units, default=1))
    column[0].set_ylabel("units of a step\n(mean, all ranks)")
    if not rows:
        style.nothing_here(column[0], "no steps here")
    for axes in column:
        _edges(axes, chosen, plan.sub_epochs)
    words = f"epoch, of {drawing.of_many(plan.sub_epochs, plan.sub_epochs, 'sub-epoch')} each"
    if len(numbers) < total:
        words += f"; {drawing.of_many(len(numbers), total, 'sub-epoch')} looked at"
    column[-1].set_xlabel(words)
    figure.align_ylabels()
    caption = "Where a line jumps, a phase starts: steps have another size from there on."
    style.heading(figure, "Sizes of steps", caption)
    return figure


class Row(NamedTuple):
    """A span of steps of one size: where it starts and stops, in epochs, and its phase."""

    start: float
    stop: float
    size: float
    phase: Phase
    steps: Steps
    span: Span


def _sorted(epochs: Iterable[int]) -> Sequence[int]:
    """Return epochs in rising order, each once; a range stays a range, however long it is."""
    if not isinstance(epochs, range):
        return sorted(set(check_epochs(epochs)))
    for end in epochs[:1], epochs[-1:]:
        check_epochs(end)
    return epochs if epochs.step > 0 else epochs[::-1]


def _default(plan: Plan) -> range:
    last, _ = _place(plan, layout_of(plan).phases[-1])
    start = plan.start.epoch
    return range(start, min(max(last, start) + 2, EPOCH_STOP))


def _place(plan: Plan, phase: Phase) -> tuple[int, int]:
    """Return the epoch and sub-epoch that a phase's place is in."""
    if not isinstance(phase.at, int):
        return phase.at
    layout = layout_of(plan)
    epoch, position = layout.partition.extent.holding(phase.at)
    return epoch, layout.partition.sub_epoch_of(epoch, position)


def _numbers(plan: Plan, epochs: Sequence[int]) -> tuple[list[int], int]:
    """Return which of the epochs' sub-epochs are looked at, by number, and how many there are."""
    layout = layout_of(plan)
    each, total = plan.sub_epochs, len(epochs) * plan.sub_epochs
    first = plan.start.sub_epoch if epochs[0] == plan.start.epoch else 0
    numbers = set(drawing.evenly(first, total, SUB_EPOCHS))
    for i in drawing.evenly(0, len(layout.phases), PHASES):
        epoch, sub_epoch = _place(plan, layout.phases[i])
        at = bisect_left(epochs, epoch)
        number = at * each
        if at < len(epochs) and epochs[at] == epoch:
            number += sub_epoch
        # the sub-epoch before, and where the phase starts: in that of its place, or in the next
        numbers.update(n for n in (number - 1, number, number + 1) if first <= n < total)
    return sorted(numbers), total - first


def _rows(plan: Plan, epochs: Sequence[int], numbers: list[int]) -> list[Row]:
    layout = layout_of(plan)
    rows = []
    for number in numbers:
        epoch, sub_epoch = epochs[number // plan.sub_epochs], number % plan.sub_epochs
        steps = layout.steps(epoch, sub_epoch)
        for span in steps.spans:
            start = epoch + span.start / steps.num_units
            stop = start + span.length / steps.num_units
            phase = layout.phases[span.phase]
            rows.append(Row(start, stop, span.length / span.num_steps, phase, steps, span))
    return rows


def _joined(rows: list[Row], epochs: Sequence[int]) -> list[Row]:
    """Return sampled rows, extended to the next row of the same phase.

    Phases follow each other, so what is between two rows of one phase belongs to that phase too.
    """
    if not rows:
        return rows
    joined = []
    for row, after in pairwise(rows):
        stop = row.stop
        if row.phase == after.phase:
            first, last = int(row.start), int(after.start)
            between = bisect_left(epochs, last) - bisect_left(epochs, first)
            stop = after.start if between == last - first else max(stop, float(first + 1))
        joined.append(row._replace(stop=stop))
    return [*joined, rows[-1]]


def _edges(axes: Any, epochs: Sequence[int], sub_epochs: int) -> None:
    """Draw where epochs and sub-epochs start, unless they are too many to tell apart."""
    if len(epochs) * sub_epochs <= LINES:
        for line in (epoch + s / sub_epochs for epoch in epochs for s in range(sub_epochs)):
            axes.axvline(line, color=style.LIGHT, linewidth=0.8, zorder=0)
    if len(epochs) <= LINES:
        for line in sorted({*epochs, *(epoch + 1 for epoch in epochs)}):
            axes.axvline(line, color=style.GREY, linewidth=0.8, zorder=0)


def _lengths(order: Any) -> Any:
    """Return the length of each sample, if an order of bins has them."""
    inside = getattr(order, "known", (order,))[0]  # the order in a plan directory, or None
    found = getattr(inside, "lengths", None) if order.deals_bins else None
    return None if found is None else lengths_of(found).array


def _padding(axes: Any, plan: Plan, rows: list[Row], lengths: Any) -> None:
    """Draw the padding of steps spread evenly over the rows, and that of random samples."""
    ends = [0, *accumulate(row.span.num_steps for row in rows)]
    largest = max((row.size for row in rows), default=1)
    most = max(2, min(STEPS, int(BINS / largest)))
    places, sums = [], []
    for number in drawing.evenly(0, ends[-1], most):
        at = bisect_right(ends, number) - 1
        row, step = rows[at], number - ends[at]
        places.append(row.start + (step + 0.5) / row.span.num_steps * (row.stop - row.start))
        sums.append(_of_step(plan, lengths, row.steps, row.span.step + step))
    axes.set_ylabel("% padding")
    style.measuring(axes.yaxis)
    if not sums:
        return
    tokens, padded, of_random, padded_random = np.array(sums, float).T
    percent = 100 * (1 - tokens / padded)
    share = 100 * (1 - tokens.sum() / padded.sum())
    random = 100 * (1 - of_random.sum() / padded_random.sum())
    axes.plot(places, percent, "o", color=style.ORANGE, markersize=3)
    axes.axhline(random, color=style.DARK, linewidth=0.8)
    axes.set_ylim(0, 1.1 * max(percent.max(), random, 1))
    style.panel_title(
        axes, f"padded to the longest: {share:.1f}%; random samples (line): {random:.1f}%"
    )


def _of_step(plan: Plan, lengths: Any, steps: Steps, step: int) -> list[int]:
    """Return a step's tokens without and with padding, and both for random samples."""
    random, sums = np.random.default_rng(step), [0] * 4
    for where in valid_positions(steps, step):
        samples, offsets = plan.order.take(*where), plan.order.offsets(*where)
        counts, found = np.diff(offsets), []
        for some in (samples, random.integers(len(lengths), size=len(samples))):
            each = lengths[some].astype(np.int64)
            longest = np.maximum.reduceat(each, offsets[:-1])
            found += [int(each.sum()), int((longest * counts).sum())]
        sums = [a + b for a, b in zip(sums, found, strict=True)]
    return sums
