"""The partition added up: what becomes of an epoch's units, and what each rank is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from indexplan.partition import Partition, layout


@dataclass(frozen=True, kw_only=True)
class Account:
    """What becomes of the units of an epoch, or of one sub-epoch; every count is exact.

    num_units == num_read + num_dropped + num_finished, always.

    Parameters
    ----------
    num_units : int
        Units of the epoch's own positions, whichever step reads them.
    num_read, num_dropped, num_finished : int
        Units that steps read, that no step reads, and that were read before the plan was resumed.
    num_padded : int
        Slots of batches that repeat a unit; only under "pad".
    num_steps : int
        Steps that are left in the epoch.
    min_batch_size, max_batch_size : int or None
        Units in the smallest and the largest batch of any rank, padding included; 0 where a
        rank's batch is empty. None while world_size is open.
    min_per_rank, max_per_rank : int or None
        Units that the epoch's steps give to the rank with the fewest and the most, padding
        included. None while world_size is open.

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
    num_padded: int
    num_steps: int
    min_batch_size: int | None
    max_batch_size: int | None
    min_per_rank: int | None
    max_per_rank: int | None


def account(partition: Partition, num_units: int, epoch: int, sub_epochs: Iterable[int]) -> Account:
    """Return the account of some sub-epochs of an epoch of `num_units` units."""
    units = finished = dropped = padded = steps = 0
    smallest, largest = [0], [0]
    intervals = []
    for sub_epoch in sub_epochs:
        first, stop = partition.sub_epoch(num_units, sub_epoch)
        units += stop - first
        if partition.resume is not None and (epoch, sub_epoch) < partition.resume[:2]:
            finished += stop - first
            continue
        found = layout(partition, num_units, epoch, sub_epoch)
        finished += found.start - first
        if partition.remainder == "drop":
            dropped += stop - found.end
        elif partition.remainder == "pad":
            padded += found.end - stop
        steps += found.num_steps - found.first_step
        for span in found.spans:
            smallest.append(span.length // span.num_steps)
            largest.append(-(-span.length // span.num_steps))
        if found.spans:
            begin = found.spans[0].start
            intervals.append((begin + found.origin, found.end + found.origin))
    world_size = partition.world_size
    least, most = units_per_rank(world_size, intervals) if world_size else (None, None)
    return Account(
        num_units=units,
        num_read=units - dropped - finished,
        num_dropped=dropped,
        num_finished=finished,
        num_padded=padded,
        num_steps=steps,
        min_batch_size=min(smallest[1:], default=0) // world_size if world_size else None,
        max_batch_size=-(-max(largest) // world_size) if world_size else None,
        min_per_rank=least,
        max_per_rank=most,
    )


def units_per_rank(world_size: int, intervals: list[tuple[int, int]]) -> tuple[int, int]:
    """Return how many places of some intervals the ranks with the fewest and the most get."""
    everyone = 0
    changes = np.zeros(world_size + 1, np.int64)
    for start, stop in intervals:
        each, rest = divmod(stop - start, world_size)
        everyone += each
        first = start % world_size
        changes[first] += 1
        changes[min(first + rest, world_size)] -= 1
        if first + rest > world_size:
            changes[0] += 1
            changes[first + rest - world_size] -= 1
    more = np.cumsum(changes[:-1])
    return everyone + int(more.min()), everyone + int(more.max())
