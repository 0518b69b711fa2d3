"""Every loader and sampler streams the balanced batches, on each rank: none goes around balance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import indexplan as ip
from indexplan_torch import Piece, PlanBatchSampler, PlanLoader, PlanSampler
from tests.adapters.small import Identity, as_they_are

pytestmark = pytest.mark.filterwarnings("ignore:.*set_vital.*")  # of torch, about torchdata

LENGTHS = [1 + i * i % 97 for i in range(103)]
BALANCE = ip.Balance(LENGTHS, quadratic=1)
PLAN = ip.Plan(
    ip.Shuffle(103, seed=3), batch_size=(2, 3), remainder="pad", sub_epochs=2, balance=BALANCE
)
CUT = ip.Plan(
    ip.DocumentWindows(LENGTHS, 50, block_size=8), batch_size=3, balance=BALANCE, sub_epochs=2
)
ROWS = ip.Plan(ip.Shuffle(103, seed=3), batch_size=6, remainder="pad", balance=BALANCE)
RANKS = range(3)


def batches_of(plan: ip.Plan, rank: int, where: tuple[int, ...] = (0, 0)) -> list[Any]:
    """Return a rank's batches of a pass, one by one: samples, or pieces of samples."""
    plan = plan.replace(world_size=3).resume(plan.start)
    found: list[Any] = []
    for step in plan.steps(*where):
        batch = plan.batch(*where, step=step, rank=rank)
        ends = plan.units(*where, step=step, rank=rank).offsets
        if not plan.order.deals_bins:
            found.append(batch.tolist())
            continue
        units = np.split(batch, ends[1:-1])
        spans = np.split(plan.units(*where, step=step, rank=rank).spans, ends[1:-1])
        pairs = (zip(*both, strict=True) for both in zip(units, spans, strict=True))
        found.append([[Piece(i, *s) for i, s in pair] for pair in pairs])
    return found


def check(plan: ip.Plan, stream: Callable[[ip.Plan, int], list[Any]]) -> None:
    """Compare what ranks stream with the plan, and with what it would be without balance."""
    dealt = [batches_of(plan.replace(balance=None), rank) for rank in RANKS]
    expected = [batches_of(plan, rank) for rank in RANKS]
    assert dealt != expected  # else nobody would see a stream that ignores balance
    assert expected == [stream(plan, rank) for rank in RANKS]


def of(rank: int) -> dict[str, Any]:
    """Return the arguments that say which rank this is."""
    return {"rank": rank, "world_size": 3}


def loader(plan: ip.Plan, rank: int, **options: Any) -> PlanLoader:
    """Return a rank's loader, which leaves samples as they are."""
    options = {"collate_fn": as_they_are, **of(rank), **options}
    return PlanLoader(Identity(103), plan, **options)


def test_plan_batch_sampler() -> None:
    """In a DataLoader, and in torchdata's; test_torch_bins has batch samplers by themselves."""
    for kind in (DataLoader, StatefulDataLoader):
        options: dict[str, Any] = {"collate_fn": as_they_are}
        check(
            PLAN,
            lambda plan, rank, kind=kind, options=options: list(
                kind(Identity(103), batch_sampler=PlanBatchSampler(plan, **of(rank)), **options)
            ),
        )


@pytest.mark.parametrize("plan", [PLAN, CUT], ids=["samples", "pieces"])
def test_plan_loader(plan: ip.Plan) -> None:
    """A loader of samples, and of pieces of them."""
    check(plan, lambda plan, rank: list(loader(plan, rank)))


def test_plan_sampler() -> None:
    """Samples one by one, which a DataLoader cuts into batches."""
    check(
        ROWS,
        lambda plan, rank: list(
            DataLoader(
                Identity(103),
                sampler=PlanSampler(plan, **of(rank)),
                batch_size=6,
                collate_fn=as_they_are,
            )
        ),
    )


def test_groups_and_totals_are_of_the_batch_at_hand() -> None:
    """A loop's log is of the samples that balance gave this rank."""
    labels = [i % 5 for i in range(103)]
    order = ip.ClassBalanced(labels, seed=1)
    plan = ip.Plan(order, batch_size=6, balance=BALANCE)
    for rank in RANKS:
        each = loader(plan, rank)
        for batch in each:
            assert [labels[i] for i in batch] == each.groups.tolist()
