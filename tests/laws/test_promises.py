"""What docstrings and pages say of an order holds in epochs 0 to 5, and after resumes elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.laws.promises import EPOCHS, ORDERS, flat, read, units_of
from tests.support.examples import examples


@pytest.mark.parametrize("name", ORDERS)
@examples(30)
@given(data=st.data())
def test_what_is_stated_holds_in_every_epoch(name: str, data: st.DataObject) -> None:
    """In epochs 0 to 5, each of which is stopped and resumed on other ranks."""
    order = ORDERS[name].make(data.draw)
    assert ORDERS[name].holds(order, read(data.draw, order)), order


def test_removed_samples_are_not_replaced() -> None:
    """As subsets.md says: the source that loses samples is read less, and the other as before."""
    mixture = ip.Mixture({"a": ip.Shuffle(40, seed=1), "b": ip.Shuffle(60)}, {"a": 1, "b": 1})
    left = ip.Without(mixture, range(0, 40, 2))
    for epoch in EPOCHS:
        before = units_of(mixture, epoch)
        assert flat(units_of(left, epoch)) == [s for s in flat(before) if s >= 40 or s % 2]


@pytest.mark.parametrize(
    "inside",
    [
        ip.Shuffle(120),
        ip.Shuffle(121),
        ip.Epochs(ip.Shuffle(120), 41),
        ip.Without(ip.Shuffle(121), [3, 50]),
        ip.Mixture({"a": ip.Epochs(ip.Shuffle(121), 121)}, {"a": 1}),
    ],
)
def test_copies_share_a_step(inside: ip.Order) -> None:
    """Under "drop", as subsets.md says, in all epochs and after a resume on fewer ranks."""
    order = ip.Repeat(inside, copies=3, span=24)
    plan = ip.Plan(order, world_size=4, global_batch_size=24, remainder="drop")
    resumed = plan.replace(world_size=3).resume(plan.cursor(1, step=5))
    for each, ranks in ((plan, 4), (resumed, 3)):
        for epoch in range(each.start.epoch, 6):
            for step in each.steps(epoch):
                parts = [each.batch(epoch, step=step, rank=rank) for rank in range(ranks)]
                assert {3} == set(Counter(np.concatenate(parts).tolist()).values())
                assert all(len({*part.tolist()}) == len(part) for part in parts)  # of other ranks
