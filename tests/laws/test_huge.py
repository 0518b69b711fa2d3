"""At any size, any world and any epoch the answers agree, and cost what they hold (goal 2)."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from tests.support.strategies import remainders
from tests.support.units import num_valid

LAST_EPOCH = 2**32 - 1
LARGE = st.one_of(
    st.sampled_from([10**12, 2**32 + 1, 2**62, 2**63 - 2, 2**63 - 1]), st.integers(10**9, 2**63 - 1)
)


def up_to(last: int) -> st.SearchStrategy[int]:
    """Return a strategy for 0 to last, which favours the ends."""
    ends = [i for i in (0, 1, last - 1, last) if 0 <= i <= last]
    return st.one_of(st.sampled_from(ends), st.integers(0, last))


@st.composite
def huge_plans(draw: st.DrawFn) -> ip.Plan:
    """Draw a plan of 10**9 to 2**63 - 1 samples, for up to 100,000 ranks."""
    n = draw(LARGE)
    order = draw(
        st.sampled_from(
            [
                ip.Sequential(n),
                ip.Shuffle(n, seed=1),
                ip.BlockShuffle(n, 10**6 + 7, window=100),
                ip.BlockShuffle(n, n // 3 + 1, window=2),
            ]
        )
    )
    world_size = draw(st.sampled_from([1, 7, 64, 100_000]))
    sub_epochs = draw(st.sampled_from([1, 40, 1000]))
    name = draw(st.sampled_from(["batch_size", "global_batch_size"]))
    size = st.integers(1, 10 * (1 if name == "batch_size" else world_size))
    places = [0, *draw(st.sampled_from([[], [n // 2], [5, 3 * n + 1], [n * 2**32 - n // 3]]))]
    phases = [ip.Phase(place, draw(size), {"phase": i}) for i, place in enumerate(places)]
    remainder = draw(remainders)
    fields: dict[str, Any] = {name: phases, "world_size": world_size, "remainder": remainder}
    return ip.Plan(order, sub_epochs=sub_epochs, **fields)


def test_a_step_that_ends_past_2_to_the_63_from_its_span_is_located() -> None:
    """The last step of an epoch of 2**63 - 1 samples reads two of the next: the third is found."""
    phases = [ip.Phase(0, 1), ip.Phase(5, 2), ip.Phase(3 * (2**63 - 1) + 1, 3)]
    plan = ip.Plan(ip.Sequential(2**63 - 1), world_size=1, batch_size=phases, remainder="carry")
    epoch, step = LAST_EPOCH - 1, 2**63 // 3
    assert [2**63 - 2, 0, 1] == plan.batch(epoch, step=step, rank=0).tolist()
    found = plan.locate([0, 1], epoch + 1)
    assert ([epoch] * 2, [step] * 2, [1, 2]) == (
        found.epoch.tolist(),
        found.step.tolist(),
        found.slot.tolist(),
    )


@given(huge_plans(), st.data())
def test_any_batch_is_located_where_it_was_read(plan: ip.Plan, data: st.DataObject) -> None:
    """`locate` inverts `batch` from the first step to the last, and a resume reads on there."""
    last = LAST_EPOCH - (plan.remainder == "carry")  # whose steps read the epoch after, too
    epoch = data.draw(up_to(last), label="epoch")
    sub_epoch = data.draw(up_to(plan.sub_epochs - 1), label="sub_epoch")
    step = data.draw(up_to(plan.steps(epoch, sub_epoch).stop - 1), label="step")
    rank = data.draw(up_to(plan.world_size - 1), label="rank")
    here: dict[str, Any] = {"step": step, "rank": rank}
    batch = plan.batch(epoch, sub_epoch, **here)
    valid = num_valid(plan, epoch, sub_epoch, **here)
    found = plan.locate(batch[:valid], epoch)
    after = plan.locate(batch[:valid], min(epoch + 1, LAST_EPOCH))  # where "carry" reads on
    if plan.remainder != "carry":
        after = found
    expected = [np.full(valid, part) for part in (epoch, sub_epoch, step, rank)]
    for part, there, then in zip((*expected, np.arange(valid)), found, after, strict=True):
        assert np.all((part == there) | (part == then))
    if valid:
        index = int(batch[0])
        places = [plan.locate(index, e) for e in (epoch, min(epoch + 1, LAST_EPOCH))]
        assert (epoch, sub_epoch, step, rank, 0) in places

    steps: dict[str, Any] = {"rank": rank, "start_step": step, "stop_step": step + 1}
    assert np.array_equal(batch, plan.indices(epoch, sub_epoch, **steps))
    assert np.array_equal(batch, *plan.batches(epoch, sub_epoch, **steps))
    assert [len(batch)] == plan.batch_sizes(epoch, sub_epoch, **steps).tolist()
    end = {**steps, "start_step": step + 1}
    assert plan.indices(epoch, sub_epoch, **end).tolist() == []
    assert plan.batch_sizes(epoch, sub_epoch, **end).tolist() == []
    assert list(plan.batches(epoch, sub_epoch, **end)) == []

    rest = plan.resume(plan.cursor(epoch, sub_epoch, step=step))
    assert np.array_equal(batch, rest.batch(epoch, sub_epoch, **here))
    assert plan.steps(epoch, sub_epoch).stop == rest.steps(epoch, sub_epoch).stop
    account = rest.account(epoch, sub_epoch)
    left = plan.account(epoch, sub_epoch).num_units - account.num_finished
    assert left == account.num_read + account.num_dropped


@given(huge_plans(), st.data())
def test_steps_and_ranks_follow_each_other(plan: ip.Plan, data: st.DataObject) -> None:
    """A step begins where the one before ends, and so does each rank's share of it."""
    plan = plan.replace(order=ip.Sequential(plan.order.num_samples))
    epoch = data.draw(up_to(LAST_EPOCH - 1), label="epoch")
    sub_epoch = data.draw(up_to(plan.sub_epochs - 1), label="sub_epoch")
    step = data.draw(up_to(plan.steps(epoch, sub_epoch).stop - 1), label="step")
    start = plan.cursor(epoch, sub_epoch, step=step).position
    low = data.draw(up_to(plan.world_size - 1), label="rank")
    ranks = range(low, min(low + 3, plan.world_size))
    units = [
        index
        for rank in ranks
        for index in plan.batch(epoch, sub_epoch, step=step, rank=rank).tolist()
    ]
    units = units[: sum(num_valid(plan, epoch, sub_epoch, step=step, rank=r) for r in ranks)]
    n = plan.order.num_samples
    assert not units or [(units[0] + i) % n for i in range(len(units))] == units
    if low == 0 and units:
        assert units[0] == start
    if ranks.stop == plan.world_size and units and step + 1 < plan.steps(epoch, sub_epoch).stop:
        assert units[-1] + 1 == plan.cursor(epoch, sub_epoch, step=step + 1).position


