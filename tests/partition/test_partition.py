"""The account of an epoch, and remainder policies: the steps of any that is added follow."""

from __future__ import annotations

from dataclasses import astuple
from itertools import pairwise

import pytest
from hypothesis import given

import indexplan as ip
from indexplan.partition.account import changes
from indexplan.partition.remainders import REMAINDERS, Policy
from tests.support.strategies import EPOCHS, plans

COUNTS = ("units", "read", "dropped", "finished", "padded", "steps")
MANY = 2**60


@given(plan=plans())
def test_what_lies_between_changes_is_alike(plan: ip.Plan) -> None:
    """Sub-epochs between two changes have the same account, as long as nothing is carried."""
    plan = plan if plan.remainder != "carry" else plan.replace(remainder="pad")
    for epoch in range(EPOCHS):
        cuts = changes(plan._layout.partition, epoch)
        assert [0, plan.sub_epochs] == [cuts[0], cuts[-1]]
        assert sorted(set(cuts)) == cuts
        for start, stop in pairwise(cuts):
            accounts = {astuple(plan.account(epoch, number))[:-2] for number in range(start, stop)}
            assert 1 == len(accounts)


@pytest.mark.parametrize("remainder", REMAINDERS)
def test_any_number_of_sub_epochs(remainder: str) -> None:
    """2**60 sub-epochs of 5 units, and 7 of 6, are counted as fast as one."""
    order = ip.Sequential(5 * MANY + 7)
    phases = [ip.Phase(0, 2), ip.Phase((0, MANY // 2), 1)]
    plan = ip.Plan(order, world_size=2, batch_size=phases, sub_epochs=MANY, remainder=remainder)
    whole = plan.account(0)
    first, half = plan.account(0, 0), plan.account(0, MANY // 2)
    assert whole.num_units == order.num_samples
    if remainder == "carry":
        assert whole.num_read == order.num_samples
        return
    large, small = plan.account(0, 6), plan.account(0, 7)
    assert first == large
    for name in COUNTS:
        counts = [getattr(part, f"num_{name}") for part in (large, small, half)]
        each = [7, MANY // 2 - 7, MANY // 2]
        total = sum(a * b for a, b in zip(counts, each, strict=True))
        assert total == getattr(whole, f"num_{name}"), name
    # a rank's units differ by at most one in a sub-epoch: no more can come together than there are
    per_rank = whole.min_per_rank, whole.max_per_rank
    assert sum(per_rank) == whole.num_read + whole.num_padded


class Short(Policy):
    """All steps are full but for the last."""

    def lengths(self, left: int, size: int) -> tuple[int, ...]:
        return left // size * size, left % size


def test_a_policy_that_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """It cuts the last steps as it says; accounts, cursors and `locate` follow."""
    monkeypatch.setitem(REMAINDERS, "short", Short("only the last step is smaller"))  # type: ignore[misc]
    phases = [ip.Phase(0, 4), ip.Phase(50, 3)]
    plan = ip.Plan(ip.Shuffle(100), world_size=2, batch_size=phases, remainder="short")  # type: ignore[arg-type]
    assert [8] * 7 + [6] * 7 + [2] == [plan.step_size(0, step=step) for step in plan.steps(0)]
    assert (100, 0, 0, 15) == (
        plan.account(0).num_read,
        plan.account(0).num_dropped,
        plan.account(0).num_padded,
        plan.account(0).num_steps,
    )
    rest = plan.resume(plan.cursor_at(98))
    assert (plan.cursor_at(98), range(14, 15)) == (plan.cursor(0, step=14), rest.steps(0))
    for each in (plan, rest, plan.replace(world_size=5, batch_size=7, sub_epochs=3)):
        report = ip.verify(each)
        assert report.ok, str(report)
