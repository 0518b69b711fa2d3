"""A plan's methods agree with each other: goals 2, 3 and 6 of the design."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan.plan.totals import _numbers
from tests.support.bins import Drawn, bin_orders
from tests.support.examples import examples
from tests.support.lengths import binned
from tests.support.planned import phase_at
from tests.support.strategies import (
    EPOCHS,
    balanced_plans,
    nums_samples,
    orders,
    plans,
    steps_of,
    sub_epochs_of,
)
from tests.support.units import micro_batches, valid_samples


def draw_step(data: st.DataObject, plan: ip.Plan) -> tuple[int, int, int] | None:
    """Draw one of a plan's steps, if it has any."""
    steps = steps_of(plan)
    return data.draw(st.sampled_from(steps), label="step") if steps else None


@pytest.mark.parametrize("batch_size", [100, 700, 40_000])
def test_many_batches_are_drawn_as_one(batch_size: int) -> None:
    """However many are drawn at a time, few at first, the stream is the share in pieces."""
    plan = ip.Plan(ip.Shuffle(150_000), world_size=1, batch_size=batch_size)
    batches = list(plan.batches(0, rank=0, start_step=1))
    assert plan.batch_sizes(0, rank=0, start_step=1).tolist() == [len(batch) for batch in batches]
    indices = plan.indices(0, rank=0, start_step=1)
    np.testing.assert_array_equal(indices, np.concatenate(batches))


@given(plans() | balanced_plans(), st.data())
def test_start_step_and_stop_step_cut_what_lies_between(plan: ip.Plan, data: st.DataObject) -> None:
    """`indices`, `batches` and `batch_sizes` of [start_step, stop_step) are slices of the whole."""
    pair = data.draw(st.sampled_from(sub_epochs_of(plan, EPOCHS + 2)), label="sub-epoch")
    rank = data.draw(st.integers(0, plan.world_size - 1), label="rank")
    first, last = plan.steps(*pair).start, plan.steps(*pair).stop
    start, stop = sorted(data.draw(st.tuples(*[st.integers(first, last)] * 2), label="steps"))
    cut: dict[str, Any] = {"rank": rank, "start_step": start, "stop_step": stop}
    batches = [batch.tolist() for batch in plan.batches(*pair, rank=rank)]
    expected = batches[start - first : stop - first]
    assert expected == [batch.tolist() for batch in plan.batches(*pair, **cut)]
    assert [len(batch) for batch in expected] == plan.batch_sizes(*pair, **cut).tolist()
    assert sum(expected, start=[]) == plan.indices(*pair, **cut).tolist()


@pytest.mark.parametrize("world_size", range(1, 7))
def test_every_share_of_small_steps_is_located(world_size: int) -> None:
    """All of them, since those that begin at a late rank and go on with rank 0 are seldom drawn."""
    for size in range(1, 14):
        plan = ip.Plan(ip.Sequential(40), world_size=world_size, global_batch_size=size)
        where = plan.locate(range(40), 0)
        for step in plan.steps(0):
            for rank in range(world_size):
                batch = plan.batch(0, step=step, rank=rank)
                found = [where.step[batch], where.rank[batch], where.slot[batch]]
                assert [[step, rank, slot] for slot in range(len(batch))] == np.transpose(
                    found
                ).tolist()


@given(plans(), st.data())
def test_locate_keeps_the_shape_of_what_it_is_asked(plan: ip.Plan, data: st.DataObject) -> None:
    """Arrays of any shape give arrays of that shape; integers of any kind give integers."""
    n = plan.order.num_samples
    epoch = data.draw(st.integers(0, 2**32 - 2), label="epoch")
    index = data.draw(st.integers(0, n - 1), label="index")
    one = plan.locate(index, epoch)
    assert all(type(part) is int for part in one)
    assert one == plan.locate(np.uint8(index), epoch) == plan.locate(np.int64(index), epoch)
    grid = plan.locate(np.full((2, 1, 3), index), epoch)
    for part, single in zip(grid, one, strict=True):
        assert np.array_equal(np.full((2, 1, 3), single), part)
    assert all(part.shape == (0,) for part in plan.locate([], epoch))


