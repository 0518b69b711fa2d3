"""Which steps of a run read a sample: by positions, without drawing any step."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from indexplan.ledger.history import History, Segment, Stretch
from indexplan.partition.ranks import share
from indexplan.partition.steps import Steps


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


def reads_in(history: History, found: list[Stretch], sample: int) -> Iterator[Read]:
    """Yield each read of a sample in some stretches."""
    for epoch, order, group, starts, repeats in found:
        if sample >= order.num_samples:  # of a source that joined later
            continue
        for position in order.locate_all(epoch, sample)[0].tolist():
            segment = group[max(0, bisect_right(starts, (epoch, position)) - 1)]
            if segment.start.unit <= (epoch, position) < segment.stop.unit:
                yield from _read_at(history, segment, epoch, position)
            if repeats:
                yield from _repeats_of(history, group, starts, epoch, position)


def _read_at(history: History, segment: Segment, epoch: int, position: int) -> Iterator[Read]:
    """Yield the read of a position by a segment, if it was not dropped."""
    held = history.walk(segment).holding(epoch, position)
    if held is not None:
        yield from _reads_of(history, segment, held[0], epoch, (held[1],), position)


def _repeats_of(
    history: History,
    group: list[Segment],
    starts: Sequence[tuple[int, int]],
    epoch: int,
    position: int,
) -> Iterator[Read]:
    """Yield the padded slots that read a position once more, at the end of its sub-epoch."""
    layout = history.plans[group[0].plan].layout
    sub_epoch = layout.partition.sub_epoch_of(epoch, position)
    first, stop = layout.partition.sub_epoch(epoch, sub_epoch)
    segment = group[max(0, bisect_right(starts, (epoch, stop - 1)) - 1)]
    held = segment.start.unit <= (epoch, stop - 1) < segment.stop.unit
    if held and history.plans[segment.plan].repeats:
        walk = history.walk(segment)
        if (found := walk.holding(epoch, stop - 1)) is not None:
            end = walk.parts[found[0]].steps.end
            again = range(position + stop - first, end, stop - first)
            yield from _reads_of(history, segment, found[0], epoch, again)


def _reads_of(
    history: History,
    segment: Segment,
    where: int,
    epoch: int,
    positions: Sequence[int],
    of_epoch: int | None = None,
) -> Iterator[Read]:
    """Yield the reads by a segment of some positions of a part of its line.

    They are one position, `of_epoch` in its own epoch, or padding.
    """
    walk, first = history.walk(segment), history.line_start(segment)
    steps, layout = walk.parts[where].steps, history.plans[segment.plan].layout
    for position in positions:
        found = walk.step_of(where, position)
        if found is not None and segment.step <= first + found[0] < segment.end:
            rank = _rank_of(layout.world_size, steps, found[1], position)
            if layout.balance is not None and of_epoch is not None:
                rank = int(walk.layout.found(epoch, np.array([of_epoch])).rank[0])
            yield Read(first + found[0], rank, epoch)


def _rank_of(world_size: int, steps: Steps, step: int, position: int) -> int:
    """Return the rank whose share of a step holds a position, without balance."""

    def start(rank: int) -> int:
        return share(steps, world_size, rank, step)[0]

    return bisect_right(range(world_size), position, key=start) - 1
