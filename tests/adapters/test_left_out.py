"""Loaders whose runs lose samples or steps: they continue from their states, on other ranks."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from torch.utils.data import ConcatDataset

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader
from indexplan_torch.megatron import PlanIterator
from tests.adapters.small import read_and_saved

ORDER = ip.Shuffle(120, seed=1)
PLAN = ip.Plan(ORDER, world_size=4, batch_size=3, remainder="carry")
BAD = list(range(0, 120, 11))


def excluded(plan: ip.Plan, since: ip.Cursor) -> ip.Plan:
    """Take samples out."""
    return plan.replace(order=ip.Without(plan.order, BAD, since=since))


@pytest.mark.parametrize("kind", [PlanLoader, PlanBatchSampler])
def test_a_state_of_fewer_sources(kind: Any) -> None:
    """Other ranks go on with a source that joins at the state's place, of a longer dataset."""
    two = ip.Mixture({"a": ip.Shuffle(80), "b": ip.Shuffle(40, seed=1)}, {"a": 1, "b": 1})
    plan = ip.Plan(two, world_size=4, batch_size=3, remainder="carry")
    parts: list[Any] = [range(80), range(80, 120), range(120, 150)]
    before = kind(
        *((ConcatDataset(parts[:2]),) if kind is PlanLoader else ()), plan, rank=0, world_size=4
    )
    state = json.loads(json.dumps(read_and_saved(before, 4)[1]))
    cursor = ip.Cursor.from_dict(state["cursor"])
    assert plan.cursor(0, step=4) == cursor
    weights = {"a": 1, "b": 1, "c": 2}
    order = two.with_phase(cursor, weights, sources={"c": ip.Shuffle(30, seed=2)})
    dataset = (ConcatDataset(parts),) if kind is PlanLoader else ()
    new = plan.replace(order=order, world_size=3)
    ranks = [kind(*dataset, new, rank=rank, world_size=3) for rank in range(3)]
    for each in ranks:
        each.load_state_dict(copy.deepcopy(state))
    read = [int(sample) for some in zip(*ranks, strict=True) for batch in some for sample in batch]
    assert [*order.take(0, 48, 120), *order.take(1, 0, 120)][: len(read)] == read
    assert len(read) >= 72
    assert max(read) >= 120
    if kind is PlanLoader:
        assert ("a", "b", "c") == tuple(ranks[0].shares)
    early = plan.replace(order=two.with_phase(47, weights, sources={"c": ip.Shuffle(30, seed=2)}))
    with pytest.raises(ip.IndexPlanError, match="at or before unit 47 of the run, since which"):
        kind(*dataset, early, rank=0, world_size=4).load_state_dict(state)


def test_megatron_counts_samples() -> None:
    """A count of consumed samples is the same place, up to where the run changed and past it."""
    order = excluded(PLAN, PLAN.cursor(1, step=4)).order
    row = [int(each) for epoch in range(4) for each in order.take(epoch, 0, order.num_units(epoch))]
    for consumed in (0, 48, 168, 180, 240, 300):
        ranks = [
            PlanIterator(
                range(120),
                order,
                micro_batch_size=2,
                consumed_samples=consumed,
                rank=rank,
                world_size=3,
            )
            for rank in range(3)
        ]
        read = [sample for _ in range(8) for each in ranks for sample in next(each).tolist()]
        assert row[consumed : consumed + 48] == read
