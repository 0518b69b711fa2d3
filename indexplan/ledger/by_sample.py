"""Which steps of a run read a sample: by positions, so that no step is drawn."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from indexplan.answers import html_of_fields
from indexplan.ledger.history import History, Segment, Stretch
from indexplan.ledger.walking import parts
from indexplan.orders.arguments import check_indices
from indexplan.orders.base import Int64
from indexplan.partition.locate import find_place
from indexplan.partition.steps import steps_in
from indexplan.plan.layout import Layout

AT_ONCE = 2**20  # samples that are looked for at a time


class Read(NamedTuple):
    """One read of a sample: the step of the run, the rank, the order's epoch; whether it is void.

    A void read was undone by a return to a checkpoint.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
    >>> ledger = ip.Ledger("read.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=0))
    >>> ledger.reads(9)
    [Read(step=2, rank=1, epoch=0, void=False)]
    """

    step: int
    rank: int
    epoch: int
    void: bool = False

    def _repr_html_(self) -> str:
        return html_of_fields(self)


class Interval(NamedTuple):
    """Positions [start, stop) of an epoch that were read; `repeats` if as padding, once more."""

    start: int
    stop: int
    repeats: bool = False


def reads_in(history: History, found: list[Stretch], sample: int) -> Iterator[Read]:
    """Yield each read of a sample in some stretches."""
    for epoch, order, group, starts in found:
        if sample >= order.num_samples:  # of a source that joined later
            continue
        for position in order.locate_all(epoch, sample)[0].tolist():
            segment = group[max(0, bisect_right(starts, (epoch, position)) - 1)]
            yield from _read_at(history, segment, epoch, position)
            if history.plans[segment.plan].layout.partition.policy.repeats:
                yield from _repeats_of(history, group, starts, epoch, position)


def _read_at(history: History, segment: Segment, epoch: int, position: int) -> Iterator[Read]:
    if not segment.start[::3] <= (epoch, position) < segment.stop[::3]:
        return
    layout = _continued(history, segment)
    where = layout.found(epoch, np.array([position]))
    owner, sub_epoch, step, rank = (int(part[0]) for part in where[:4])
    if step < 0:  # dropped
        return
    number = _step_of_run(layout, segment, (owner, sub_epoch), step)
    if number is not None:
        yield Read(number, rank, epoch)


def _repeats_of(
    history: History,
    group: list[Segment],
    starts: Sequence[tuple[int, int]],
    epoch: int,
    position: int,
) -> Iterator[Read]:
    """Yield the padded slots that read a position once more, at the end of its sub-epoch."""
    layout = history.plans[group[0].plan].layout
    num_units = layout.order.num_units(epoch)
    sub_epoch = layout.partition.sub_epoch_of(num_units, epoch, position)
    _, stop = layout.partition.sub_epoch(num_units, epoch, sub_epoch)
    segment = group[max(0, bisect_right(starts, (epoch, stop - 1)) - 1)]
    layout = _continued(history, segment)
    if not layout.partition.policy.repeats or (epoch, stop - 1) < segment.start[::3]:
        return
    steps = steps_in(layout.partition, num_units, epoch, sub_epoch)
    period = steps.stop - steps.first
    for place in range(position + period, steps.end, period):
        step, rank, _ = find_place(steps, layout.world_size, place)
        number = _step_of_run(layout, segment, (epoch, sub_epoch), step)
        if number is not None:
            yield Read(number, rank, epoch)


def _continued(history: History, segment: Segment) -> Layout:
    """Return the layout of a segment's plan, as it continues where the segment starts."""
    layout = history.plans[segment.plan].layout
    return replace(layout, partition=replace(layout.partition, resume=segment.start))


def _step_of_run(layout: Layout, segment: Segment, where: tuple[int, int], step: int) -> int | None:
    """Return the run's step of a step of a segment's plan; None if the segment has it not."""
    before = segment.step
    for part in parts(layout, segment.start, segment.steps):
        if part.where == where:
            return before + step - part.first if part.first <= step < part.stop else None
        before += part.num
    return None


def intervals(history: History, segment: Segment, epoch: int) -> Iterator[Interval]:
    """Yield the positions of an epoch that a segment reads, in order of reading."""
    layout = history.plans[segment.plan].layout
    num_units = layout.order.num_units(epoch)
    policy = layout.partition.policy
    if policy.exact:  # every place between its ends
        start = segment.start.position if segment.start.epoch == epoch else 0
        stop = segment.stop.position if segment.stop.epoch == epoch else num_units
        yield Interval(start, stop)
        return
    for part in parts(layout, segment.start, segment.steps):
        if part.steps.epoch == epoch:
            steps = part.steps
            start, stop = steps.interval(part.first)[0], steps.interval(part.stop - 1)[1]
            valid = start + steps.valid(start, stop)
            yield Interval(start, valid)
            if valid < stop:
                yield from (Interval(*run[1:], True) for run in steps.positions(valid, stop))


def merged(found: Iterator[Interval]) -> tuple[list[Interval], list[Interval]]:
    """Return intervals that rise, neighbours joined, and those that repeat."""
    once: list[Interval] = []
    again: list[Interval] = []
    for each in found:
        if each.repeats:
            again.append(each)
        elif once and once[-1].stop == each.start:
            once[-1] = Interval(once[-1].start, each.stop)
        elif each.start < each.stop:
            once.append(each)
    return once, again


def count_reads(history: History, segments: list[Segment], samples: Int64) -> Int64:
    """Return how often some segments that follow each other read each of some samples."""
    total = np.zeros(len(samples), np.int64)
    for epoch, order, group, _ in history.stretches(segments):
        once, again = merged(
            each for segment in group for each in intervals(history, segment, epoch)
        )
        there = np.flatnonzero(samples < order.num_samples)  # others joined later
        which, positions = order.find(epoch, samples[there])
        times = np.zeros(len(positions), np.int64)
        if once:
            starts, stops = np.array([each[:2] for each in once], np.int64).T
            held = starts.searchsorted(positions, "right") - 1
            times += (held >= 0) & (positions < stops[np.maximum(held, 0)])
        for start, stop, _ in again:
            times += (positions >= start) & (positions < stop)
        total += np.bincount(there[which], times, len(samples)).astype(np.int64)
    return total


class Seen:
    """The samples that a run had read before one of its steps, in memory that stays the same.

    `Ledger.seen` returns it.

    Parameters
    ----------
    history : History
        What the lines of the ledger add up to.
    step : int
        The run's step.
    num_samples : int
        Samples of the dataset.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(10), world_size=2, batch_size=2)
    >>> ledger = ip.Ledger("run.ledger")
    >>> ledger.record(plan, plan.cursor(epoch=1, step=1))
    >>> seen = ledger.seen(ledger.step)
    >>> seen.contains([0, 7]), seen.count([0, 7])
    (array([ True,  True]), array([2, 1]))
    """

    def __init__(self, history: History, step: int, num_samples: int) -> None:
        self.step = step
        self._history, self._num_samples = history, num_samples

    def contains(self, samples: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each of some samples was read: bool, the shape of `samples`."""
        return self.count(samples) > 0

    def count(self, samples: ArrayLike) -> Int64:
        """Return how often each of some samples was read: int64, the shape of `samples`.

        Padded repeats count. The cost is that of a `locate` in each epoch.

        Raises
        ------
        IndexPlanError
            If a sample is not one of the dataset.
        """
        array = check_indices(samples, self._num_samples)
        segments = self._history.before(self.step)
        counts = [
            count_reads(self._history, segments, part)
            for part in np.split(array.ravel(), range(AT_ONCE, array.size, AT_ONCE))
        ]
        return np.concatenate(counts).reshape(array.shape)

    def __repr__(self) -> str:
        return f"Seen(step={self.step})"
