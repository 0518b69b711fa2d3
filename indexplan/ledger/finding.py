"""Which steps of a run read a sample: by positions, without drawing any step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from indexplan.answers import html_of_fields
from indexplan.ledger.history import History, Segment, Stretch
from indexplan.ledger.walking import parts
from indexplan.partition.ranks import share
from indexplan.partition.steps import Steps, steps_in
from indexplan.plan.layout import Layout


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


def reads_in(history: History, found: list[Stretch], sample: int) -> Iterator[Read]:
    """Yield each read of a sample in some stretches."""
    for epoch, order, group, starts in found:
        if sample >= order.num_samples:  # of a source that joined later
            continue
        layouts = [history.plans[line].layout for line in {segment.plan for segment in group}]
        repeats = any(layout.partition.policy.repeats for layout in layouts)
        for position in order.locate_all(epoch, sample)[0].tolist():
            segment = group[max(0, bisect_right(starts, (epoch, position)) - 1)]
            if segment.start[::3] <= (epoch, position) < segment.stop[::3]:
                yield from _read_at(history, segment, epoch, position, (position,))
            if repeats:
                yield from _repeats_of(history, group, starts, epoch, position)


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
    first, stop = layout.partition.sub_epoch(num_units, epoch, sub_epoch)
    segment = group[max(0, bisect_right(starts, (epoch, stop - 1)) - 1)]
    partition = replace(history.plans[segment.plan].layout.partition, resume=segment.start)
    if partition.policy.repeats and segment.start[::3] <= (epoch, stop - 1):
        steps = steps_in(partition, num_units, epoch, sub_epoch)
        places = range(position + stop - first, steps.end, stop - first)
        yield from _read_at(history, segment, epoch, position, places)


def _read_at(
    history: History, segment: Segment, epoch: int, position: int, places: Sequence[int]
) -> Iterator[Read]:
    """Yield the reads of a position by a segment, at some places that count from its epoch."""
    layout = history.plans[segment.plan].layout
    partition, before = layout.partition, segment.step
    for part in parts(layout, segment.start, segment.steps):
        steps = part.steps
        if steps.epoch > epoch:
            return
        shift = 0
        if partition.policy.crosses:
            ends = (partition.before(steps.num_units, each) for each in (epoch, steps.epoch))
            shift = next(ends) - next(ends)
        elif steps.epoch < epoch or not steps.first <= position < steps.stop:
            before += part.num
            continue
        low, high = steps.interval(part.first)[0], steps.interval(part.stop - 1)[1]
        for place in places:
            if low <= place + shift < high:
                step = steps.after(place + shift + 1) - 1
                rank = _rank_of(layout.world_size, steps, step, place + shift)
                if layout.balance is not None and place == position:
                    rank = int(_continued(layout, segment).found(epoch, np.array([place])).rank[0])
                yield Read(before + step - part.first, rank, epoch)
        before += part.num


def _rank_of(world_size: int, steps: Steps, step: int, place: int) -> int:
    """Return the rank whose share of a step holds a place, without balance."""

    def start(rank: int) -> int:
        return share(steps, world_size, rank, step)[0]

    return bisect_right(range(world_size), place, key=start) - 1


def _continued(layout: Layout, segment: Segment) -> Layout:
    """Return the layout of a segment's plan, as it continues where the segment starts."""
    return replace(layout, partition=replace(layout.partition, resume=segment.start))
