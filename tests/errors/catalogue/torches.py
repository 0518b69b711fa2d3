"""Errors of the adapters for torch and its trainers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset

import indexplan as ip
from indexplan_torch import (
    GlobalPlanBatchSampler,
    PlanBatchSampler,
    PlanLoader,
    PlanSampler,
    SeedWorker,
    discover,
    seed_rank,
)
from indexplan_torch.meshes import _dimensions
from indexplan_torch.versions import private
from tests.errors.catalogue.made import Case

OPEN = ip.Plan(ip.Sequential(10), batch_size=2)
OF_TWO = OPEN.replace(world_size=2)


class Stream(IterableDataset[int]):
    """A dataset that cannot be asked for an index."""

    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


def loader(size: int = 10, plan: ip.Plan = OPEN, **options: Any) -> PlanLoader:
    """Make a loader."""
    return PlanLoader(range(size), plan, **options)


def first(batches: Any) -> Any:
    """Return the first of some batches."""
    return next(iter(batches))


def item_in_another_process() -> None:
    """Call an item that could not travel, as a sampler that travelled would."""
    sampler = PlanBatchSampler(OPEN, item=lambda *_: None)
    first(pickle.loads(pickle.dumps(sampler)))  # noqa: S301 (our own)


def a_pass_that_is_over() -> None:
    """Set a pass before that of a state from which torchdata drops batches."""
    sampler = PlanBatchSampler(OPEN.replace(sub_epochs=2))
    sampler.set_epoch(1)
    batches = iter(sampler)
    next(batches)
    state: Any = batches.state_dict()  # type: ignore[attr-defined]  # as torchdata does
    sampler.feed.load_at_iter(state)
    sampler.set_epoch(0)
    sampler.feed.check_nothing_dropped(snapshot_interval=2)


class Dealt:
    """A wrapper that gives a rank every second of its batches."""

    def __init__(self) -> None:
        self.batch_sampler = PlanBatchSampler(OPEN)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.batch_sampler)[::2])


def next_after_a_cut() -> None:
    """Leave a pass, and go on with the next."""
    left = loader()
    for step, _ in enumerate(left):
        if step == 1:
            break
    left.set_epoch(1)
    first(left)


def next_after_a_resume() -> None:
    """Go on with the pass after the one that a state was saved in."""
    resumed = loader(plan=OPEN.resume(OPEN.replace(world_size=1).cursor(0, step=2)))
    resumed.set_epoch(1)
    first(resumed)


def no_rank() -> None:
    """Ask for a rank of a running world that tells none."""
    with patch.dict("os.environ", WORLD_SIZE="2"):
        discover()


def without_names(count: int) -> Any:
    """Ask for the dimensions of the meshes that run where groups have no names, as in torch 2.2."""
    groups = {object(): None for _ in range(count)}
    with patch.dict(torch.distributed.distributed_c10d._world.pg_map, groups, clear=True):
        return _dimensions()


def other_sequence() -> None:
    """Concatenate datasets in another sequence than a mixture's sources."""
    sources: dict[str, ip.Order] = {"web": ip.Shuffle(7), "code": ip.Shuffle(3)}
    mixture = ip.Mixture(sources, weights={"web": 1, "code": 1})
    PlanLoader(ConcatDataset([range(3), range(7)]), ip.Plan(mixture, batch_size=2))  # type: ignore[list-item]


