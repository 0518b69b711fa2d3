"""Which passes Fabric reads, in one process: what the user names, and else one after another."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pytest
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own

PLAN = ip.Plan(ip.Shuffle(12, seed=1), batch_size=3)
HALVES = PLAN.replace(sub_epochs=2)


def loader_of(plan: ip.Plan, **options: Any) -> PlanLoader:
    """A loader whose samples are their indices."""
    return PlanLoader(range(plan.order.num_samples), plan, **options)


def of_plan(plan: ip.Plan, *numbers: int) -> list[list[list[int]]]:
    """The batches of passes."""
    whole = plan.replace(world_size=1)
    where = [divmod(number, plan.sub_epochs) for number in numbers]
    return [[b.tolist() for b in whole.batches(*each, rank=0)] for each in where]


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """A Fabric of one process."""
    return Fabric(accelerator="cpu", devices=1)


def read(loader: Any, steps: int | None = None) -> list[list[int]]:
    """Read a pass, or its first steps."""
    return [batch.tolist() for batch in islice(loader, steps)]


@pytest.mark.parametrize("kind", ["PlanLoader", "DataLoader"])
def test_fabric_reads_what_the_user_names(fabric: Fabric, kind: str) -> None:
    """Whatever Fabric counts: a pass, a sub-epoch, the same one again, and those that follow."""
    if kind == "PlanLoader":
        loader: Any = loader_of(HALVES)
        named = loader
    else:
        named = PlanBatchSampler(HALVES)
        loader = DataLoader(range(12), batch_sampler=named)
    loader = fabric.setup_dataloaders(loader)
    named.set_epoch(7)
    assert of_plan(HALVES, 7, 8) == [read(loader), read(loader)]
    named.set_epoch_and_sub_epoch(3, 0)
    assert of_plan(HALVES, 6) == [read(loader)]
    for _ in range(3):
        named.set_epoch(0)
        assert of_plan(HALVES, 0) == [read(loader)]


def test_a_look_under_fabric_counts(fabric: Fabric) -> None:
    """Fabric counts a look as an epoch, and is told; one at the user's own loader costs none."""
    loader = fabric.setup_dataloaders(loader_of(PLAN))
    assert of_plan(PLAN, 0)[0][:1] == read(loader, 1)
    with pytest.warns(UserWarning, match="^epoch 0, sub-epoch 0: left after 1 of 4 steps, and 9 "):
        assert of_plan(PLAN, 1) == [read(loader)]
    ours = loader_of(PLAN)
    loader = fabric.setup_dataloaders(ours)
    assert of_plan(PLAN, 0)[0][:1] == read(ours, 1)
    assert of_plan(PLAN, 0, 1) == [read(loader), read(loader)]


def test_a_loop_that_is_left_under_fabric_is_refused(fabric: Fabric) -> None:
    """The rest of its pass would never be read, as Fabric names the next one."""
    loader = fabric.setup_dataloaders(loader_of(PLAN))
    read(loader, 2)
    with pytest.raises(ip.IndexPlanError, match=r"^a pass must be read whole before "):
        read(loader)


@pytest.mark.parametrize("step", [0, 2])
@pytest.mark.parametrize("before", range(6))
def test_a_loader_goes_back_under_fabric(fabric: Fabric, before: int, step: int) -> None:
    """To a state of its own, whatever Fabric has counted since; or that is refused, with a cure."""
    ours = loader_of(PLAN)
    loader = fabric.setup_dataloaders(ours)
    state = {**ours.state_dict(), "pass": 2}
    state["cursor"] = PLAN.replace(world_size=1).cursor(2, step=step).to_dict()
    for _ in range(before):
        read(loader)
    ours.load_state_dict(state)
    if before == 3 and step:  # as when a trainer ended pass 2 early
        with pytest.raises(ip.IndexPlanError, match=r"read that pass first, by set_epoch\(2\)"):
            read(loader)
        ours.load_state_dict(state)
        ours.set_epoch(2)
    assert [of_plan(PLAN, 2)[0][step:], *of_plan(PLAN, 3, 4)] == [read(loader) for _ in range(3)]


def test_a_resumed_plan_under_fabric_begins_where_it_starts(fabric: Fabric) -> None:
    """Whatever Fabric counts, from 0."""
    cursor = PLAN.replace(world_size=1).cursor(2, step=1)
    loader = fabric.setup_dataloaders(loader_of(PLAN.resume(cursor)))
    assert [of_plan(PLAN, 2)[0][1:], *of_plan(PLAN, 3)] == [read(loader), read(loader)]
