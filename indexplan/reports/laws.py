"""What a plan promises of an epoch, looked at where something changes, and at places between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from indexplan.errors import counted
from indexplan.partition.account import changes
from indexplan.partition.ranks import share
from indexplan.partition.steps import Int64, Partition, Steps
from indexplan.plan.plan import Plan, layout_of

T = TypeVar("T")

TILE = "sub-epochs tile the epoch"
INVERSE = "locate is the inverse of batch"
FEW = 256  # sub-epochs that are all looked at; of more, as many between the edges
SAMPLED = 8  # steps of a span, and ranks of a step, besides those at the edges
MOST_LISTED = 2**12  # reads of a sample that are looked at one by one
MOST_STEPS = 512  # of an epoch that are looked at
MOST_BALANCED = 2**20  # units in these steps, if the plan has balance; at least two steps
MOST_SLOTS = 2**12  # units of a batch that are looked at, at both ends; of bins 2**6

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
        if located:
            ranks = _sampled(plan.world_size or 1)
            said = [_inverse(plan, steps, step, rank) for rank in ranks]
            yield INVERSE, 1, [f"{_where(steps)}, step {step}: {each}" for each in said if each]
    account = plan.account(epoch)
    total = account.num_read + account.num_dropped + account.num_finished
    right = (total, total + account.num_excluded) == (num_units, account.num_units)
    said = [] if right else [f"epoch {epoch}: {account!r}"]
    yield "every unit is accounted for", num_units, said


def _where(steps: Steps) -> str:
    return f"epoch {steps.epoch}, sub-epoch {steps.sub_epoch}"


def _tiling(plan: Plan, steps: Steps) -> list[str]:
    """Return what is wrong with how steps cover [start, stop), the unread part of a sub-epoch."""
    sizes = layout_of(plan).partition.sizes
    place, step, problems = steps.start, steps.first_step, []
    if steps.policy.crosses and steps.spans:
        place = steps.spans[0].start  # the units in between belong to the steps before
    for span in steps.spans:
        if (span.start, span.step) != (place, step):
            problems.append(f"{_where(steps)}: {span} must start at {place}, step {step}")
        size = sizes[span.phase]
        least, most = span.length // span.num_steps, -(-span.length // span.num_steps)
        if not 0 < least <= most <= size or (least < size and span != steps.spans[-1]):
            problems.append(f"{_where(steps)}: {span} must have steps of {counted(size, 'unit')}")
        place, step = span.start + span.length, span.step + span.num_steps
    least = 1 - max(sizes) if steps.policy.repeats or steps.policy.crosses else 0
    most = max(sizes) - 1 if steps.policy.leaves else 0
    if steps.spans and not least <= steps.stop - place <= most:
        problems.append(f"{_where(steps)}: steps end at {place}, units at {steps.stop}")
    return problems


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
        change = span.length % span.num_steps
        local = {change, max(change - 1, 0), *_sampled(span.num_steps)}
        chosen |= {span.step + number for number in local}
    return sorted(chosen)


def _sampled(num: int) -> list[int]:
    """Return the first and the last of so many, and some between."""
    return sorted({(num - 1) * i // SAMPLED for i in range(SAMPLED + 1)})


def _ranks(plan: Plan, steps: Steps, step: int) -> list[str]:
    world_size = plan.world_size or 1
    start, stop = steps.interval(step)
    each = (stop - start) // world_size
    problems = []
    for rank in _sampled(world_size):
        low, high = share(steps, world_size, rank, step)
        begins = low == start if rank == 0 else low == share(steps, world_size, rank - 1, step)[1]
        ends = rank + 1 < world_size or high == stop
        if not (begins and ends and each <= high - low <= each + 1):
            problems.append(f"{_where(steps)}, step {step}: rank {rank} reads [{low}, {high})")
    return problems


def _inverse(plan: Plan, steps: Steps, step: int, rank: int) -> str:
    """Return what is wrong with how samples of a batch are located, or ""."""
    order, where = plan.order, {"step": step, "rank": rank}
    start, stop = share(steps, plan.world_size or 1, rank, step)
    valid = layout_of(plan).num_valid(steps, step, rank)
    most = MOST_SLOTS if not order.deals_bins else MOST_SLOTS // 64
    reads_on = steps.policy.crosses and steps.interval(step)[1] > steps.num_units
    if plan.balance is not None and reads_on:
        return ""  # which of its units are in the next epoch only the whole step knows
    here = valid if plan.balance is not None else min(valid, steps.num_units - start)
    if here <= 0:  # empty, or all in the next epoch
        return ""
    near = np.arange(min(here, most // 2))
    chosen = np.union1d(near, here - 1 - near)
    if stop - start <= most or plan.balance is not None:
        units = plan.units(steps.epoch, steps.sub_epoch, **where)
        slots = np.repeat(np.arange(len(units)), np.diff(units.offsets))
        looked_at = np.isin(slots, chosen)
        samples, slots = units.samples[looked_at], slots[looked_at]
    else:  # the batch, or its padding, may be more than memory holds
        positions = start + chosen
        samples = order.take(steps.epoch, positions)
        slots = np.repeat(chosen, np.diff(order.offsets(steps.epoch, positions)))
    outside = samples[(samples < 0) | (samples >= order.num_samples)]
    if len(outside):
        return f"rank {rank} reads {outside[0]}, which is no sample"
    if order.traits.reads == "any":  # samples read very often have too many reads to list
        few = order.count(steps.epoch, samples) <= MOST_LISTED
        samples, slots = samples[few], slots[few]
    asked = np.unique(samples)[::-1]  # falling: a `find` that needs them rising is wrong
    found, reads = plan.locate_all(asked, steps.epoch)
    place = (steps.epoch, steps.sub_epoch, step, rank)
    mine = np.logical_and.reduce([part == each for part, each in zip(found, place, strict=False)])
    mine &= np.isin(found.slot, slots)
    named = np.repeat(asked, np.diff(reads))[mine], found.slot[mine]
    same = all(map(np.array_equal, _sorted(*named), _sorted(samples, slots)))
    return "" if same else f"rank {rank} is not found again"


def _sorted(samples: Int64, slots: Int64) -> tuple[Int64, Int64]:
    by = np.lexsort((slots, samples))
    return samples[by], slots[by]
