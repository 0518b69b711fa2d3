"""Chains of exclusions and skips: each costs its own part, and reads what its JSON reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import expand
from tests.support.examples import examples

Int64 = NDArray[np.int64]


@ip.register
@dataclass(frozen=True, eq=False)
class Counted(ip.Order):
    """The samples in turn; it counts those that it was asked to find."""

    num_samples: int

    algorithm = "tests-counted-v1"
    asked: ClassVar[list[int]] = []

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        out[:] = expand(starts, stops)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        self.asked.append(len(indices))
        return np.arange(len(indices)), indices.copy()


@pytest.mark.parametrize("remainder", ["spread", "pad", "carry", "drop"])
@pytest.mark.parametrize("num", [16, 64])
def test_an_exclusion_costs_its_own_samples(num: int, remainder: Any) -> None:
    """A run that excludes samples often finds each of them a fixed number of times, not each time.

    Before, the 64 groups of one epoch, 640 samples, were found 32 times each.
    """
    plan = ip.Plan(Counted(5000), world_size=2, batch_size=5, remainder=remainder)
    Counted.asked.clear()
    for group in range(num):
        cursor = plan.cursor(0, step=group + 1)
        samples = np.arange(10) * 300 + group
        order = ip.Without(plan.order, samples + 1000, since=cursor)
        plan = plan.replace(order=order).resume(cursor)
        plan.batch(0, step=group + 1, rank=1)
    assert plan.account(0).num_excluded <= 10 * num
    assert sum(Counted.asked) <= 4 * 10 * num


def test_a_batch_after_many_places_finds_nothing_again() -> None:
    """Once an epoch is known, its batches and questions search for no excluded sample."""
    plan = ip.Plan(Counted(5000), world_size=2, batch_size=5)
    for group in range(20):
        cursor = plan.cursor(group // 4, step=group % 4)
        order = ip.Without(plan.order, [3000 + group], since=cursor)
        plan = plan.replace(order=order).resume(cursor)
    first = plan.batch(4, step=8, rank=0)
    Counted.asked.clear()
    assert first.tolist() == plan.batch(4, step=8, rank=0).tolist()
    plan.units(4, step=9, rank=1)
    plan.account(4)
    plan.cursor(4, step=10)
    assert Counted.asked == []


INNER = [
    ip.Shuffle(60, seed=1),
    ip.TokenBudget(np.arange(1, 61), max_tokens=90),
    ip.Weighted(np.arange(1.0, 61.0), epoch_size=50),
]


@examples(60)
@given(
    inner=st.sampled_from(INNER),
    cut=st.sampled_from(["piece", "unit"]),
    drawn=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7), st.integers(1, 3)), max_size=12),
    parts=st.sampled_from([1, 3]),
)
def test_a_chain_reads_what_its_json_reads(
    inner: ip.Order, cut: Any, drawn: list[tuple[int, int, int]], parts: int
) -> None:
    """An order that was made step by step equals one that is made at once, in all it answers."""
    plan = ip.Plan(inner, world_size=2, batch_size=1, sub_epochs=parts)
    left = iter(np.random.default_rng(5).permutation(60).tolist())
    for epoch, step, num in sorted(drawn, key=lambda each: each[0]):
        steps = plan.steps(epoch) if parts == 1 else plan.steps(epoch, 0)
        cursor = plan.cursor(epoch, 0, step=min(step, steps.stop))
        try:
            order = ip.Without(plan.order, [next(left) for _ in range(num)], since=cursor, cut=cut)
        except ip.IndexPlanError:  # places that go back
            continue
        plan = plan.replace(order=order)
        again = ip.Plan.from_json(plan.to_json(), columns=list(plan.order.columns.values()))
        assert again.cursor(epoch, 0, step=0) == plan.cursor(epoch, 0, step=0)
        assert plan.cursor(epoch, 0, step=0).order == plan.order.to_dict()
        for each in range(3):
            units = plan.order.num_units(each)
            assert units == again.order.num_units(each)
            read = plan.order.take(each, 0, units)
            assert read.tolist() == again.order.take(each, 0, units).tolist()
            assert plan.account(each) == again.account(each)
            for one, other in zip(
                *(order.locate_all(each, np.arange(60)) for order in (plan.order, again.order)),
                strict=True,
            ):
                assert one.tolist() == other.tolist()
            for part in range(parts):
                assert plan.steps(each, part) == again.steps(each, part)
