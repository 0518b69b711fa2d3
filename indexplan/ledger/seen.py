"""Which positions a run has read, and how often each of some samples."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from indexplan.ledger.history import History, Segment
from indexplan.orders.arguments import check_indices
from indexplan.orders.base import Int64

AT_ONCE = 2**20  # samples that are looked for at a time


def count_reads(history: History, segments: list[Segment], samples: ArrayLike) -> Int64:
    """Return how often some segments that follow each other read each of some samples.

    Raises
    ------
    IndexPlanError
        If a sample is not one of the dataset.
    """
    array = check_indices(samples, history.num_samples)
    parts = np.split(array.ravel(), range(AT_ONCE, array.size, AT_ONCE))
    counts = [_count(history, segments, part) for part in parts]
    return np.concatenate(counts).reshape(array.shape)


def _count(history: History, segments: list[Segment], samples: Int64) -> Int64:
    total = np.zeros(len(samples), np.int64)
    for epoch, order, group, *_ in history.stretches(segments):
        found = [each[:2] for segment in group for each in intervals(history, segment, epoch)]
        starts, stops = np.array(found, np.int64).reshape(-1, 2).T
        known = np.flatnonzero(samples < order.num_samples)  # others joined later
        which, positions = order.find(epoch, samples[known])
        # how many intervals hold a position: those that have begun, without those that are over
        begun = np.sort(starts).searchsorted(positions, "right")
        times = begun - np.sort(stops).searchsorted(positions, "right")
        total += np.bincount(known[which], times, len(samples)).astype(np.int64)
    return total


def intervals(history: History, segment: Segment, epoch: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the positions of an epoch that a segment reads: (start, stop, whether as padding)."""
    layout = history.plans[segment.plan].layout
    num_units = layout.order.num_units(epoch)
    policy = layout.partition.policy
    if policy.exact:  # every place between its ends
        start = segment.start.position if segment.start.epoch == epoch else 0
        stop = segment.stop.position if segment.stop.epoch == epoch else num_units
        yield start, stop, False
        return
    for part in history.parts(segment, epoch):
        steps = part.steps
        start, stop = steps.interval(part.first)[0], steps.interval(part.stop - 1)[1]
        valid = start + steps.valid(start, stop)
        yield start, valid, False
        if valid < stop:
            yield from ((*run[1:], True) for run in steps.positions(valid, stop))
