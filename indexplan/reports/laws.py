"""What a plan promises of an epoch, looked at where something changes, and at places between."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from indexplan.errors import counted
from indexplan.orders.base import Order
from indexplan.partition.account import changes
from indexplan.partition.ranks import share
from indexplan.partition.steps import Int64, Partition, Steps
from indexplan.plan.plan import Plan, layout_of

T = TypeVar("T")

TILE = "sub-epochs tile the epoch"
INVERSE = "locate is the inverse of batch"
COUNTS = "counts of samples add up to the reads"
SOME_COUNTS = "counts of samples cover the reads of some units"
MOST_COUNTED = 2**22  # samples whose counts are added up, and units whose reads are
AT_ONCE = 2**16  # of these; and samples of bins that are drawn at a time, but at least one bin
FEW = 256  # sub-epochs that are all looked at; of more, as many between the edges
SAMPLED = 8  # steps of a span, and ranks of a step, besides those at the edges
MOST_LISTED = 2**12  # reads of a sample that are looked at one by one
MOST_STEPS = 512  # of an epoch that are looked at
MOST_BALANCED = 2**20  # units in these steps, if the plan has balance; at least two steps
MOST_SAMPLES = 2**20  # of a batch that is looked at whole
MOST_SLOTS = 2**12  # of a batch that are looked at: its first ones, and as many last ones

Found = tuple[str, int, list[str]]


def laws_of(plan: Plan, epoch: int, *, located: bool) -> Iterator[Found]:
    """Yield (law, how many times it was looked at, problems) of the sub-epochs of one epoch."""
    layout = layout_of(plan)
    num_units = plan.order.num_units(epoch)
    partition = layout.partition
    chosen = _sampled_sub_epochs(partition, epoch)
    gaps = []
    for sub_epoch in chosen:
        here = partition.sub_epoch(epoch, sub_epoch)
        last = sub_epoch + 1 == plan.sub_epochs
        after = num_units if last else partition.sub_epoch(epoch, sub_epoch + 1)[0]
        if here[1] != after or (sub_epoch == 0 and here[0] != 0):
            gaps.append(f"epoch {epoch}: sub-epoch {sub_epoch} leaves a gap, with {here}")
    yield TILE, len(chosen), gaps
    sampled: list[tuple[Steps, int]] = []
    for sub_epoch in chosen:
        if layout.is_finished(epoch, sub_epoch):
            continue
        steps = layout.steps_in(epoch, sub_epoch)
        yield "steps tile their sub-epoch", steps.num_steps - steps.first_step, _tiling(plan, steps)
        sampled += [(steps, step) for step in _sampled_steps(steps)]
    most = MOST_STEPS
    if plan.balance is not None:  # which draws the whole step for any question about it
        most = max(2, min(most, MOST_BALANCED // max(partition.sizes)))
    for steps, step in _thinned(sampled, most):
        yield "ranks tile their step, within one unit", 1, _ranks(plan, steps, step)
        if plan.balance is not None:
            yield "balance deals each unit of a step once", 1, _balanced(plan, steps, step)
        if located:
            yield INVERSE, 1, _inverse(plan, steps, step)
    if located and plan.order.traits.reads != "once":
        if max(plan.order.num_samples, num_units) <= MOST_COUNTED:
            yield COUNTS, plan.order.num_samples, _counts(plan, epoch)
        else:
            yield SOME_COUNTS, *_some_counts(plan, epoch)
    account = plan.account(epoch)
    total = account.num_read + account.num_dropped + account.num_finished
    right = (total, total + account.num_excluded) == (num_units, account.num_units)
    said = [] if right else [f"epoch {epoch}: {account!r}"]
    yield "every unit is accounted for", num_units, said


def _counts(plan: Plan, epoch: int) -> list[str]:
    """Return what is wrong with how often the order says that it reads each sample."""
    order, num_units = plan.order, plan.order.num_units(epoch)
    reads, counted_reads = num_units, 0
    said: list[str] = []
    if order.deals_bins:
        pieces = (order.offsets(epoch, *piece)[-1] for piece in _intervals(num_units))
        reads = sum(map(int, pieces))
    for start, stop in _intervals(order.num_samples):
        counts = order.count(epoch, np.arange(start, stop))
        counted_reads += int(counts.sum())
        if order.traits.reads == "at most once" and counts.max() > 1 and not said:
            sample = start + int(counts.argmax())
            said.append(f"epoch {epoch}: sample {sample} is read {counts.max()} times")
    if counted_reads != reads:
        said.insert(0, f"epoch {epoch}: counts add up to {counted_reads}, not to {reads} reads")
    return said


def _some_counts(plan: Plan, epoch: int) -> tuple[int, list[str]]:
    """Return how many reads were looked at, and which samples have more than their counts."""
    order, num_units = plan.order, plan.order.num_units(epoch)
    looked_at = 0
    said: list[str] = []
    for i in range(SAMPLED + 1):
        first = (num_units - 1) * i // SAMPLED
        positions = np.arange(first, min(first + MOST_SLOTS, num_units))
        read = order.take(epoch, _few(order, epoch, positions))
        samples, times = np.unique(read, return_counts=True)
        counts = order.count(epoch, samples)
        most = 1 if order.traits.reads == "at most once" else np.iinfo(np.int64).max
        looked_at += len(read)
        for at in np.flatnonzero((counts < times) | (counts > most)).tolist():
            where = f"positions from {first} on read sample {samples[at]} {times[at]} times"
            said.append(f"epoch {epoch}: {where}, its count is {counts[at]}")
    return looked_at, said


def _few(order: Order, epoch: int, positions: Int64) -> Int64:
    """Return the first of some positions, which hold few samples together; at least one."""
    if not order.deals_bins:
        return positions
    offsets = order.offsets(epoch, positions)
    return positions[: max(1, int(np.searchsorted(offsets, AT_ONCE, "right")) - 1)]


def _intervals(stop: int) -> Iterator[tuple[int, int]]:
    """Yield intervals that cover [0, stop)."""
    for start in range(0, stop, AT_ONCE):
        yield start, min(start + AT_ONCE, stop)


def _where(steps: Steps) -> str:
    return f"epoch {steps.epoch}, sub-epoch {steps.sub_epoch}"


def _tiling(plan: Plan, steps: Steps) -> list[str]:
    """Return what is wrong with how steps cover [start, stop), the unread part of a sub-epoch."""
    partition = layout_of(plan).partition
    place, step, problems = steps.start, steps.first_step, []
    if steps.policy.crosses and steps.spans:
        place = steps.spans[0].start  # the units in between belong to the steps before
    for span in steps.spans:
        if (span.start, span.step) != (place, step):
            problems.append(f"{_where(steps)}: {span} must start at {place}, step {step}")
        size = partition.sizes[span.phase]
        least, most = span.length // span.num_steps, -(-span.length // span.num_steps)
        if not 0 < least <= most <= size or (least < size and span != steps.spans[-1]):
            problems.append(f"{_where(steps)}: {span} must have steps of {counted(size, 'unit')}")
        place, step = span.start + span.length, span.step + span.num_steps
    left = steps.stop - place
    size = partition.sizes[_last_phase(partition, steps, place)] if steps.spans else 0
    least = 1 - size if steps.policy.repeats or steps.policy.crosses else 0
    most = size - 1 if steps.policy.leaves else 0
    if steps.spans and not least <= left <= most:
        problems.append(f"{_where(steps)}: steps end at {place}, units at {steps.stop}")
    return problems


def _last_phase(partition: Partition, steps: Steps, place: int) -> int:
    """Return the phase of the last step, or that in force where units are left after it."""
    phase = steps.spans[-1].phase
    if place >= steps.stop or not partition.by_place:
        return phase
    places = partition.places
    begin = partition.extent.before(steps.epoch)
    return max(phase, bisect_right(places, begin + place) - 1)


def _sampled_sub_epochs(partition: Partition, epoch: int) -> list[int]:
    """Return sub-epochs worth looking at: all if few, else around each change and some between."""
    total = partition.sub_epochs
    if total <= FEW:
        return list(range(total))
    places = _thinned(changes(partition, epoch), FEW)
    beside = {place + i for place in places for i in range(-2, 2)}
    between = {total * i // FEW for i in range(FEW)}
    return sorted(number for number in beside | between if 0 <= number < total)


def _thinned(row: list[T], most: int) -> list[T]:
    """Return at most `most` of a list, evenly spread, with its first and its last."""
    if len(row) <= most:
        return row
    return [row[(len(row) - 1) * i // (most - 1)] for i in range(most)]


def _sampled_steps(steps: Steps) -> list[int]:
    """Return steps worth looking at: the edges of spans, where sizes change, and some between."""
    chosen = set()
    for span in steps.spans:
        last = span.num_steps - 1
        change = span.length % span.num_steps
        local = {
            0,
            last,
            change,
            max(change - 1, 0),
            *(last * i // SAMPLED for i in range(SAMPLED)),
        }
        chosen |= {span.step + number for number in local}
    return sorted(chosen)


def _sampled_ranks(world_size: int) -> list[int]:
    last = world_size - 1
    return sorted({0, last, *(last * i // SAMPLED for i in range(SAMPLED))})


def _slots(valid: int) -> Int64:
    """Return slots of a batch worth looking at: all if few, else the first and the last ones."""
    if valid <= MOST_SLOTS:
        return np.arange(valid)
    half = MOST_SLOTS // 2
    return np.concatenate([np.arange(half), np.arange(valid - half, valid)])


def _slots_of(plan: Plan, steps: Steps, step: int, rank: int, valid: int) -> tuple[Int64, Int64]:
    """Return some slots of a batch that are not padding, and their positions in the epoch."""
    if plan.balance is None:
        start, _ = share(steps, plan.world_size or 1, rank, step)
        start = min(start, steps.num_units)  # past it, all slots are in the next epoch
        slots = _slots(min(valid, steps.num_units - start))
        return slots, start + slots
    where = layout_of(plan).runs(steps, rank, step, step + 1)
    epochs = np.repeat([epoch for epoch, _, _ in where], [len(starts) for _, starts, _ in where])
    positions = np.concatenate([np.empty(0, np.int64), *(starts for _, starts, _ in where)])
    here = np.flatnonzero(epochs[:valid] == steps.epoch)
    here = here[_slots(len(here))]
    return here, positions[here]


def _balanced(plan: Plan, steps: Steps, step: int) -> list[str]:
    """Return what is wrong with which units of a step balance gives its ranks."""
    ((cells, units),) = layout_of(plan).dealt(steps, step, step + 1)
    once = np.array_equal(np.sort(units), np.arange(steps.valid(*steps.interval(step))))
    if once and cells.sizes.sum() == len(units):
        return []
    return [f"{_where(steps)}, step {step}: balance does not deal each of its units once"]


def _ranks(plan: Plan, steps: Steps, step: int) -> list[str]:
    world_size = plan.world_size or 1
    start, stop = steps.interval(step)
    each = (stop - start) // world_size
    problems = []
    for rank in _sampled_ranks(world_size):
        low, high = share(steps, world_size, rank, step)
        begins = low == start if rank == 0 else low == share(steps, world_size, rank - 1, step)[1]
        ends = rank + 1 < world_size or high == stop
        if not (begins and ends and each <= high - low <= each + 1):
            problems.append(f"{_where(steps)}, step {step}: rank {rank} reads [{low}, {high})")
    return problems


def _inverse(plan: Plan, steps: Steps, step: int) -> list[str]:
    problems = []
    sub_epoch = steps.sub_epoch
    for rank in _sampled_ranks(plan.world_size or 1):
        where = {"step": step, "rank": rank}
        valid = layout_of(plan).num_valid(steps, step, rank)
        slots, positions = _slots_of(plan, steps, step, rank, valid)
        if not len(slots):  # empty, or all in the next epoch
            continue
        start, stop = share(steps, plan.world_size or 1, rank, step)
        sizes = None
        if stop - start <= MOST_SLOTS:
            sizes = np.diff(plan.units(steps.epoch, sub_epoch, **where).offsets)
        if sizes is not None and sizes.sum() <= MOST_SAMPLES:
            of = np.repeat(np.arange(len(sizes)), sizes)
            looked_at = np.isin(of, slots)
            batch = plan.batch(steps.epoch, sub_epoch, **where)[looked_at]
            slots = of[looked_at]
        else:  # the batch, or its padding, may be more than memory holds
            positions = _few(plan.order, steps.epoch, positions)
            slots = slots[: len(positions)]
            batch = plan.order.take(steps.epoch, positions)
            if plan.order.deals_bins:
                slots = np.repeat(slots, np.diff(plan.order.offsets(steps.epoch, positions)))
        wrong_samples = batch[(batch < 0) | (batch >= plan.order.num_samples)]
        if len(wrong_samples):
            said = f"rank {rank} reads {wrong_samples[0]}, which is no sample"
            problems.append(f"{_where(steps)}, step {step}: {said}")
            continue
        samples = batch[: len(slots)]
        if plan.order.traits.reads == "any":  # samples read very often have too many reads to list
            few = plan.order.count(steps.epoch, samples) <= MOST_LISTED
            samples, slots = samples[few], slots[few]
        found, offsets = plan.locate_all(samples, steps.epoch)
        reads = np.diff(offsets)
        expected = (steps.epoch, sub_epoch, step, rank, np.repeat(slots, reads))
        parts = [part == number for part, number in zip(found, expected, strict=True)]
        mine = np.logical_and.reduce(parts)  # the reads, of all of each sample, that were asked for
        named = np.bincount(np.repeat(np.arange(len(samples)), reads), mine, len(samples))
        pairs = np.stack([samples, slots])  # a unit that holds a sample twice is named twice
        _, which, times = np.unique(pairs, axis=1, return_inverse=True, return_counts=True)
        if (named != times[which.ravel()]).any():
            problems.append(f"{_where(steps)}, step {step}: rank {rank} is not found again")
    return problems
