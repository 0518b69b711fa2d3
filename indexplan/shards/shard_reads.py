"""Which ranks read which shard when: what a node has to fetch next, and when it may drop it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexplan import kernels
from indexplan.errors import IndexPlanError, integer, invalid
from indexplan.keywords import named
from indexplan.orders.base import Int64
from indexplan.partition.ranks import cuts
from indexplan.partition.steps import Steps
from indexplan.plan.draw import deal_units, take
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.shards.guide import Table, table_of

if TYPE_CHECKING:
    from indexplan.shards.guide import Sized

FIRST_LOOK, LOOK = 2**12, 2**18  # units that are drawn at a time at first, and at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Reads:
    """The shards that some ranks read in some steps, in the order in which they need them.

    `reads` returns it.

    Parameters
    ----------
    shards : numpy.ndarray
        int64, shape (shards,): each shard once, sorted by first use; within a step, rank by rank.
    first_steps, last_steps : numpy.ndarray
        int64, shape (shards,): the first and the last of these steps that reads the shard.
    num_samples : numpy.ndarray
        int64, shape (shards,): how many of its samples are read, padding and repeats included.
    start_step, stop_step : int
        The result covers the steps [start_step, stop_step).

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Sequential(12), world_size=2, batch_size=2)
    >>> found = ip.reads(plan, [3, 3, 6], epoch=0, ranks=[1])
    >>> found.shards, found.first_steps, found.last_steps, found.num_samples
    (array([0, 1, 2]), array([0, 0, 1]), array([0, 0, 2]), array([1, 1, 4]))
    """

    shards: Int64
    first_steps: Int64
    last_steps: Int64
    num_samples: Int64
    start_step: int
    stop_step: int


@named
def reads(
    plan: Plan,
    shards: Sized,
    epoch: int,
    sub_epoch: int | None = None,
    *,
    ranks: Iterable[int] | None = None,
    start_step: int | None = None,
    stop_step: int | None = None,
    most: int | None = None,
) -> Reads:
    """Return which shards some ranks read in some steps: when first, when last, and how much.

    Use it to prefetch and evict shards. It costs as much as drawing the samples of these steps, and
    holds only a few of them in memory at a time. With `most`, it stops early; continue at the
    `stop_step` of the result.

    The result is about these steps only: a shard whose last step is near their end may be needed
    again soon after. Only a call up to the end of the sub-epoch knows.

    Parameters
    ----------
    plan : Plan
    shards : array_like of int, shape (num_shards,), Column, path, or None
        Samples in each shard, or an object with such an attribute `sizes`; None for an order that
        knows them (`ShardShuffle`). For many calls pass a Column: an array is hashed each
        time.
    epoch, sub_epoch : int
        sub_epoch may be left out if the plan has one per epoch.
    ranks : iterable of int, optional
        The ranks that read, such as range(8, 16) for those of a node. By default all.
    start_step, stop_step : int, optional
        By default, all unfinished steps.
    most : int, optional
        Stop after the step that brings the number of shards to this one, at least 1.

    Raises
    ------
    IndexPlanError
        If a number is out of range, there are no sizes, or they do not add up to the order's
        samples. If the plan's world_size is open.

    Examples
    --------
    What node 1 of 4 has to fetch first, when each epoch reads 1,000 shards in lanes:

    >>> import indexplan as ip
    >>> order = ip.ShardShuffle([512] * 1000, seed=1)
    >>> plan = ip.Plan(order, world_size=32, batch_size=32)
    >>> ahead = ip.reads(plan, None, epoch=0, ranks=range(8, 16), most=20)
    >>> len(ahead.shards), ahead.start_step, ahead.stop_step
    (24, 0, 2)
    """
    check_plan("plan", plan)
    layout = layout_of(plan)
    steps = layout.steps(epoch, sub_epoch)
    groups = _groups(plan, ranks)
    start, stop = layout.stretch(steps, start_step, stop_step)
    table = table_of(plan.order, shards)
    cure = "leave it out to look at all steps"
    most = table.num_shards + 1 if most is None else integer("most", most, 1, 2**63, cure)
    return _noted(table, _drawn(plan, steps, groups, start, stop), start, most)


def _noted(table: Table, drawn: Iterator[tuple[Int64, Int64]], start: int, most: int) -> Reads:
    room = min(table.num_shards, table.num_samples)
    slots = np.zeros(table.num_shards, np.int64)
    noted = [np.empty(room, np.int64) for _ in range(4)]
    step, met = start, 0
    for indices, ends in drawn:
        step, met = kernels.shard_reads.note_reads(
            *table, indices, ends, step, met, most, slots, *noted
        )
        if met >= most:
            break
    names = "shards", "first_steps", "last_steps", "num_samples"
    arrays = {name: each[:met].copy() for name, each in zip(names, noted, strict=True)}
    return Reads(**arrays, start_step=start, stop_step=step)


def _groups(plan: Plan, ranks: Iterable[int] | None) -> list[tuple[int, int]]:
    """Return some ranks as intervals [first, stop) of consecutive ranks."""
    layout = layout_of(plan)
    if ranks is None:
        return [(0, layout.world_size)]
    if isinstance(ranks, range) and ranks.step == 1 and ranks:  # without listing them
        return [(layout.rank(ranks[0]), layout.rank(ranks[-1]) + 1)]
    try:
        each = sorted({layout.rank(rank) for rank in ranks})
    except IndexPlanError:
        raise
    except Exception:  # TypeError, or whatever a user's class raises
        each = []
    if not each:
        raise invalid(
            "ranks", "at least one rank, such as range(8, 16)", ranks, "leave it out for all"
        )
    cut = [i for i in range(1, len(each)) if each[i] != each[i - 1] + 1]
    edges = zip([0, *cut], [*cut, len(each)], strict=True)
    return [(each[low], each[high - 1] + 1) for low, high in edges]


def drawn(
    plan: Plan, steps: Steps, edges: Sequence[int], start: int, stop: int, ahead: int = LOOK
) -> Iterator[tuple[int, Int64, Int64]]:
    """Yield what nodes read in some steps, a few steps at a time.

    Parameters
    ----------
    edges : sequence of int
        The first rank of each of some nodes that follow each other, and the end of the last one.
    start, stop : int
        The steps [start, stop).
    ahead : int
        About how many units are drawn at first; twice as many each time, up to 2**18.

    Yields
    ------
    tuple of int, numpy.ndarray, numpy.ndarray
        The first of these few steps; their samples, step by step and node by node; and where among
        them each node of each step ends.
    """
    layout = layout_of(plan)
    most = LOOK // 64 if plan.order.deals_bins else LOOK  # of bins, which hold many samples
    while start < stop:
        span = steps.span(start)
        num_ranks = edges[-1] - edges[0]
        each = span.length // span.num_steps * num_ranks // layout.world_size + 1
        until = min(stop, start + max(1, min(ahead, most) // each))
        ahead = min(2 * ahead, most)
        where = layout.runs(steps, edges[0], start, until, edges[-1])
        _, cut = cuts(steps, layout.world_size, edges, start, until)
        ends = np.cumsum(np.diff(np.stack(cut, axis=1), axis=1).ravel().astype(np.int64))
        if plan.order.deals_bins:
            units = deal_units(plan.order, where)
            yield start, units.samples, units.offsets[ends]
        else:
            yield start, take(plan.order, where), ends
        start = until


def _drawn(
    plan: Plan, steps: Steps, groups: list[tuple[int, int]], start: int, stop: int
) -> Iterator[tuple[Int64, Int64]]:
    """Yield the samples of some steps, a few steps at a time, and where each step ends."""
    if len(groups) == 1:
        few = drawn(plan, steps, groups[0], start, stop, FIRST_LOOK)
        yield from ((samples, ends) for _, samples, ends in few)
        return
    for step in range(start, stop):  # one at a time, as its samples are to be together
        few = (each for group in groups for each in drawn(plan, steps, group, step, step + 1))
        samples = np.concatenate([samples for _, samples, _ in few])
        yield samples, np.array([len(samples)])
