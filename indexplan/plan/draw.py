"""The indices that a rank reads: all at once, or in batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from indexplan.orders.base import Order, spans_of
from indexplan.orders.units import Units, cut_runs, joined
from indexplan.partition.ranks import Runs, shares
from indexplan.partition.steps import Int64, Steps
from indexplan.plan.layout import Layout

# About how many samples `draw` takes per kernel call: few at first, because the caller waits for
# the first batch, then twice as many each time, up to some 40 microseconds of work. For bins,
# each call costs more, so it goes up to 1 MiB.
FIRST_DRAW, DRAW_AHEAD, DRAW_BINS_AHEAD = 2**9, 2**14, 2**17
PER_THREAD = 2**17  # units that a thread takes at a time: some 200 microseconds of work


def take(order: Order, where: Runs) -> Int64:
    """Return the indices of some runs; int64, flat."""
    # runs of a partition need no check, which would take as long as a small batch itself
    arrays = [order.ip_take(*run) for run in where]
    return arrays[0] if len(arrays) == 1 else np.concatenate([np.empty(0, np.int64), *arrays])


def take_in_threads(order: Order, where: Runs, num_threads: int) -> Int64:
    """Return what `take` does, computed by several threads.

    Orders of bins use only this thread, because nobody knows beforehand where their units start.
    """
    if order.deals_bins:
        return take(order, where)
    out = np.empty(sum(int((stops - starts).sum()) for _, starts, stops in where), np.int64)
    fill_in_threads(order, where, num_threads, out)
    return out


def fill_in_threads(order: Order, where: Runs, num_threads: int, out: Int64) -> None:
    """Write the indices of some runs in several threads, as kernels run without the GIL."""
    tasks: list[tuple[Any, ...]] = []
    total = 0
    for epoch, starts, stops in where:
        ends = np.cumsum(stops - starts)
        count = int(ends[-1]) if len(ends) else 0
        for done in range(0, count, PER_THREAD):
            until = min(count, done + PER_THREAD)
            tasks.append((epoch, starts, stops, ends, done, until, total))
        total += count
    waiting, lock = iter(tasks), threading.Lock()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            while not errors:
                with lock:
                    task = next(waiting, None)
                if task is None:
                    return
                epoch, starts, stops, ends, done, until, begin = task
                part = cut_runs(starts, stops, ends, done, until)
                order.fill(epoch, *part, out[begin + done : begin + until])
        except BaseException as error:
            errors.append(error)

    # This thread works too, and the others end by themselves. If it only waited for a pool of two,
    # 2**21 indices would take 2.9 ms instead of 2.1; one thread takes 3.5.
    others: list[threading.Thread] = []
    with suppress(RuntimeError):  # no more threads can be started: fewer do the same work
        for _ in range(num_threads - 1):
            other = threading.Thread(target=work)
            other.start()
            others.append(other)
    work()
    for other in others:
        other.join()
    if errors:
        raise errors[0]


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
        _, starts, stops = shares(steps, world_size, rank, start, until)
        ends = np.cumsum((stops - starts).astype(np.int64))
        yield layout.runs(steps, rank, start, until), ends
        start = until
