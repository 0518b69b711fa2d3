"""`plan.step_total`: what all ranks of a step read, summed, is what their batches hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.plan.totals import _numbers
from tests.support.bins import Drawn, bin_orders
from tests.support.examples import examples
from tests.support.lengths import binned
from tests.support.strategies import nums_samples, orders, plans, steps_of

WINDOWS = st.integers(3, 60).map(
    lambda n: ip.DocumentWindows([i * 7 % 23 + 1 for i in range(n)], 12, block_size=8)
)
ORDERS = st.one_of(
    orders(), bin_orders(), binned(30), WINDOWS, st.builds(Drawn, nums_samples, st.integers(0, 9))
)
VALUES = st.one_of(st.integers(0, 9), st.integers(-(2**50), 2**50))


def valid_samples(plan: ip.Plan, *pair: int, step: int) -> list[int]:
    """Return the samples that all ranks read in a step, one by one, without padding."""
    batches = [plan.units(*pair, step=step, rank=rank) for rank in range(plan.world_size or 1)]
    parts = [each.samples[: each.offsets[each.num_valid]] for each in batches]
    return list(np.concatenate(parts).tolist())


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