@pytest.mark.parametrize("remainder", REMAINDERS)
@pytest.mark.parametrize("size", [2**60 + 1, 2**61, 2**62 - 1])
@pytest.mark.parametrize("world_size", [1, 2, 7])
def test_steps_too_large_to_read_are_counted_all_the_same(
    remainder: str, size: int, world_size: int
) -> None:
    """Sizes and places of steps that hold 2**60 units and more are exact: nothing overflows."""
    n = 2**63 - 1
    plan = ip.Plan(
        ip.Sequential(n), world_size=world_size, global_batch_size=size, remainder=remainder
    )
    steps, ranks = range(plan.steps(0).stop), range(world_size)
    by_rank = [plan.batch_sizes(0, rank=rank).tolist() for rank in ranks]
    account = plan.account(0)
    assert (account.min_batch_size, account.max_batch_size) == (
        min(map(min, by_rank)),
        max(map(max, by_rank)),
    )
    assert account.num_steps == len(steps)
    assert sum(map(sum, by_rank)) == account.num_read + account.num_padded + (
        (-n) % size if remainder == "carry" else 0
    )
    for step in steps:
        sizes = [of_rank[step] for of_rank in by_rank]
        assert max(sizes) - min(sizes) <= 1
        valid = [num_valid(plan, 0, None, step=step, rank=rank) for rank in ranks]
        assert remainder == "pad" or valid == sizes
        assert sum(valid) == plan.step_size(0, step=step)
        start = plan.cursor(0, step=step).position
        for rank in ranks:
            before = sum(sizes[:rank])
            for slot in {0, valid[rank] // 2, valid[rank] - 1} - {-1}:
                position = start + before + slot
                if position < n and slot < valid[rank]:
                    assert (0, step, rank, slot) == plan.locate(position, 0)[1:]


def test_a_step_may_span_many_epochs() -> None:
    """Under "carry", a step far larger than the dataset reads all epochs that it covers."""
    plan = ip.Plan(ip.Sequential(3), world_size=2, global_batch_size=2**61, remainder="carry")
    where = plan.locate([0, 1, 2], epoch=2**31)
    assert where.epoch.tolist() == where.step.tolist() == where.sub_epoch.tolist() == [0, 0, 0]
    half = 2**60
    place = 3 * 2**31
    assert place < half
    assert where.rank.tolist() == [0, 0, 0]
    assert where.slot.tolist() == [place, place + 1, place + 2]
    assert plan.steps(1).stop == plan.steps(2**31).stop == 0
    assert plan.account(2**31).num_read == 3


@pytest.mark.parametrize("n", [10**12, 2**63 - 1])
@pytest.mark.parametrize("remainder", REMAINDERS)
def test_nothing_of_the_size_of_the_dataset_is_allocated(n: int, remainder: str) -> None:
    """Every question about one step of 100,000 ranks is answered within a megabyte."""
    plan = ip.Plan(
        ip.Shuffle(n), world_size=100_000, batch_size=8, sub_epochs=1000, remainder=remainder
    )
    plan.locate(plan.batch(0, 0, step=0, rank=0), 0)  # compiles
    tracemalloc.start()
    for epoch, sub_epoch in [(1, 0), (7, 999)]:
        step = plan.steps(epoch, sub_epoch).stop - 1
        batch = plan.batch(epoch, sub_epoch, step=step, rank=0)
        assert [len(batch)] == plan.batch_sizes(epoch, sub_epoch, rank=0, start_step=step).tolist()
        plan.locate(batch, epoch)
        plan.step_size(epoch, sub_epoch, step=step)
        plan.resume(plan.cursor(epoch, sub_epoch, step=step)).batch(
            epoch, sub_epoch, step=step, rank=99_999
        )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10**6