@given(plans(), st.data())
def test_an_open_world_size_answers_what_does_not_depend_on_it(
    plan: ip.Plan, data: st.DataObject
) -> None:
    """With a global_batch_size all but ranks works, and filling in any world size agrees."""
    size = plan.batch_size if plan.global_batch_size is None else plan.global_batch_size
    open_plan = plan.replace(world_size=None, global_batch_size=size)
    plan = open_plan.replace(world_size=plan.world_size)
    assert plan.fingerprint != open_plan.fingerprint
    for pair in sub_epochs_of(plan):
        assert plan.steps(*pair).stop == open_plan.steps(*pair).stop
    drawn = draw_step(data, plan)
    if drawn is not None:
        *pair, step = drawn
        assert plan.step_size(*pair, step=step) == open_plan.step_size(*pair, step=step)
        for column in (None, range(plan.order.num_samples)):
            totals = [each.step_total(column, *pair, step=step) for each in (plan, open_plan)]
            assert totals[0] == totals[1]
        assert phase_at(plan, *pair, step) == phase_at(open_plan, *pair, step)
        cursor = open_plan.cursor(*pair, step=step)
        assert plan.cursor(*pair, step=step) == cursor
        rest = open_plan.resume(cursor)
        assert steps_of(plan.resume(cursor)) == steps_of(rest)
    closed, opened = plan.account(0), open_plan.account(0)
    for name in ("units", "read", "dropped", "finished", "padded", "steps"):
        assert getattr(closed, f"num_{name}") == getattr(opened, f"num_{name}")
    assert opened.min_batch_size is opened.max_batch_size is None
    assert opened.min_per_rank is opened.max_per_rank is None


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_arrays_are_the_callers_own(remainder: str) -> None:
    """Whatever a caller writes into an array, no later answer and no sibling array changes."""
    for order in (ip.Sequential(50), ip.Shuffle(50, seed=1), ip.BlockShuffle(50, 7, window=2)):
        plan = ip.Plan(order, world_size=3, batch_size=(2, 3), remainder=remainder)

        def answers(plan: ip.Plan = plan) -> list[np.ndarray]:
            last = plan.steps(epoch=0).stop - 1
            samples = np.arange(50)
            return [
                *(plan.batch(epoch=0, step=step, rank=1) for step in (0, 0, last)),
                *plan.batches(epoch=0, rank=1),
                *micro_batches(plan.units(epoch=0, step=last, rank=0)),
                plan.indices(epoch=0, rank=1),
                plan.batch_sizes(epoch=0, rank=1),
                plan.units(epoch=0, step=last, rank=1).offsets,
                *plan.locate(samples, epoch=0),
                samples,
                plan.order.take(0, 0, 50),
                plan.order.locate(0, samples),
                plan.order.offsets(0, 0, 50),
            ]

        expected = [array.tolist() for array in answers()]
        arrays = answers()
        for i, array in enumerate(arrays):
            array[:] = -7  # a read-only array would raise
            assert expected[i + 1 :] == [after.tolist() for after in arrays[i + 1 :]]
        assert expected == [array.tolist() for array in answers()]


@pytest.mark.parametrize(
    ("order", "remainder", "size"),
    [
        (ip.Sequential(5), "pad", 2**60),
        (ip.Sequential(5), "pad", 2**27),  # of few units, but of many readings
        (ip.Sequential(5), "pad", (2**59, 2)),
        (ip.Sequential(5), "carry", 2**60),
        (ip.Sequential(2**61), "drop", (2**30, 2**30)),
        (ip.TokenBudget([5] * 20, 20), "pad", 2**60),
    ],
    ids=str,
)
def test_a_batch_that_no_memory_holds_is_refused(
    order: ip.Order, remainder: str, size: Any
) -> None:
    """A plan's JSON may hold one; its numbers are told, and its units are not listed for hours."""
    plan = ip.Plan(order, world_size=1, batch_size=size, remainder=remainder)  # type: ignore[arg-type]
    listed: list[Callable[[], Any]] = [
        lambda: plan.batch(0, step=0, rank=0),
        lambda: micro_batches(plan.units(0, step=0, rank=0)),
        lambda: plan.units(0, step=0, rank=0).offsets,
        lambda: plan.indices(0, rank=0),
        lambda: next(plan.batches(0, rank=0)),
        lambda: next(plan.batches(0, rank=0, units=True)),
    ]
    for ask in listed:
        with pytest.raises(ip.IndexPlanError, match="a step that is listed must be at most"):
            ask()
    assert plan.batch_sizes(0, rank=0)[0] == (2**27 if size == 2**27 else 2**60)
    assert plan.locate(3, 0).step == 0
    ip.verify(plan, [0])


