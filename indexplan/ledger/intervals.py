"""Which positions of an epoch the segments of a run have read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from indexplan.ledger.history import History, Segment


class Interval(NamedTuple):
    """Positions [start, stop) of an epoch that were read; `repeats` if as padding, once more."""

    start: int
    stop: int
    repeats: bool = False


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
    for part in history.parts(segment, epoch):
        steps = part.steps
        start, stop = steps.interval(part.first)[0], steps.interval(part.stop - 1)[1]
        valid = start + steps.valid(start, stop)
        yield Interval(start, valid)
        if valid < stop:
            yield from (Interval(*run[1:], True) for run in steps.positions(valid, stop))
