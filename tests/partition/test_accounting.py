"""The account of an epoch: where it changes, and however many sub-epochs there are."""

from dataclasses import astuple
from itertools import pairwise

import pytest
from hypothesis import given

import indexplan as ip
from indexplan.partition.account import changes
from indexplan.partition.remainders import REMAINDERS
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
