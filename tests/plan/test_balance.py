"""Balance: what each rank reads of a step is what plain integers say; the rest is as without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.plan import layout as module
from tests.golden.lines import cases, crc32, numbers
from tests.support import balance_oracle
from tests.support.units import micro_batches, units_of


def without(plan: ip.Plan) -> ip.Plan:
    """Return the plan without its balance."""
    changed = plan.replace(balance=None)
    return changed if plan._resumed is None else changed.resume(plan.start)


def test_a_rank_whose_units_are_as_many_as_its_steps() -> None:
    """Two units in the first step and none in the second are drawn as that, not one in each."""
    sizes = [ip.Phase(0, 4), ip.Phase(4, 1)]
    balance = ip.Balance([1, 2, 3, 4, 5])
    plan = ip.Plan(ip.Sequential(5), world_size=2, global_batch_size=sizes, balance=balance)
    by_rank = [[batch.tolist() for batch in plan.batches(0, rank=rank)] for rank in range(2)]
    assert [[[0, 3], [4]], [[1, 2], []]] == by_rank
    assert by_rank[1] == [plan.batch(0, step=step, rank=1).tolist() for step in range(2)]


@given(st.lists(st.integers(1, 60), min_size=1, max_size=90), st.integers(60, 200), st.data())
def test_bins_that_know_their_costs_agree_with_their_samples(
    lengths: list[int], most: int, data: st.DataObject
) -> None:
    """Packed draws no samples to tell what bins cost; by lengths of another column it does."""
    least, seed = data.draw(st.sampled_from([1, 4])), data.draw(st.integers(0, 9))
    order = ip.Packed(lengths, most, min_stratum=least, seed=seed)
    every = np.array([0]), np.array([order.num_units(1)])
    for row in (lengths, [length + 1 for length in lengths], [1 for _ in lengths]):
        for weights in ({}, {"linear": 3, "quadratic": 2}):
            balance = ip.Balance(row, **weights)
            expected = [
                balance_oracle.cost_of(balance, [row[i] for i in unit])
                for unit in units_of(order, 1)
            ]
            found = order.ip_costs(1, *every, balance.lengths, balance.cost)
            assert expected == found.tolist()


def plan_of(case: dict[str, Any]) -> ip.Plan:
    """Return the plan with balance of a case, over Sequential."""
    lengths, fields = numbers(case["lengths"]), {**case["fields"]}
    for name in ("batch_size", "global_batch_size"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    balance = ip.Balance(lengths, **case["weights"])
    return ip.Plan(ip.Sequential(len(lengths)), **fields, balance=balance)


@pytest.mark.parametrize("case", cases("balance_v1"), ids=lambda case: case["fingerprint"])
def test_known_answers(case: dict[str, Any]) -> None:
    """The batches are those of the first version, which plain Python once wrote down."""
    plan = plan_of(case)
    assert case["fingerprint"] == plan.fingerprint[:16]
    steps = [
        [plan.batch(0, part, step=step, rank=rank).tolist() for rank in range(plan.world_size)]
        for part in range(plan.sub_epochs)
        for step in range(plan.steps(0, part).stop)
    ]
    assert case["num_steps"] == len(steps)
    assert [case["first_step"], case["last_step"]] == [steps[0], steps[-1]]
    assert case["crc32"] == crc32([sample for step in steps for batch in step for sample in batch])


@pytest.mark.parametrize("remainder", ["spread", "pad"])
@pytest.mark.parametrize(
    ("world_size", "size"), [(2**31 - 1, 10), (2**31 - 1, 2**40), (2**20, (2**20, 2**20)), (3, 70)]
)
def test_far_more_ranks_and_slots_than_units(remainder: str, world_size: int, size: Any) -> None:
    """Balance costs what there is, be there billions of ranks, inner batches or padded slots."""
    lengths = [1 + 7 * i % 20 for i in range(60)]
    fields = {"world_size": world_size, "global_batch_size": size, "remainder": remainder}
    plan = ip.Plan(ip.Shuffle(60, seed=3), **fields, balance=ip.Balance(lengths))
    where, before = plan.locate(np.arange(60), 0), without(plan).locate(np.arange(60), 0)
    assert before.step.tolist() == where.step.tolist()
    assert sorted(zip(before.step, before.rank, before.slot, strict=True)) == sorted(
        zip(where.step, where.rank, where.slot, strict=True)
    )
    if world_size > 3:
        for sample in range(0, 60, 7):
            step, rank, slot = (int(part[sample]) for part in where[2:])
            assert sample == plan.batch(0, step=step, rank=rank)[slot]


def test_verify_notices_a_balance_that_loses_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a unit dealt twice, and another not at all, `verify` would say so, and where."""
    balance = ip.Balance([1 + 7 * i % 20 for i in range(60)])
    plan = ip.Plan(ip.Shuffle(60, seed=3), world_size=4, batch_size=3, balance=balance)
    assert ip.verify(plan).ok

    def losing(costs: np.ndarray, cells: Any) -> np.ndarray:
        units = balanced(costs, cells)
        units[1] = units[0]
        return units

    balanced = module.balanced
    monkeypatch.setattr(module, "balanced", losing)
    plan = plan.replace(balance=ip.Balance(balance.lengths))  # which keeps no answers
    report = ip.verify(plan)
    assert not report.ok
    assert "epoch 0, sub-epoch 0, step 2: rank" in str(report)
    assert "is not found again" in str(report)


@pytest.mark.parametrize("size", [32, (4, 8)])
def test_work_is_more_even_on_average(size: Any) -> None:
    """The slowest of 8 ranks, and in each inner batch, comes within 4% of the mean, on average.

    Without balance it was 25% off, of inner batches twice as much; one step may fare worse with it.
    """
    lengths = np.random.default_rng(0).lognormal(5.5, 1, 8192).clip(1, 2048).astype(int)
    plan = ip.Plan(ip.Shuffle(8192), world_size=8, batch_size=size)
    ratios = []
    for each in (plan, plan.replace(balance=ip.Balance(lengths))):
        steps = [[each.units(0, step=s, rank=rank) for rank in range(8)] for s in each.steps(0)]
        cut = [[micro_batches(batch) for batch in ranks] for ranks in steps]
        # by step, rank and inner batch
        work = np.array([[[lengths[b].sum() for b in rank] for rank in step] for step in cut])
        slowest = work.max(axis=1).sum(axis=1)
        ratios.append((8 * slowest / work.sum(axis=(1, 2))).mean())
    before, after = ratios
    assert before > (1.2 if size == 32 else 1.5)
    assert after < 1.04
