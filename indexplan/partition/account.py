"""The partition added up: what becomes of an epoch's units, and how many each rank reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import gcd

import numpy as np

from indexplan.answers import Answer
from indexplan.errors import counted, invalid
from indexplan.partition.steps import Partition, steps_in

MOST_SHARES = 2**20  # most different shares of sub-epochs to add up: 100 MB


@dataclass(frozen=True, kw_only=True)
class Account(Answer):
    """What becomes of the units of an epoch, or of one sub-epoch; all counts are exact.

    `Plan.account` returns it. Always num_units == num_read + num_dropped + num_finished +
    num_excluded.

    Parameters
    ----------
    num_units : int
        Units of the epoch or sub-epoch, with those that the run leaves out; under "carry", a step
        of another one may read some of them.
    num_read, num_dropped, num_finished : int
        Units that are read, that no step reads, and that were read before the plan was resumed.
    num_excluded : int
        Units that the run leaves out by `Without`, also of an order inside `Repeat` or `Subset`; of
        bins, those that were left empty.
    num_padded : int
        Padded slots of batches, which repeat a unit; only under "pad".
    num_steps : int
        Steps that are left in the epoch.
    min_batch_size, max_batch_size : int or None
        Units in the smallest and the largest batch of any rank, padding included; 0 where a
        rank's batch is empty. None while world_size is open.
    min_per_rank, max_per_rank : int or None
        Units that the rank with the fewest, and the one with the most, reads in the epoch's steps,
        padding included. None while world_size is open.

    Examples
    --------
    >>> import indexplan as ip
    >>> account = ip.Plan(ip.Shuffle(103), world_size=4, batch_size=4).account(epoch=0)
    >>> account.num_read, account.num_dropped, account.min_per_rank, account.max_per_rank
    (103, 0, 25, 26)
    """

    num_units: int
    num_read: int
    num_dropped: int
    num_finished: int
    num_excluded: int
    num_padded: int
    num_steps: int
    min_batch_size: int | None
    max_batch_size: int | None
    min_per_rank: int | None
    max_per_rank: int | None

    def __str__(self) -> str:
        size = between(self.min_batch_size, self.max_batch_size)
        excluded = f", {self.num_excluded:,} excluded" if self.num_excluded else ""
        size = "an open number of" if size == "open" else size
        return (
            f"{counted(self.num_units, 'unit')}: {self.num_read:,} read, "
            f"{self.num_dropped:,} dropped, {self.num_finished:,} finished{excluded}; "
            f"{counted(self.num_steps, 'step')} of {size} unit{'' if size == '1' else 's'} per "
            f"rank, {self.num_padded:,} padded"
        )


def between(least: int | None, most: int | None) -> str:
    """Write the least and the largest of some numbers, or "open" if they are None."""
    if least is None or most is None:
        return "open"
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def account(partition: Partition, epoch: int, sub_epochs: range) -> Account:
    """Return the account of some sub-epochs of an epoch."""
    start, stop = sub_epochs.start, sub_epochs.stop
    excluded = partition.extent.missing(epoch, partition.sub_epochs, start, stop)
    if partition.policy.crosses and (start, stop) == (0, partition.sub_epochs):
        partition, stop = undivided(partition), 1
    units = finished = dropped = padded = steps = 0
    smallest, largest = [0], [0]
    intervals = []
    inside = (cut for cut in changes(partition, epoch) if start < cut < stop)
    # of sub-epochs that are laid out alike, only the first is computed
    for sub_epoch, until in pairwise([start, *inside, stop]):
        count = until - sub_epoch
        first, end = partition.sub_epoch(epoch, sub_epoch)
        units += count * (end - first)
        if partition.resume is not None and (epoch, sub_epoch) < partition.resume[:2]:
            finished += count * (end - first)
            continue
        found = steps_in(partition, epoch, sub_epoch)
        finished += count * (found.start - first)
        if partition.policy.leaves:
            dropped += count * (end - found.end)
        elif partition.policy.repeats:
            padded += count * (found.end - end)
        steps += count * (found.num_steps - found.first_step)
        for span in found.spans:
            smallest.append(span.length // span.num_steps)
            largest.append(-(-span.length // span.num_steps))
        if found.spans:
            edges = found.spans[0].start + found.origin, found.end + found.origin
            intervals.append((*edges, end - first, count))
    world_size = partition.world_size
    least, most = units_per_rank(world_size, intervals) if world_size else (None, None)
    return Account(
        num_units=units + excluded,
        num_read=units - dropped - finished,
        num_dropped=dropped,
        num_finished=finished,
        num_excluded=excluded,
        num_padded=padded,
        num_steps=steps,
        min_batch_size=min(smallest[1:], default=0) // world_size if world_size else None,
        max_batch_size=-(-max(largest) // world_size) if world_size else None,
        min_per_rank=least,
        max_per_rank=most,
    )


def changes(partition: Partition, epoch: int) -> list[int]:
    """Return the sub-epochs at which size or phase changes, from 0 to `partition.sub_epochs`.

    All sub-epochs between two of these numbers have the same size and phase. The sub-epoch of a
    resume, and one with a phase inside, stand alone. Under "carry", sub-epochs still differ in the
    steps that start in them.
    """
    found = {0, partition.sub_epochs, *partition.extent.changes(epoch, partition.sub_epochs)}
    for at in partition.ats:
        if not isinstance(at, int):
            found |= {at[1]} if at[0] == epoch else set()
        elif (held := partition.extent.holding(at))[0] == epoch and partition.extent.units(epoch):
            part = partition.sub_epoch_of(*held)
            found |= {part, part + 1}
    if partition.resume is not None and partition.resume.epoch == epoch:
        found |= {partition.resume.sub_epoch, partition.resume.sub_epoch + 1}
    return sorted(found)


def undivided(partition: Partition) -> Partition:
    """Return the partition without sub-epochs; under "carry" the steps are the same."""
    return replace(
        partition,
        ats=partition.places,
        sub_epochs=1,
        resume=partition.resume and partition.resume._replace(sub_epoch=0),
    )


def units_per_rank(world_size: int, intervals: list[tuple[int, int, int, int]]) -> tuple[int, int]:
    """Return how many positions of some intervals the rank with the fewest gets, and the most.

    (start, stop, apart, count) stands for `count` intervals of one length, which start `apart`
    positions after each other. The cost does not depend on the world size, as only those ranks are
    looked at whose number of positions differs from the previous rank's.

    Raises
    ------
    IndexPlanError
        If there are more than 2**20 such ranks.
    """
    everyone = num_shares = 0
    ranks = [np.zeros(1, np.int64)]
    changes = [np.zeros(1, np.int64)]  # how many more positions a rank gets than the one before it
    for start, stop, apart, count in intervals:
        if stop - start == apart:  # they leave no gap, and so are one interval
            stop, count = start + count * apart, 1  # noqa: PLW2901
        each, extra = divmod(stop - start, world_size)
        everyone += count * each
        if extra == 0:
            continue
        # `extra` ranks from start % world_size on get one more, in a ring. Of 4 ranks and intervals
        # of 6, 10 apart, these are 0 1 . ., then . . 2 3, and after `period` intervals they recur.
        period = world_size // gcd(apart, world_size)
        num = min(count, period)
        num_shares += num
        if num_shares > MOST_SHARES:
            what, rule = "the different shares of an account's sub-epochs", f"at most {MOST_SHARES}"
            cure = "use a global_batch_size that world_size divides, or ask for one sub_epoch"
            raise invalid(what, rule, num_shares, cure)
        number = np.arange(num)
        first = (start % world_size + apart % world_size * number) % world_size
        times = count // period + (number < count % period)
        last = first + extra
        wraps = last > world_size  # past the last rank, to rank 0 again
        ranks += [np.zeros(1, np.int64), first, last - world_size * wraps]
        changes += [times[wraps].sum(keepdims=True), times, -times]
    where, change = np.concatenate(ranks), np.concatenate(changes)
    order = np.argsort(where, kind="stable")
    where, more = where[order], np.cumsum(change[order])
    more = more[(np.diff(where, append=world_size) > 0) & (where < world_size)]
    return everyone + int(more.min()), everyone + int(more.max())
