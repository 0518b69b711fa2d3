"""The inverse of the partition: which (epoch, sub_epoch, step, rank) reads a position?"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from indexplan.partition.steps import Int64, Partition, Steps, steps_in
from indexplan.parts import Extent, part_of

if TYPE_CHECKING:
    import typing_extensions

    T = typing_extensions.TypeVar("T", default=Any)
else:
    T = TypeVar("T")  # with defaults from Python 3.13 on


class Location(NamedTuple, Generic[T]):
    """Where a plan reads a sample: (epoch, sub_epoch, step, rank, slot); all -1 if nowhere.

    Each is an int, or an int64 array; all arrays have the same shape. `slot` is the place of
    the sample's unit in the rank's batch.

    Examples
    --------
    >>> import indexplan as ip
    >>> ip.Plan(ip.Sequential(10), world_size=2, batch_size=2).locate(7, epoch=0)
    Location(epoch=0, sub_epoch=0, step=2, rank=0, slot=0)
    """

    epoch: T
    sub_epoch: T
    step: T
    rank: T
    slot: T


def find(partition: Partition, epoch: int, positions: Int64) -> Location[Int64]:
    """Return where the positions of an epoch are read, under a partition with a world_size.

    Parameters
    ----------
    positions : numpy.ndarray
        int64, shape (k,); -1 stays -1.
    """
    result = Location(*np.full((5, len(positions)), -1, np.int64))
    chosen = np.flatnonzero(positions >= 0)
    if partition.resume is not None:
        resume = partition.resume
        num_units = partition.extent.units(epoch)
        done = resume.position if epoch == resume.epoch else num_units * (epoch < resume.epoch)
        chosen = chosen[positions[chosen] >= done]
    # A step belongs to the sub-epoch in which it starts: under "carry" perhaps an earlier one.
    starts = positions[chosen]
    if partition.policy.crosses:
        starts = starts - _distances_into_steps(partition, epoch, starts)
    extent = partition.extent
    epochs, starts = _held(extent, epoch, starts)
    for owner, of_epoch in _groups(epochs):
        sub_epochs = extent.parts_of(owner, partition.sub_epochs, starts[of_epoch])
        distance = 0 if owner == epoch else extent.before(epoch) - extent.before(owner)
        for sub_epoch, of_both in _groups(sub_epochs):
            steps = steps_in(partition, owner, sub_epoch)
            members = chosen[of_epoch][of_both]
            _find_in(steps, partition.world_size or 1, distance, positions, members, result)
    return result


def _held(extent: Extent, epoch: int, starts: Int64) -> tuple[Int64, Int64]:
    """Return the epochs, and the positions in these, of positions that count from another epoch."""
    epochs = np.full_like(starts, epoch)
    if (early := starts < 0).any():  # all of the one step that runs into the epoch
        place = extent.before(epoch) + int(starts[early][0])
        epochs[early], starts[early] = extent.holding(place)
    return epochs, starts


def find_one(steps: Steps, world_size: int, position: int) -> tuple[int, int, int]:
    """Return the step, rank and slot that read a position of a sub-epoch, padded ones included."""
    result = Location(*np.full((5, 1), -1, np.int64))
    _find_in(steps, world_size, 0, np.array([position]), np.array([0]), result)
    return int(result.step[0]), int(result.rank[0]), int(result.slot[0])


def _groups(values: Int64) -> Iterator[tuple[int, Int64 | slice]]:
    """Yield each different value, and where it is."""
    if values.size and values.min() == values.max():  # one group, most of the time
        yield int(values[0]), slice(None)
        return
    order = np.argsort(values, kind="stable")
    for where in np.split(order, np.flatnonzero(np.diff(values[order])) + 1):
        if where.size:
            yield int(values[where[0]]), where


def _distances_into_steps(partition: Partition, epoch: int, positions: Int64) -> Int64:
    """Return how far each position is from the start of its step, under "carry"; int64."""
    origin, num_units = partition.extent.before(epoch), partition.extent.units(epoch)
    distances = np.zeros_like(positions)
    if not positions.size:
        return distances
    phases = partition.running
    low, high = (origin + int(end) for end in (positions.min(), positions.max()))
    first = max(0, bisect_right(phases, low, key=lambda each: each[0]) - 1)
    for place, phase in phases[first : bisect_right(phases, high, key=lambda each: each[0])]:
        size = partition.sizes[phase]
        inside = positions >= min(max(place - origin, 0), num_units)
        # modulo size before adding, so that the sum stays far below 2**63
        shift = (origin - place) % size
        distances = np.where(inside, (positions % size + shift) % size, distances)
    return distances


def _find_in(
    steps: Steps,
    world_size: int,
    distance: int,
    positions: Int64,
    members: Int64,
    result: Location[Int64],
) -> None:
    """Fill in the answers for `members`, whose steps all start in one sub-epoch.

    `distance` is from the start of the steps' epoch to the start of the positions' epoch.
    """
    if not members.size:
        return
    low, high = (
        int(end) + distance for end in (positions[members].min(), positions[members].max())
    )
    first = max(0, bisect_right(steps.spans, low, key=lambda span: span.start) - 1)
    for span in steps.spans[first : bisect_right(steps.spans, high, key=lambda span: span.start)]:
        start = span.start - distance  # of the span, as a position of the same epoch
        last = min(start + span.length, 2**63) - 1
        inside = (positions[members] >= max(start, 0)) & (positions[members] <= last)
        chosen = members[inside]
        # uint64, as a step under "carry" may end past 2**63 - 1 positions from the span's start
        offsets = positions[chosen].astype(np.uint64) + np.uint64(-start % 2**64)
        local = part_of(span.length, span.num_steps, offsets)
        size, num_large = divmod(span.length, span.num_steps)
        starts = local * np.uint64(size) + np.minimum(local, np.uint64(num_large))
        sizes = size + (local < num_large)
        ahead = np.uint64((span.start + steps.origin) % world_size)
        residues = ((starts % np.uint64(world_size) + ahead) % np.uint64(world_size)).astype(
            np.int64
        )
        ranks, slots = _ranks(world_size, residues, sizes, (offsets - starts).astype(np.int64))
        local = local.astype(np.int64)
        result.epoch[chosen] = steps.epoch
        result.sub_epoch[chosen] = steps.sub_epoch
        result.step[chosen] = span.step + local
        result.rank[chosen] = ranks
        result.slot[chosen] = slots


def _ranks(world_size: int, residues: Int64, sizes: Int64, offsets: Int64) -> tuple[Int64, Int64]:
    """Return rank and slot of the units at `offsets` in steps of `sizes` units.

    A step's first position is `residues` modulo world_size. Every rank gets size // world_size
    units, and the first size % world_size ranks from rank `residue` on, in a ring, get one more. So
    in rank order the sizes change at most twice.
    """
    each, more = sizes // world_size, sizes % world_size
    wraps = residues + more > world_size
    low = np.where(wraps, residues + more - world_size, residues)
    high = np.where(wraps, residues, residues + more)
    outer, inner = each + wraps, each + ~wraps
    low_end = low * outer
    high_end = low_end + (high - low) * inner
    # of the ranks of one size that hold the unit: the first one, and where it begins
    before, past = offsets < low_end, offsets >= high_end
    size = np.where(before | past, outer, inner)
    first = np.where(before, 0, np.where(past, high, low))
    inside = offsets - np.where(before, 0, np.where(past, high_end, low_end))
    ahead = inside // np.maximum(size, 1)
    return first + ahead, inside - ahead * size


class Cells(NamedTuple):
    """The cells of a step that hold units: each is a rank's batch, or one of its inner batches.

    int64 arrays of shape (num_cells,), in the order of the step's slots over all ranks: the slot at
    which a cell begins, its number of units, its rank, and which of the rank's inner batches it is.
    Padded slots are not counted.
    """

    starts: Int64
    sizes: Int64
    ranks: Int64
    numbers: Int64


def cells_of(steps: Steps, world_size: int, step: int, counts: tuple[int, ...]) -> Cells:
    """Return the cells of a step, whose batches are cut into counts[0] parts, and so on."""
    start, stop = steps.interval(step)
    residue = (start + steps.origin) % world_size
    return _cells(world_size, residue, stop - start, steps.valid(start, stop), counts)


@lru_cache(maxsize=16)
def _cells(
    world_size: int, residue: int, size: int, num_valid: int, counts: tuple[int, ...]
) -> Cells:
    """Return the cells of a step of `size` positions, the first at `residue` modulo world_size."""
    ranks, slots = _ranks(world_size, np.array([residue]), np.array([size]), np.arange(num_valid))
    each, more = divmod(size, world_size)
    left = each + ((ranks - residue) % world_size < more)  # units in the batch, then in its part
    numbers = np.zeros(num_valid, np.int64)
    for count in counts:  # by the rule of `split`, down to the innermost part
        small, num_large = left // count, left % count
        bound = num_large * (small + 1)
        inside = slots < bound
        parts = np.where(
            inside, slots // (small + 1), num_large + (slots - bound) // np.maximum(small, 1)
        )
        slots = slots - parts * small - np.minimum(parts, num_large)
        left, numbers = small + (parts < num_large), numbers * count + parts
    new = (np.diff(ranks, prepend=-1) != 0) | (np.diff(numbers, prepend=-1) != 0)
    starts = np.flatnonzero(new)
    found = Cells(starts, np.diff(starts, append=num_valid), ranks[starts], numbers[starts])
    for each_of in found:
        each_of.setflags(write=False)
    return found
