"""Which positions a rank reads, and which rank reads a position: the partition, then balance."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from indexplan.orders.arguments import as_int64
from indexplan.partition import ranks
from indexplan.partition.locate import Location, find
from indexplan.partition.ranks import Runs, share
from indexplan.partition.steps import Int64, Steps, steps_in
from indexplan.plan.balance import dealt
from indexplan.plan.bounds import rank_of, step_of, steps_of, world_of

if TYPE_CHECKING:
    from indexplan.plan.plan import Plan


def batch_of(plan: Plan, epoch: int, sub_epoch: int | None, step: int, rank: int) -> Runs:
    """Return the positions that a rank reads in a step, or raise `IndexPlanError`."""
    rank = rank_of(plan, rank)
    steps = steps_of(plan, epoch, sub_epoch)
    step = step_of(plan, steps, step)
    if plan.balance is None:
        return ranks.batch_runs(steps, world_of(plan), rank, step)
    return runs(plan, steps, rank, step, step + 1)


def runs(
    plan: Plan, steps: Steps, rank: int, start: int, stop: int, stop_rank: int | None = None
) -> Runs:
    """Return the positions that a rank reads in the steps [start, stop), in order of reading.

    Or those that the ranks [rank, stop_rank) read, step by step and rank by rank.
    """
    world_size = world_of(plan)
    if plan.balance is None:
        return ranks.runs(steps, world_size, rank, start, stop, stop_rank)
    last = rank if stop_rank is None else stop_rank - 1
    parts: list[tuple[int, Int64, Int64]] = []
    for step, (_, units) in enumerate(dealt(plan, steps, start, stop), start):
        begin, _ = steps.interval(step)
        low = share(steps, world_size, rank, step)[0] - begin
        high = share(steps, world_size, last, step)[1] - begin
        parts += _at(steps, begin, len(units), units[low:high])
        if high > len(units):  # padding, which stays where it is
            parts += ranks.grouped(steps.pieces(begin + max(low, len(units)), begin + high))
    return [_joined(epoch, list(group)) for epoch, group in groupby(parts, lambda part: part[0])]


def _at(steps: Steps, begin: int, num_valid: int, units: Int64) -> Runs:
    """Return the positions of some units of a step, whose first place is `begin`."""
    pieces = steps.pieces(begin, begin + num_valid)
    if len(pieces) == 1:
        epoch, start, _ = pieces[0]
        return [(epoch, start + units, start + units + 1)]
    epochs, starts, stops = np.array(pieces, np.int64).reshape(-1, 3).T
    ends = np.cumsum(stops - starts)
    which = np.searchsorted(ends, units, "right")
    positions = stops[which] - ends[which] + units
    found = epochs[which]
    cuts = [0, *(np.flatnonzero(np.diff(found)) + 1).tolist(), len(units)]
    return [
        (int(found[low]), positions[low:high], positions[low:high] + 1)
        for low, high in pairwise(cuts)
        if low < high
    ]


def _joined(epoch: int, parts: Runs) -> tuple[int, Int64, Int64]:
    starts, stops = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    return epoch, starts, stops


def found(plan: Plan, epoch: int, positions: Int64) -> Location[Int64]:
    """Return where a plan reads some positions of an epoch; int64, -1 where it does not."""
    world_of(plan)
    where = find(plan._partition, plan.order.num_units(epoch), epoch, positions)
    if plan.balance is None:
        return where
    read = np.flatnonzero(where.step >= 0)
    named = np.stack(where[:3])  # (epoch, sub_epoch, step) of each
    read = read[np.lexsort(named[::-1, read])]
    changes = np.flatnonzero((np.diff(named[:, read]) != 0).any(axis=0)) + 1
    for members in np.split(read, changes):
        if len(members):
            owner, sub_epoch, step = named[:, members[0]].tolist()
            steps = steps_in(plan._partition, plan.order.num_units(owner), owner, sub_epoch)
            ((cells, units),) = dealt(plan, steps, step, step + 1)
            places = np.empty_like(units)
            places[units] = np.arange(len(units))
            firsts = cells.starts[np.searchsorted(cells.ranks, where.rank[members])]
            now = places[firsts + where.slot[members]]
            where.rank[members] = cells.ranks[np.searchsorted(cells.starts, now, "right") - 1]
            firsts = cells.starts[np.searchsorted(cells.ranks, where.rank[members])]
            where.slot[members] = now - firsts
    return where


def first_read(plan: Plan, index: ArrayLike, epoch: int) -> Location[Any]:
    """Return what `Plan.locate` does."""
    positions = plan.order.locate(epoch, index)
    shape = positions.shape
    where = found(plan, epoch, positions.ravel())
    if plan.order.traits.reads == "any":  # the first read may be finished, or dropped
        again = np.flatnonzero((where.step < 0) & (positions.ravel() >= 0))
        every, offsets = all_reads(plan, as_int64("index", index).ravel()[again], epoch)
        first = np.where(offsets[1:] > offsets[:-1], offsets[:-1], len(every.epoch))
        for part, of_all in zip(where, every, strict=True):
            part[again] = np.append(of_all, -1)[first]
    if not shape:
        return Location(*(int(part[0]) for part in where))
    return Location(*(part.reshape(shape) for part in where))


def all_reads(plan: Plan, index: ArrayLike, epoch: int) -> tuple[Location[Int64], Int64]:
    """Return what `Plan.locate_all` does."""
    positions, offsets = plan.order.locate_all(epoch, index)
    where = found(plan, epoch, positions)
    read = where.step >= 0
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(read)])
    return Location(*(part[read] for part in where)), kept[offsets]
