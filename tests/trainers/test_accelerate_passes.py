"""Which passes a prepared loader reads, in one process."""

from __future__ import annotations

from typing import Any

import pytest
from accelerate import Accelerator
from accelerate.data_loader import BatchSamplerShard, prepare_data_loader
from torch.utils.data import BatchSampler, DataLoader

import indexplan as ip
from indexplan_torch import PlanBatchSampler, PlanLoader, PlanSampler
from indexplan_torch.accelerate import PreparedLoader, prepare

PLAN = ip.Plan(ip.Shuffle(12, seed=1), batch_size=3)


def loader() -> PreparedLoader:
    """A prepared loader whose samples are their indices."""
    return prepare(Accelerator(cpu=True), PlanLoader(range(12), PLAN))


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("kind", ["PlanLoader", "PlanBatchSampler", "PlanSampler", "view"])
def test_a_seedable_sampler_deals_nothing_out(kind: str, num_workers: int, split: bool) -> None:
    """With it Accelerate reads nothing of ours: rank 1 of 2 read 3 of its 6 batches in silence."""
    plan, ranks = ip.Plan(ip.Shuffle(48, seed=1), batch_size=4), {"rank": 1, "world_size": 2}
    options: dict[str, Any] = {"num_workers": num_workers}
    loader = PlanLoader(range(48), plan, **ranks, **options)
    if kind == "PlanBatchSampler":
        loader = DataLoader(range(48), batch_sampler=PlanBatchSampler(plan, **ranks), **options)
    elif kind == "PlanSampler":
        sampler = PlanSampler(plan.replace(remainder="drop"), **ranks)
        loader = DataLoader(range(48), sampler=sampler, batch_size=4, **options)
    elif kind == "view":
        loader = DataLoader(range(48), sampler=loader.sampler, batch_size=4, **options)
    given: dict[str, Any] = {"num_processes": 2, "process_index": 1, "split_batches": split}
    prepared = prepare_data_loader(loader, use_seedable_sampler=True, **given)
    with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to accelera"):
        next(iter(prepared))


def test_a_prepared_loader_stays_as_it_is() -> None:
    """Prepared once more, it is the same; it answers isinstance by the class of its loader."""
    accelerator = Accelerator(cpu=True)
    prepared = prepare(accelerator, PlanLoader(range(12), ip.Plan(ip.Shuffle(12), batch_size=3)))
    assert prepared is prepare(accelerator, prepared)


def test_a_name_that_was_refused_is_forgotten() -> None:
    """The loop that is refused has begun, so a trainer names the next pass as ever."""
    plan = ip.Plan(ip.Shuffle(12, seed=1), world_size=1, batch_size=3)
    loader = PlanLoader(range(12), plan.resume(plan.cursor(2, step=0)), collate_fn=list)
    prepared = prepare(Accelerator(cpu=True), loader)
    prepared.set_epoch(0)
    with pytest.raises(ip.IndexPlanError, match="epoch must be 2 or later"):
        next(iter(prepared))
    loader.sampler.set_epoch(3)
    assert [batch.tolist() for batch in plan.batches(3, rank=0)] == list(prepared)


@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("split_batches", [False, True])
def test_a_shard_made_by_hand_deals_out_no_rank_s_batches(
    split_batches: bool, num_workers: int
) -> None:
    """It read 12 of a rank's 20 samples in silence; one plan for all ranks is dealt out right."""
    plan = ip.Plan(ip.Shuffle(45, seed=5), batch_size=4, remainder="drop")

    def shard(world_size: int, num_processes: int, form: Any = None) -> Any:
        ours: Any = PlanBatchSampler(plan, rank=0, world_size=world_size)
        if form is not None:
            ours = BatchSampler(PlanSampler(plan, rank=0, world_size=world_size), 4, drop_last=True)
        ours = BatchSamplerShard(ours, num_processes, 0, split_batches=split_batches)
        return list(
            DataLoader(range(45), batch_sampler=ours, num_workers=num_workers, collate_fn=list)
        )

    for form in (None, PlanSampler):
        with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to Bat"):
            shard(2, 2, form)
    one, two = (plan.replace(world_size=size) for size in (1, 2))
    assert [batch.tolist() for batch in two.batches(0, rank=0)] == shard(2, 1)
    whole = [batch.tolist() for batch in one.batches(0, rank=0)]
    half = [batch[:2] for batch in whole] if split_batches else whole[::2]
    assert half[: len(whole) // 2] == shard(1, 2)[: len(whole) // 2]
