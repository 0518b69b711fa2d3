"""The indices that a rank reads: all at once, or in batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from indexplan.orders.base import Order, spans_of
from indexplan.orders.units import Units, joined
from indexplan.partition.ranks import Runs, batch_sizes
from indexplan.partition.steps import Int64, Steps
from indexplan.plan.layout import Layout

# About how many samples `draw` takes per kernel call: few at first, because the caller waits for
# the first batch, then twice as many each time, up to some 40 microseconds of work. For bins,
# each call costs more, so it goes up to 1 MiB.
FIRST_DRAW, DRAW_AHEAD, DRAW_BINS_AHEAD = 2**9, 2**14, 2**17


def take(order: Order, where: Runs) -> Int64:
    """Return the indices of some runs; int64, flat."""
    # runs of a partition need no check, which would take as long as a small batch itself
    arrays = [order.ip_take(*run) for run in where]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int64), *arrays])


def deal_offsets(order: Order, where: Runs) -> Int64:
    """Return where each unit of some runs starts among their samples, and where all end; int64."""
    sizes = [np.diff(order.ip_offsets(*run)) for run in where]
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))


def deal_units(order: Order, where: Runs) -> Units:
    """Return the units of some runs, with their samples, sizes and spans, from one walk."""
    cut = order.traits.cuts_samples
    units = joined((order.deal(*run) for run in where), cut=cut)
    if cut:
        spans_of(order, units)  # raises if the order does not say them
    return units


def draw(layout: Layout, steps: Steps, rank: int, start: int, stop: int) -> Iterator[Int64]:
    """Yield a rank's batches in the steps [start, stop), drawing many at a time."""
    for drawn, ends in stretches(layout, steps, rank, start, stop):
        if layout.order.deals_bins:
            units = deal_units(layout.order, drawn)
            indices, ends = units.samples, units.offsets[ends]  # noqa: PLW2901
        else:
            indices = take(layout.order, drawn)
        begin = 0
        for end in ends.tolist():
            yield indices[begin:end]
            begin = end


def stretches(
    layout: Layout, steps: Steps, rank: int, start: int, stop: int
) -> Iterator[tuple[Runs, Int64]]:
    """Yield the runs to draw together, and after how many of their units each batch ends."""
    world_size, ahead, most, unit = layout.world_size, FIRST_DRAW, DRAW_AHEAD, 1
    if layout.order.deals_bins and start < stop:  # estimate bin sizes from those of the first step
        offsets = deal_offsets(layout.order, layout.runs(steps, rank, start, start + 1))
        unit = max(1, int(offsets[-1]) // max(1, len(offsets) - 1))
        most = max(DRAW_AHEAD, min(DRAW_AHEAD * unit, DRAW_BINS_AHEAD))
    sharing = world_size if layout.balance is None else 1  # balance needs the units of all ranks
    while start < stop:
        span = steps.span(start)
        each = span.length // span.num_steps // sharing + 1
        until = min(stop, start + max(1, ahead // (each * unit)))
        ahead = min(2 * ahead, most)
        where = layout.runs(steps, rank, start, until)
        if layout.balance is None and len(where) == 1 and len(where[0][1]) == until - start:
            sizes = where[0][2] - where[0][1]  # a run for each step; with balance, for each unit
        else:
            sizes = batch_sizes(steps, world_size, rank, start, until)
        yield where, sizes.cumsum()
        start = until