# What all ranks of a step read, summed, is what their batches hold.

WINDOWS = st.integers(3, 60).map(
    lambda n: ip.DocumentWindows([i * 7 % 23 + 1 for i in range(n)], 12, block_size=8)
)
ORDERS = st.one_of(
    orders(), bin_orders(), binned(30), WINDOWS, st.builds(Drawn, nums_samples, st.integers(0, 9))
)
VALUES = st.one_of(st.integers(0, 9), st.integers(-(2**50), 2**50))


@examples(80)
@given(plans(ORDERS), st.data())
def test_totals_are_those_of_the_batches(plan: ip.Plan, data: st.DataObject) -> None:
    """Under all remainders, fresh and resumed, of samples, of bins and of parts of samples."""
    steps = steps_of(plan, 2)
    if not steps:
        return
    n = plan.order.num_samples
    column = data.draw(st.lists(VALUES, min_size=n, max_size=n), label="column")
    for *pair, step in data.draw(st.lists(st.sampled_from(steps), max_size=4), label="steps"):
        samples = valid_samples(plan, *pair, step=step)
        assert len(samples) == plan.step_total(None, *pair, step=step)
        expected = sum(column[sample] for sample in samples)
        several = (column, np.array(column), ip.Column(column))
        for given_ in () if plan.order.traits.cuts_samples else several:  # which has no sums
            total = plan.step_total(given_, *pair, step=step)
            assert (expected, int) == (total, type(total))


@pytest.mark.parametrize("dtype", ["int8", "uint8", ">i4", "<u4", "int64", "uint64", "<u8", ">u8"])
def test_any_integers(dtype: str, tmp_path: Path) -> None:
    """Of any type and byte order, in memory or in a file, of which only the step is read."""
    column = np.arange(50).astype(dtype)
    np.save(tmp_path / "a.npy", column)
    column.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", dtype, "r")
    assert np.shares_memory(mapped, _numbers(mapped, 50)[1]) or not column.dtype.isnative
    plan = ip.Plan(ip.Shuffle(50), world_size=2, batch_size=5)
    expected = sum(valid_samples(plan, 0, step=2))
    some: list[Any] = [column, column.tolist(), tmp_path / "a.npy", mapped]
    assert {expected} == {plan.step_total(each, 0, step=2) for each in some}
    if column.dtype == np.uint64:  # a number past 2**63 is one, and no negative one
        column[0] = 2**63
        with pytest.raises(ip.IndexPlanError, match=f"got {2**63 + 1225};"):
            plan.replace(order=ip.Sequential(50), batch_size=25).step_total(column, 0, step=0)


@pytest.mark.parametrize(("value", "num"), [(2**62, 3), (-(2**62), 3), (2**63 - 1, 100)])
def test_sums_are_exact_up_to_the_last(value: int, num: int) -> None:
    """A sum that an int64 holds is right, though parts of it might be none; others are refused."""
    column = np.full(num, value)
    plan = ip.Plan(ip.Sequential(num), world_size=1, batch_size=num)
    with pytest.raises(ip.IndexPlanError, match=f"got {value * num};"):
        plan.step_total(column, 0, step=0)
    column[(num + 1) // 2 :] *= -1  # the first half alone is too large
    assert value * (num % 2) == plan.step_total(column, 0, step=0)


def test_a_step_larger_than_what_is_drawn_at_a_time() -> None:
    """A global batch of 200,000 units is summed in pieces."""
    plan = ip.Plan(ip.Shuffle(400_000), world_size=4, batch_size=50_000)
    column = np.arange(400_000)
    expected = sum(int(plan.batch(0, step=0, rank=rank).sum()) for rank in range(4))
    assert (200_000, expected) == (
        plan.step_total(None, 0, step=0),
        plan.step_total(column, 0, step=0),
    )
