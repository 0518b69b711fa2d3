"""What a loop is told of the groups of its samples: by batch, and what the step aims at."""

from __future__ import annotations

import numpy as np
import pytest

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan_torch import PlanLoader
from tests.orders.test_groups import Leaning, aim
from tests.reports.test_draws import mixed_bins


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("remainder", REMAINDERS)
def test_a_loop_knows_the_groups_of_its_batch(workers: int, remainder: str) -> None:
    """However far workers have drawn ahead; shares are the mean aims of the step's units."""
    order = Leaning(23)
    plan = ip.Plan(order, world_size=2, batch_size=3, remainder=remainder)
    loader = PlanLoader(range(23), plan, rank=1, world_size=2, num_workers=workers)
    for epoch in range(2):
        loader.set_epoch(epoch)
        num_seen = 0
        for step, batch in enumerate(loader):
            assert order.group_of(batch.tolist()).tolist() == loader.groups.tolist()
            start = plan.cursor(epoch, step=step)
            places = [start.epoch * 23 + start.position + i for i in range(loader.step_size)]
            low = np.mean([aim(*divmod(place, 23)) for place in places])
            assert {"low": low, "high": 1 - low} == pytest.approx(loader.shares)
            num_seen += 1
        assert plan.steps(epoch).stop == num_seen


def test_of_a_mixture_of_bins_shares_are_of_bins() -> None:
    """What the step aims at are as many bins of each; its samples are in `groups`."""
    plan = ip.Plan(mixed_bins(), batch_size=4)
    loader = PlanLoader(range(140), plan, rank=0, world_size=1, keep_bins=False)
    found = ip.draws(plan.replace(world_size=1))
    for _ in loader:
        assert {"large": 0.5, "small": 0.5} == loader.shares
        assert [16, 4] == np.bincount(loader.groups).tolist()
    assert (found.counted, [20, 20]) == ("units", found.drawn.tolist())
