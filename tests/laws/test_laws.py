"""The laws of a partition, over drawn plans, fresh and resumed: goals 3 and 5 of the design."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support import model
from tests.support.micro import micro_batches
from tests.support.strategies import (
    EPOCHS,
    epochs_of,
    fresh_plans,
    nums_samples,
    plans,
    some_ranks,
    steps_of,
    sub_epochs_of,
)

EVERYWHERE = nums_samples.map(ip.Sequential)  # an order in which index == position
INSIDE = [name for name, policy in REMAINDERS.items() if not policy.crosses]


def batches_of(plan: ip.Plan, epoch: int, sub_epoch: int, step: int) -> list[np.ndarray]:
    """Return the batches of all ranks in one step."""
    return [plan.batch(epoch, sub_epoch, step=step, rank=rank) for rank in range(plan.world_size)]


def read_by(plan: ip.Plan, epoch: int, sub_epoch: int) -> list[int]:
    """Return what all steps of a sub-epoch read, step by step and rank by rank."""
    ranks = [list(plan.batches(epoch, sub_epoch, rank=rank)) for rank in range(plan.world_size)]
    return [i for step in zip(*ranks, strict=True) for batch in step for i in batch.tolist()]


def range_of(values: list[int]) -> int:
    """Return by how much values differ at most."""
    return max(values, default=0) - min(values, default=0)


@given(plans())
def test_a_plan_is_the_order_after_the_model(plan: ip.Plan) -> None:
    """Every batch of every rank and step is the order taken at the places the model walks to."""
    epochs: dict[int, list[int]] = {}  # epoch -> its indices, in position order

    def index(slot: model.Slot) -> int:
        if slot.epoch not in epochs:
            num_units = plan.order.num_units(slot.epoch)
            epochs[slot.epoch] = plan.order.take(slot.epoch, 0, num_units).tolist()
        return epochs[slot.epoch][slot.position]

    walked = model.walk(model.run_of(plan), epochs_of(plan))
    assert sub_epochs_of(plan) == [(there.epoch, there.sub_epoch) for there in walked]
    for epoch, sub_epoch, first_step, _, steps in walked:
        assert first_step == plan.steps(epoch, sub_epoch).start
        assert first_step + len(steps) == plan.steps(epoch, sub_epoch).stop
        drawn = [list(plan.batches(epoch, sub_epoch, rank=r)) for r in range(plan.world_size)]
        for i, step in enumerate(steps):
            num_valid = sum(not slot.padded for slot in step.slots)
            assert num_valid == plan.step_size(epoch, sub_epoch, step=step.number)
            for rank, slots in enumerate(step.ranks):
                assert [index(slot) for slot in slots] == drawn[rank][i].tolist()
            for rank in some_ranks(plan.world_size):
                num_valid = sum(not slot.padded for slot in step.ranks[rank])
                where = {"step": step.number, "rank": rank}
                batch = plan.units(epoch, sub_epoch, **where)
                assert (num_valid, plan._layout.phases[step.phase]) == (
                    batch.num_valid,
                    batch.phase,
                )


@given(st.sampled_from(INSIDE).flatmap(lambda r: plans(EVERYWHERE, r)))
def test_steps_and_ranks_tile_every_sub_epoch(plan: ip.Plan) -> None:
    """Spread reads each position once; drop leaves out the last; pad begins again at the first."""
    for epoch, sub_epoch in sub_epochs_of(plan):
        account = plan.account(epoch, sub_epoch)
        first = sum(plan.account(epoch, s).num_units for s in range(sub_epoch))
        everything = range(first, first + account.num_units)
        left = list(everything[account.num_finished :])
        read = read_by(plan, epoch, sub_epoch)
        padded = (list(everything) * (account.num_padded + 1))[: account.num_padded]
        assert left[: account.num_read] + padded == read
        assert len(left) - account.num_read == account.num_dropped
        assert plan.remainder == "drop" or not account.num_dropped
        assert plan.remainder == "pad" or not account.num_padded


@given(plans(EVERYWHERE, "carry"))
def test_carry_loses_and_repeats_nothing_across_epochs(plan: ip.Plan) -> None:
    """The steps of all epochs read one endless stream of epochs, unit by unit."""
    n = plan.order.num_samples
    begin = 0 if plan._resumed is None else plan._resumed.epoch * n + plan._resumed.position
    read = [i for pair in sub_epochs_of(plan) for i in read_by(plan, *pair)]
    assert [place % n for place in range(begin, begin + len(read))] == read
    assert begin + len(read) >= EPOCHS * n
    for epoch in range(epochs_of(plan)):
        account = plan.account(epoch)
        finished = min(max(begin - epoch * n, 0), n)
        counts = account.num_read, account.num_dropped, account.num_finished, account.num_padded
        assert counts == (n - finished, 0, finished, 0)


@given(plans())
def test_the_account_counts_every_unit_slot_and_step(plan: ip.Plan) -> None:
    """num_read + num_dropped + num_finished is the epoch; slots are valid or padded; sums agree."""
    for epoch in range(epochs_of(plan)):
        account = plan.account(epoch)
        assert plan.order.num_units(epoch) == account.num_units
        assert account.num_units == account.num_read + account.num_dropped + account.num_finished
        parts = [plan.account(epoch, sub_epoch) for sub_epoch in range(plan.sub_epochs)]
        for name in ("units", "read", "dropped", "finished", "padded", "steps"):
            total = sum(getattr(part, f"num_{name}") for part in parts)
            assert total == getattr(account, f"num_{name}"), name
        left = [pair for pair in sub_epochs_of(plan) if pair[0] == epoch]
        per_rank = np.zeros(plan.world_size, np.int64)
        sizes, valid = [], 0
        for pair in left:
            by_rank = [plan.batch_sizes(*pair, rank=rank) for rank in range(plan.world_size)]
            per_rank += [int(each.sum()) for each in by_rank]
            sizes += np.concatenate(by_rank).tolist()
            first, stop = plan.steps(*pair).start, plan.steps(*pair).stop
            valid += sum(plan.step_size(*pair, step=step) for step in range(first, stop))
            assert stop - first == parts[pair[1]].num_steps
        assert sum(sizes) == valid + account.num_padded
        assert plan.remainder == "carry" or valid == account.num_read
        assert (min(sizes, default=0), max(sizes, default=0)) == (
            account.min_batch_size,
            account.max_batch_size,
        )
        assert (per_rank.min(), per_rank.max()) == (account.min_per_rank, account.max_per_rank)


@given(plans())
def test_every_rank_has_the_same_steps_and_micro_batches(plan: ip.Plan) -> None:
    """All ranks have num_steps batches, cut into equal numbers of inner batches at every level."""
    for epoch, sub_epoch in sub_epochs_of(plan, 2)[:20]:
        steps = plan.steps(epoch, sub_epoch)
        for rank in range(plan.world_size):
            assert len(steps) == len(plan.batch_sizes(epoch, sub_epoch, rank=rank))
        for step in {*steps[:2], *steps[-1:]}:
            size = plan.units(epoch, sub_epoch, step=step, rank=0).phase.size
            counts = size[:-1] if isinstance(size, tuple) else (1,)
            batches = batches_of(plan, epoch, sub_epoch, step)
            for rank in some_ranks(plan.world_size):
                cut = micro_batches(plan.units(epoch, sub_epoch, step=step, rank=rank))
                assert model.nest(batches[rank].tolist(), counts) == _tolist(cut)
                sizes = [len(leaf) for leaf in _leaves(cut)]
                assert math.prod(counts) == len(sizes)
                assert range_of(sizes) <= 1


@given(fresh_plans())
def test_sizes_of_steps_and_ranks_stay_within_one(plan: ip.Plan) -> None:
    """Ranks differ by one unit in a step, a sub-epoch, and in whatever the places run through.

    Under "spread" that is an epoch, under "carry" the stream. "drop" leaves gaps between
    sub-epochs and "pad" overlaps, so there each sub-epoch may add one, unless every rank gets
    the same of each full step. Slots count, padded or not.
    """
    stream = np.zeros(plan.world_size, np.int64)
    even = all(phase.num_units % plan.world_size == 0 for phase in plan._layout.phases)
    fixed = plan.global_batch_size is None or even
    for epoch in range(EPOCHS):
        total = np.zeros(plan.world_size, np.int64)
        for sub_epoch in range(plan.sub_epochs):
            sizes = np.array(
                [plan.batch_sizes(epoch, sub_epoch, rank=r) for r in range(plan.world_size)]
            )
            assert all(range_of(step) <= 1 for step in sizes.T.tolist())
            assert range_of(sizes.sum(axis=1).tolist()) <= 1
            total += sizes.sum(axis=1)
        if fixed or plan.remainder in ("spread", "carry"):
            assert range_of(total.tolist()) <= 1
        stream += total
        if plan.remainder == "carry" or (fixed and plan.remainder != "spread"):
            assert range_of(stream.tolist()) <= 1


@given(plans())
def test_only_the_last_steps_of_a_sub_epoch_are_not_full(plan: ip.Plan) -> None:
    """Steps hold what their phase says, or where steps shrink, those of the last phase no more.

    Under "spread" these differ by one unit at most.
    """
    ranks = plan.world_size if plan.global_batch_size is None else 1
    for pair in sub_epochs_of(plan):
        sizes = sum(
            (plan.batch_sizes(*pair, rank=rank) for rank in range(plan.world_size)), start=0
        )
        steps = plan.steps(*pair)
        phases = [each.phase for each in plan.batches(*pair, rank=0, units=True)]
        full = [phase.num_units * ranks for phase in phases]
        if plan.remainder != "spread":
            assert full == list(sizes)
            continue
        last = [i for i, phase in enumerate(phases) if phase == phases[-1]]
        assert full[: last[0]] == sizes[: last[0]].tolist() if last else not steps
        assert plan.remainder != "spread" or range_of([sizes[i] for i in last]) <= 1
        assert all(size <= most for size, most in zip(sizes, full, strict=True))


@given(fresh_plans(remainder="carry"))
def test_carry_without_a_schedule_has_even_sub_epochs(plan: ip.Plan) -> None:
    """Without a schedule, sub-epochs under "carry" differ by at most one step."""
    plan = plan.replace(batch_size=plan._layout.phases[0].size)
    assert range_of([plan.steps(*pair).stop for pair in sub_epochs_of(plan)]) <= 1


@given(fresh_plans(), st.integers(1, 70), st.data())
def test_global_batches_are_the_same_for_every_world_size(
    plan: ip.Plan, world_size: int, data: st.DataObject
) -> None:
    """Step t reads the same units, and in the same order, on any number of ranks."""
    sizes = plan.batch_size if plan.global_batch_size is None else plan.global_batch_size
    one = plan.replace(global_batch_size=sizes)
    other = one.replace(world_size=world_size)
    steps = steps_of(one)
    assert steps == steps_of(other)
    for step in data.draw(st.lists(st.sampled_from(steps), max_size=5)) if steps else []:
        expected, actual = (np.concatenate(batches_of(p, *step)).tolist() for p in (one, other))
        assert expected == actual
        assert one.step_size(*step[:2], step=step[2]) == other.step_size(*step[:2], step=step[2])


def _tolist(nested: Any) -> Any:
    return nested.tolist() if isinstance(nested, np.ndarray) else [_tolist(n) for n in nested]


def _leaves(nested: Any) -> list[np.ndarray]:
    if isinstance(nested, np.ndarray):
        return [nested]
    return [leaf for part in nested for leaf in _leaves(part)]
