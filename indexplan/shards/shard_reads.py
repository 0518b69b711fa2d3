"""Which ranks read which shard when: what a node has to fetch next, and when it may drop it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from indexplan import kernels
from indexplan.errors import invalid
from indexplan.keywords import named
from indexplan.orders.base import Int64
from indexplan.partition.ranks import cuts
from indexplan.partition.steps import Steps
from indexplan.plan.draw import deal_units, take
from indexplan.plan.plan import Plan, check_plan, layout_of
from indexplan.shards.guide import table_of

if TYPE_CHECKING:
    from indexplan.shards.guide import Sized

LOOK = 2**18  # units that are drawn at a time


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
    >>> found = ip.reads(plan, [3, 3, 6], epoch=0, ranks=range(1, 2))
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
    ranks: range | None = None,
    start_step: int | None = None,
    stop_step: int | None = None,
) -> Reads:
    """Return which shards some ranks read in some steps: when first, when last, and how much.

    Use it to prefetch and evict shards. It costs as much as drawing the samples of these steps, and
    holds only a few of them in memory at a time.

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
    ranks : range, optional
        The ranks that read, such as range(8, 16) for those of a node. By default all.
    start_step, stop_step : int, optional
        By default, all unfinished steps.

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
    >>> ahead = ip.reads(plan, None, epoch=0, ranks=range(8, 16), stop_step=2)
    >>> len(ahead.shards)
    24
    """
    check_plan("plan", plan)
    layout = layout_of(plan)
    steps = layout.steps(epoch, sub_epoch)
    edges = [0, layout.world_size]
    if ranks is not None:
        if not (isinstance(ranks, range) and ranks.step == 1 and ranks):
            rule = "a range of at least one rank, such as range(8, 16)"
            raise invalid("ranks", rule, ranks, "leave it out for all")
        edges = [layout.rank(ranks[0]), layout.rank(ranks[-1]) + 1]
    start, stop = layout.stretch(steps, start_step, stop_step)
    table = table_of(plan.order, shards)
    room, met = min(table.num_shards, table.num_samples + 1), 0
    slots = np.zeros(table.num_shards, np.int64)
    noted = [np.empty(room, np.int64) for _ in range(4)]
    for step, indices, ends in drawn(plan, steps, edges, start, stop):
        met = kernels.shard_reads.note_reads(*table, indices, ends, step, met, slots, *noted)
    names = "shards", "first_steps", "last_steps", "num_samples"
    arrays = {name: each[:met].copy() for name, each in zip(names, noted, strict=True)}
    return Reads(**arrays, start_step=start, stop_step=stop)


def drawn(
    plan: Plan, steps: Steps, edges: Sequence[int], start: int, stop: int
) -> Iterator[tuple[int, Int64, Int64]]:
    """Yield what nodes read in some steps, a few steps at a time.

    Parameters
    ----------
    edges : sequence of int
        The first rank of each of some nodes that follow each other, and the end of the last one.
    start, stop : int
        The steps [start, stop).

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
        until = min(stop, start + max(1, most // each))
        where = layout.runs(steps, edges[0], start, until, edges[-1])
        _, cut = cuts(steps, layout.world_size, edges, start, until)
        ends = np.cumsum(np.diff(np.stack(cut, axis=1), axis=1).ravel().astype(np.int64))
        if plan.order.deals_bins:
            units = deal_units(plan.order, where)
            yield start, units.samples, units.offsets[ends]
        else:
            yield start, take(plan.order, where), ends
        start = until
