"""Which passes a prepared loader reads, in one process."""

from __future__ import annotations

import re
import warnings
from itertools import islice
from typing import Any

import pytest
import torch
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


def test_a_pass_that_starts_again_warns() -> None:
    """Accelerate names each pass that begins; that is not the user's word for it."""
    prepared = loader()
    list(islice(prepared, 2))
    message = (
        "epoch 0, sub-epoch 0: left after 2 of 4 steps, and starts again from the first; "
        "name the pass that comes next with set_epoch, use ip.Epochs(order, 6), whose epochs have "
        "so many and lose none, or pass partial=True if this is intended"
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$"):
        list(islice(prepared, 2))
    prepared = loader()
    for _ in range(2):
        prepared.set_epoch(0)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            list(islice(prepared, 2))


@pytest.mark.parametrize("num_workers", [0, 1])
def test_a_scripts_own_prepare_is_refused(num_workers: int) -> None:
    """`prepare_data_loader` is what accelerator.prepare calls, with the ranks that it has found."""
    one = PlanLoader(range(12), PLAN, rank=0, world_size=2, num_workers=num_workers)
    with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to accelera"):
        prepare_data_loader(one, num_processes=2, process_index=0)
    with pytest.raises(ip.IndexPlanError, match=r"^a PlanLoader must be prepared by indexplan_to"):
        Accelerator(cpu=True).prepare(one)


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


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("flat", [False, True])
def test_a_rank_dispatches_only_what_is_for_all(flat: bool, num_workers: int) -> None:
    """With `dispatch_batches` rank 0 draws for all ranks: of its own batches they read a half."""

    def prepared(world_size: int) -> Any:
        plan = ip.Plan(ip.Sequential(48), batch_size=4, remainder="drop")
        kind = PlanSampler if flat else PlanBatchSampler
        sampler = kind(plan, rank=0, world_size=world_size)
        form: Any = {"sampler": sampler, "batch_size": 4} if flat else {"batch_sampler": sampler}
        loader = DataLoader(range(48), num_workers=num_workers, **form)
        given: dict[str, Any] = {"put_on_device": True, "device": torch.device("cpu")}
        return prepare_data_loader(loader, dispatch_batches=True, **given)

    with pytest.raises(ip.IndexPlanError, match=r"^a plan's sampler must not be given to accelera"):
        next(iter(prepared(2)))
    assert list(range(48)) == torch.cat(list(prepared(1))).tolist()


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
