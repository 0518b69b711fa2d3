"""The laws of a partition, over drawn plans, fresh and resumed: goals 3 and 5 of the design."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support import model
from tests.support.balance_oracle import Units, dealt
from tests.support.bins import Drawn, bin_orders
from tests.support.strategies import (
    EPOCHS,
    balanced_plans,
    epochs_of,
    fresh_plans,
    nums_samples,
    orders,
    plans,
    some_ranks,
    sub_epochs_of,
)
from tests.support.units import micro_batches, nested_bins, units_of

ORDERS = st.one_of(orders(), bin_orders(), st.builds(Drawn, nums_samples, st.integers(0, 9)))
KINDS: dict[str, Any] = {"plain": plans, "balanced": balanced_plans}


def range_of(values: list[int]) -> int:
    """Return by how much values differ at most."""
    return max(values, default=0) - min(values, default=0)


def units_by_slot(order: ip.Order) -> Units:
    """Return what finds the samples of the unit that a slot of the model reads."""
    epochs: dict[int, list[list[int]]] = {}

    def unit(slot: model.Slot) -> list[int]:
        if slot.epoch not in epochs:
            epochs[slot.epoch] = units_of(order, slot.epoch)
        return epochs[slot.epoch][slot.position]

    return unit


def listed(nested: Any) -> Any:
    """Return arrays in lists as lists in lists."""
    return [*map(listed, nested)] if isinstance(nested, list) else nested.tolist()


def flat(nested: Any, depth: int) -> Any:
    """Return nested batches of units as those of their samples."""
    return [flat(each, depth - 1) for each in nested] if depth else sum(nested, [])


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_a_plan_is_the_order_after_the_model(kind: str, data: st.DataObject) -> None:
    """Every batch is the order's units at the places that the model walks to, drawn as any."""
    plan = data.draw(KINDS[kind](ORDERS))
    unit = units_by_slot(plan.order)
    walked = model.walk(model.run_of(plan), epochs_of(plan))
    assert sub_epochs_of(plan) == [(there.epoch, there.sub_epoch) for there in walked]
    for epoch, sub_epoch, first_step, _, steps in walked:
        pair, some = (epoch, sub_epoch), some_ranks(plan.world_size)
        assert range(first_step, first_step + len(steps)) == plan.steps(*pair)
        drawn = [list(plan.batches(*pair, rank=rank)) for rank in range(plan.world_size)]
        in_bulk = {rank: list(plan.batches(*pair, rank=rank, units=True)) for rank in some}
        for rank in some:
            indices = np.concatenate([np.empty(0, np.int64), *drawn[rank]])
            assert indices.tolist() == plan.indices(*pair, rank=rank).tolist()
            sizes = [len(each.bins) for each in in_bulk[rank]]
            assert sizes == plan.batch_sizes(*pair, rank=rank).tolist()
        for i, step in enumerate(steps):
            num_valid = sum(not slot.padded for slot in step.slots)
            assert num_valid == plan.step_size(*pair, step=step.number)
            held = [[*map(unit, slots)] for slots in dealt(plan, step, unit)]
            assert [flat(units, 0) for units in held] == [rank[i].tolist() for rank in drawn]
            phase = plan._layout.phases[step.phase]
            for rank in some:
                counts = phase.inner_counts or (1,)
                inner = model.nest(held[rank], counts)
                num_valid = sum(not slot.padded for slot in step.ranks[rank])
                alone = plan.units(*pair, step=step.number, rank=rank)
                assert (
                    flat(held[rank], 0) == plan.batch(*pair, step=step.number, rank=rank).tolist()
                )
                for batch in (alone, in_bulk[rank][i]):
                    assert (num_valid, phase) == (batch.num_valid, batch.phase)
                    assert held[rank] == listed(batch.bins)
                    assert np.cumsum([0, *map(len, held[rank])]).tolist() == batch.offsets.tolist()
                    assert inner == listed(nested_bins(batch))
                    assert flat(inner, len(counts)) == listed(micro_batches(batch))


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_every_read_is_located(kind: str, data: st.DataObject) -> None:
    """`locate_all` names each slot that reads a sample, `locate` the first; others are nowhere."""
    plan = data.draw(KINDS[kind](ORDERS))
    unit = units_by_slot(plan.order)
    reads: dict[tuple[int, int], list[Any]] = defaultdict(list)
    num_read: Counter[int] = Counter()
    for epoch, sub_epoch, _, _, steps in model.walk(model.run_of(plan), epochs_of(plan)):
        for step in steps:
            for rank, slots in enumerate(dealt(plan, step, unit)):
                for i, slot in enumerate(slots):
                    num_read[slot.epoch] += not slot.padded
                    place = (epoch, sub_epoch, step.number, rank, i)
                    for sample in [] if slot.padded else unit(slot):
                        reads[slot.epoch, sample].append((slot.position, place))
    samples = np.arange(plan.order.num_samples)
    for epoch in range(epochs_of(plan)):
        expected = [[place for _, place in sorted(reads[epoch, each])] for each in samples.tolist()]
        places, offsets = plan.locate_all(samples, epoch)
        rows = list(zip(*(part.tolist() for part in places), strict=True))
        assert expected == [rows[a:b] for a, b in pairwise(offsets.tolist())]
        firsts = zip(*(part.tolist() for part in plan.locate(samples, epoch)), strict=True)
        assert [each[0] if each else (-1,) * 5 for each in expected] == list(firsts)
        assert num_read[epoch] == plan.account(epoch).num_read


@given(plans() | balanced_plans())
def test_the_account_counts_every_unit_slot_and_step(plan: ip.Plan) -> None:
    """num_read + num_dropped + num_finished is the epoch; slots are valid or padded; sums agree."""
    for epoch in range(epochs_of(plan)):
        account = plan.account(epoch)
        assert plan.order.num_units(epoch) == account.num_units
        assert account.num_units == account.num_read + account.num_dropped + account.num_finished
        begun = account.num_units if epoch < plan.start.epoch else 0
        begun = plan.start.position if epoch == plan.start.epoch else begun
        assert begun == account.num_finished
        assert plan.remainder == "drop" or not account.num_dropped
        assert plan.remainder == "pad" or not account.num_padded
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


@given(fresh_plans(remainder="carry"))
def test_carry_without_a_schedule_has_even_sub_epochs(plan: ip.Plan) -> None:
    """Without a schedule, sub-epochs under "carry" differ by at most one step."""
    plan = plan.replace(batch_size=plan._layout.phases[0].size)
    assert range_of([plan.steps(*pair).stop for pair in sub_epochs_of(plan)]) <= 1