CASES: list[Case] = [
    (
        "datasets in another sequence",
        other_sequence,
        "datasets must lie one after another as the mixture's sources do; got datasets of [3, 7] "
        "samples for sources of {'web': 7, 'code': 3}; pass ConcatDataset the datasets in the "
        "sequence of the sources",
    ),
    (
        "no plan",
        lambda: PlanSampler(7),
        "plan must be an indexplan.Plan; got 7; pass indexplan.Plan(order, batch_size=...)",
    ),
    (
        "no plan for batches",
        lambda: PlanBatchSampler(7),
        "PlanBatchSampler must be given a plan, and no batch_size or drop_last; got int, "
        "batch_size=None, drop_last=False; these belong to the plan: indexplan.Plan(..., "
        "batch_size=...)",
    ),
    (
        "batches that are not full",
        lambda: PlanSampler(OPEN),
        "plan must have batches that are all full and equal, for PlanSampler; got "
        "remainder='spread', 1 phase, batch_size=2; use PlanLoader, or remainder='pad' and one "
        "batch_size",
    ),
    (
        "arrays that nest",
        lambda: PlanBatchSampler(OPEN, nested=True, as_array=True),
        "as_array must be used alone; got it with nested or item; leave those out",
    ),
    (
        "another running world",
        lambda: len(loader(plan=OF_TWO)),
        "world_size must be 2, the plan's; got 1 running; leave it out of the plan to take the "
        "running one, or initialize torch.distributed first",
    ),
    (
        "a running world of another size",
        lambda: first(PlanBatchSampler(OF_TWO, rank=0, world_size=4)),
        "world_size must be 2, the plan's; got 4 running; leave it out of the plan to take the "
        "running one, or use plan.replace(world_size=4)",
    ),
    (
        "a rank without a world",
        lambda: discover(rank=1),
        "rank and world_size must be given together; got rank=1, world_size=None; leave both "
        "out to have them discovered",
    ),
    (
        "a rank past the last",
        lambda: loader(rank=3, world_size=3),
        "rank must be an integer from 0 to 2, with world_size=3; got 3; count ranks from 0",
    ),
    (
        "groups of an old torch",
        lambda: without_names(2),
        "process groups beside the default one must say whether they are a mesh's; got torch "
        f"{torch.__version__}, where they do not; pass mesh=, or pip install 'torch>=2.4'",
    ),
    (
        "the name of a mesh's dimension",
        lambda: loader(mesh="dp"),
        "mesh must be a torch DeviceMesh, or a dimension of one; got 'dp'; pass what "
        "init_device_mesh(...) returns, or its mesh['dp']",
    ),
    (
        "a rank beside a mesh",
        lambda: discover(0, 2, mesh="dp"),
        "mesh must be passed alone, as it tells the rank; got rank=0 too; leave rank and "
        "world_size out",
    ),
    (
        "a world without ranks",
        lambda: loader(rank=0, world_size=0),
        "world_size must be an integer from 1; got 0; pass the number of ranks that train",
    ),
    (
        "the world size by torch's name",
        lambda: PlanSampler(OPEN, num_replicas=2),  # type: ignore[arg-type]
        "num_replicas must be left out; got 2; pass world_size= instead",
    ),
    (
        "a world without a rank",
        no_rank,
        "rank must be known before batches are read; got WORLD_SIZE=2 and no RANK; initialize "
        "torch.distributed first, or pass rank and world_size",
    ),
    (
        "a batch size beside the plan",
        lambda: loader(batch_size=4),
        "batch_size must be left out, as it belongs to the plan; got 4; use indexplan.Plan(..., "
        "batch_size=..., remainder=...)",
    ),
    (
        "a batch sampler beside the plan",
        lambda: loader(batch_sampler=[[0, 1]]),
        "batch_sampler must be left out, as the plan makes it; got [[0, 1]]; use torch's "
        "DataLoader with a batch sampler of your own",
    ),
    (
        "a batch sampler of another plan",
        lambda: loader(batch_sampler=PlanBatchSampler(OF_TWO)),
        f"batch_sampler must be left out, as the plan makes it; got one of another plan, "
        f"{OF_TWO!r}; use PlanLoader(dataset, plan)",
    ),
    (
        "batches for a sampler of indices",
        lambda: first(DataLoader(range(10), sampler=PlanBatchSampler(OPEN), batch_size=2)),  # type: ignore[arg-type]
        "sampler must yield indices; got a PlanBatchSampler, which yields batches; use "
        "DataLoader(dataset, batch_sampler=...), or PlanLoader(dataset, plan)",
    ),
    (
        "batches out of order",
        lambda: loader(in_order=False),
        "in_order must be True, as a state counts batches, and cannot tell which of them a slow "
        "worker still has; got False; leave it out",
    ),
    (
        "a pass of which torchdata drops batches",
        a_pass_that_is_over,
        "set_epoch must be 1, the pass that the state was saved in, as torchdata drops batches to "
        "get from its last snapshot to where the loop was; got 0; start the loop with that pass, "
        "or use snapshot_every_n_steps=1",
    ),
    (
        "a plan for a dataset",
        lambda: PlanLoader(OPEN, range(10)),  # type: ignore[arg-type]
        "dataset must come before the plan; got PlanLoader(Plan, range); use "
        "PlanLoader(dataset, plan)",
    ),
    (
        "an item of the index alone",
        lambda: loader(item=lambda index: index),
        "item must take two arguments, (index, phase); got one of (index); pass one such as "
        'lambda index, phase: (index, phase["resolution"])',
    ),
    (
        "an item that is no function",
        lambda: loader(item=7),
        "item must be a function of (index, phase); got 7; pass one such as lambda index, phase: "
        '(index, phase["resolution"])',
    ),
    (
        "a dataset of another size",
        lambda: loader(9),
        "dataset must hold 10 samples, as many as the plan's order; got 9; make the plan with "
        "an order of 9 samples",
    ),
    (
        "a dataset of one sample",
        lambda: loader(1),
        "dataset must hold 10 samples, as many as the plan's order; got 1; make the plan with an "
        "order of 1 sample",
    ),
    (
        "a dataset without indices",
        lambda: PlanLoader(Stream(), OPEN),
        "dataset must be map-style, as a plan says which index is read when; got Stream, an "
        "IterableDataset; give it __getitem__ and __len__",
    ),
    (
        "a dataset that is a number",
        lambda: PlanLoader(7, OPEN),
        "dataset must be map-style, as a plan says which index is read when; got int, without "
        "__getitem__; give it __getitem__ and __len__",
    ),
    (
        "a dataset whose length fails",
        lambda: PlanLoader(np.array(3), OPEN),
        "dataset must return how many samples it has, if it has __len__; got TypeError('len() "
        "of unsized object') from ndarray; correct its __len__, or remove it",
    ),
    (
        "a flag that is text",
        lambda: loader(nested="False"),
        "nested must be True or False; got 'False'; pass one of the two",
    ),
    (
        "a plan for a feed",
        lambda: SeedWorker(OF_TWO),  # type: ignore[arg-type]
        f"feed must be a sampler's; got {OF_TWO!r}; pass sampler.feed of a PlanBatchSampler",
    ),
    (
        "a plan for its loader",
        lambda: seed_rank(7),
        "loader must be a PlanLoader, or one of the samplers; got 7; pass PlanLoader(dataset, "
        "plan)",
    ),
    (
        "an epoch before the first",
        lambda: loader().set_epoch(-1),
        "epoch must be an integer from 0; got -1; count from 0",
    ),
    (
        "an epoch that is text",
        lambda: loader().set_epoch("1"),
        "epoch must be an integer from 0; got '1'; count from 0",
    ),
    (
        "a checkpoint for a state",
        lambda: loader().load_state_dict({"model": [1.0] * 1000}),
        "state must be what state_dict returned; got a dict of ['model']; save state_dict() in "
        "the checkpoint, and load that",
    ),
    (
        "text for a state",
        lambda: loader().load_state_dict("text"),
        "state must be what state_dict returned; got str; save state_dict() in the checkpoint, "
        "and load that",
    ),
    (
        "a state of another version",
        lambda: loader().load_state_dict({**loader().state_dict(), "version": 2}),
        "state must be of version 1; got 2; load it with the version of indexplan that saved it",
    ),
    (
        "ranks without a unit",
        lambda: first(loader(plan=OPEN.replace(batch_size=1), rank=0, world_size=3)),
        "each step must hold a unit for every rank; got steps of fewer than world_size=3 units "
        "in epoch 0, sub-epoch 0, under remainder='spread'; use a larger batch size, "
        "remainder='carry', 'pad' or 'drop', or fewer ranks",
    ),
    (
        "a pass that was left",
        next_after_a_cut,
        "a pass must be read whole before a later one begins; got 2 of 5 steps of epoch 0, "
        "sub-epoch 0, and then epoch 1, sub-epoch 0; under Lightning use RefreshStepCounts(), or "
        "pass partial=True if passes are left on purpose",
    ),
    (
        "a pass that a resume skips",
        next_after_a_resume,
        "a pass must be read whole before a later one begins; got a resume after 2 of 5 steps of "
        "epoch 0, sub-epoch 0, and then epoch 1, sub-epoch 0; read that pass first, by "
        "set_epoch(0), or pass partial=True if passes are left on purpose",
    ),
    (
        "batches that are dealt out again",
        lambda: list(loader(batch_sampler=Dealt())),
        "a pass must give the loop the 5 batches that the plan deals to this rank; got 3; "
        "remove what changes batches between the plan and the loop, such as a wrapper that "
        "deals the batch sampler out to ranks again",
    ),
    (
        "a trainer that has lost what it kept to itself",
        lambda: private("torch", OPEN, "_lost"),
        "torch must have Plan._lost, which indexplan_torch relies on; got torch "
        f"{torch.__version__}, which does not; pip install 'torch>=2.2,<=2.13.0', the versions "
        "that do",
    ),
    (
        "a step's size before the first",
        lambda: loader().step_size,
        "step_size must be asked for inside the loop, after a batch; got none before it; use "
        "plan.step_size(epoch, sub_epoch, step=...) for any step",
    ),
    (
        "an item that cannot travel",
        item_in_another_process,
        "item must pickle to be called in a spawned process; got one that does not, for index "
        "0; define it at the top of a module",
    ),
    (
        "a loader that is dealt out again",
        lambda: loader()._is_accelerate_prepared,
        "a PlanLoader must be prepared by indexplan_torch.accelerate.prepare, as its batches "
        "are this rank's already; got accelerator.prepare, which would deal them out to the "
        "ranks again; use indexplan_torch.accelerate.prepare(accelerator, loader)",
    ),
    (
        "a sampler that is dealt out again",
        lambda: loader().sampler.generator,
        "batches must be those of all ranks for accelerator.prepare, which deals them out; got "
        "those of this rank; use GlobalPlanBatchSampler, or "
        "indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
    ),
    (
        "padding that metrics could not leave out",
        lambda: (
            GlobalPlanBatchSampler(
                OPEN.replace(remainder="pad", batch_size=None, global_batch_size=3), world_size=2
            ).batch_size
        ),
        "plan must have one batch size that all ranks share, of samples that are neither nested "
        "nor in bins, for GlobalPlanBatchSampler with remainder='pad', as Accelerate counts "
        "batches and padding by it; got other batches; use "
        "indexplan_torch.accelerate.prepare(accelerator, PlanLoader(dataset, plan))",
    ),
]
