"""Errors of the adapters for torch and its trainers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch.utils.data import ConcatDataset, IterableDataset, SequentialSampler

import indexplan as ip
from indexplan_torch import (
    PlanBatchSampler,
    PlanLoader,
    PlanSampler,
)
from indexplan_torch.meshes import _dimensions
from indexplan_torch.ranks import discover
from indexplan_torch.seeding import SeedWorker
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


def in_a_turn(again: int = 4, size: int = 4, dealt: Any = None) -> None:
    """Load a state of a step that was dealt 3 of 4 times, with something else."""
    plan = ip.Plan(ip.Sequential(10), global_batch_size=4)
    saved = loader(plan=plan, again=4)
    for _ in zip(range(3), saved):  # noqa: B905 (the first ends it)
        pass
    state = saved.state_dict()
    if dealt is not None:
        state["dealt"] = dealt
    loader(plan=plan.replace(global_batch_size=size), again=again).load_state_dict(state)


def item_in_another_process() -> None:
    """Call an item that could not travel, as a sampler that travelled would."""
    sampler = PlanBatchSampler(OPEN, item=lambda *_: None)
    first(pickle.loads(pickle.dumps(sampler)))  # noqa: S301 (our own)


def a_pass_that_is_over() -> None:
    """Name a pass before torchdata loads the state of another."""
    sampler = PlanBatchSampler(OPEN.replace(sub_epochs=2))
    sampler.set_epoch(1)
    batches: Any = iter(sampler)
    next(batches)
    state = batches.state_dict()  # as torchdata does
    sampler.set_epoch(0)
    iter(sampler).load_state_dict(state)  # type: ignore[attr-defined]


def under_a_wrapper() -> None:
    """Read a sampler by a node of torchdata, which counts what it draws."""
    from torchdata.nodes import Loader, SamplerWrapper

    next(iter(Loader(SamplerWrapper(PlanBatchSampler(OPEN)))))


def named_once() -> Any:
    """Name the pass of a state that torchdata loads, and no other."""
    sampler = PlanBatchSampler(OPEN)
    batches: Any = iter(sampler)
    next(batches)
    state = batches.state_dict()
    sampler.set_epoch(0)
    batches = iter(sampler)
    batches.load_state_dict(state)
    return sampler, list(batches), next(iter(sampler))


def a_state_of_a_sampler() -> None:
    """Save what workers have drawn."""
    PlanBatchSampler(OPEN).state_dict()


def named_by_a_trainer_when_drawn() -> None:
    """Name a pass as Lightning does, when workers may have drawn another one."""
    sampler = PlanBatchSampler(OPEN)
    first(sampler)
    sampler.sampler.set_epoch(1)


def a_cursor_in_a_pass() -> None:
    """Ask a sampler for what the loop has received."""
    sampler = PlanBatchSampler(OPEN)
    next(iter(sampler))
    _ = sampler.cursor


def inside_a_batch() -> None:
    """Save the state of an iterator over units between two of a batch."""
    batches: Any = iter(PlanSampler(OPEN.replace(remainder="drop")))
    next(batches)
    batches.state_dict()


class Dealt:
    """A wrapper that gives a rank every second of its batches."""

    def __init__(self) -> None:
        self.batch_sampler = PlanBatchSampler(OPEN)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.batch_sampler)[::2])


def evaluating(**options: Any) -> PlanLoader:
    """Make a loader for an evaluation."""
    return loader(evaluation=True, **options)


def inside_an_evaluation() -> None:
    """Save while ranks stand at different steps."""
    made = evaluating()
    for _ in made:
        made.state_dict()


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


def other_length(num: int) -> None:
    """Read a dataset a second time, with another number of samples."""
    data = list(range(10))
    made = PlanLoader(data, OPEN)
    list(made)
    data[:] = range(num)
    list(made)


def begun_again() -> None:
    """Begin a loop with the run's first epoch after a resume in the next."""
    made = loader(plan=OPEN.resume(OPEN.replace(world_size=1).cursor(1, step=1)))
    made.set_epoch(0)
    first(made)


def after_a_move() -> None:
    """Read on in a loop, after another one of the loader has begun with another plan."""
    of_it = loader()
    former = iter(of_it)
    next(former)
    of_it.move(OPEN.replace(batch_size=3))
    first(of_it)
    next(former)


CASES: list[Case] = [
    ("a loop after another", after_a_move),
    ("a move to no plan", lambda: loader().move(ip.Sequential(10))),  # type: ignore[arg-type]
    ("a move to a longer plan", lambda: loader().move(ip.Plan(ip.Sequential(12), batch_size=2))),
    ("an epoch that was finished before the resume", begun_again),
    ("a dataset that grew", lambda: other_length(12)),
    ("a dataset that shrank", lambda: other_length(9)),
    ("datasets in another sequence", other_sequence),
    ("no plan", lambda: PlanSampler(7)),
    ("no plan for batches", lambda: PlanBatchSampler(7)),
    (
        "a sampler of a trainer's",
        lambda: PlanBatchSampler(SequentialSampler(range(10)), batch_size=2),
    ),
    ("batches that are not full", lambda: PlanSampler(OPEN)),
    ("arrays that nest", lambda: PlanBatchSampler(OPEN, nested=True, as_array=True)),
    ("another running world", lambda: len(loader(plan=OF_TWO))),
    (
        "a running world of another size",
        lambda: first(PlanBatchSampler(OF_TWO, rank=0, world_size=4)),
    ),
    ("a rank without a world", lambda: discover(rank=1)),
    ("groups of an old torch", lambda: without_names(2)),
    ("the name of a mesh's dimension", lambda: loader(mesh="dp")),
    ("a rank beside a mesh", lambda: discover(0, 2, mesh="dp")),
    ("a seed for a loader", lambda: PlanLoader(range(10), OPEN, seed=3)),  # type: ignore[call-arg]
    ("an option of a loader with a slip", lambda: loader(num_worker=3)),
    ("ranks of a node for a loader", lambda: PlanLoader(range(10), OPEN, ranks_per_node=8)),  # type: ignore[call-arg]
    ("the world size by torch's name", lambda: PlanSampler(OPEN, num_replicas=2)),  # type: ignore[call-arg]
    ("a world without a rank", no_rank),
    ("a batch size beside the plan", lambda: loader(batch_size=4)),
    ("a batch sampler beside the plan", lambda: loader(batch_sampler=[[0, 1]])),
    ("a batch sampler of another plan", lambda: loader(batch_sampler=PlanBatchSampler(OF_TWO))),
    ("batches out of order", lambda: loader(in_order=False)),
    ("a pass of which torchdata drops batches", a_pass_that_is_over),
    ("a sampler that torchdata resumes by a number of batches", under_a_wrapper),
    ("a pass that nobody names after a load", named_once),
    ("a state of a sampler", a_state_of_a_sampler),
    ("a cursor in a pass of a sampler", a_cursor_in_a_pass),
    ("a trainer that names another pass than was drawn", named_by_a_trainer_when_drawn),
    ("a state inside a batch", inside_a_batch),
    ("a plan for a dataset", lambda: PlanLoader(OPEN, range(10))),
    ("an item of the index alone", lambda: loader(item=lambda index: index)),
    ("an item that is no function", lambda: loader(item=7)),
    ("a dataset of another size", lambda: loader(9)),
    ("a dataset of one sample", lambda: loader(1)),
    ("a dataset without indices", lambda: PlanLoader(Stream(), OPEN)),
    ("a dataset whose length fails", lambda: PlanLoader(np.array(3), OPEN)),
    ("a plan for a run", lambda: SeedWorker(OF_TWO)),
    ("an epoch before the first", lambda: loader().set_epoch(-1)),
    ("a checkpoint for a state", lambda: loader().load_state_dict({"model": [1.0] * 1000})),
    (
        "a state of another version",
        lambda: loader().load_state_dict({**loader().state_dict(), "version": 2}),
    ),
    ("steps of a rank, dealt again", lambda: loader(again=2)),
    ("another number of times inside a turn", lambda: in_a_turn(again=6)),
    ("another global batch inside a turn", lambda: in_a_turn(size=2)),
    ("a state whose turn is over", lambda: in_a_turn(dealt={"times": 4, "again": 4, "units": 4})),
    ("a state of another turn", lambda: in_a_turn(dealt=3)),
    (
        "ranks without a unit",
        lambda: first(loader(plan=OPEN.replace(batch_size=1), rank=0, world_size=3)),
    ),
    ("an evaluation that drops", lambda: evaluating(plan=OPEN.replace(remainder="drop"))),
    (
        "an evaluation of repeated steps",
        lambda: evaluating(plan=ip.Plan(ip.Sequential(10), global_batch_size=2), again=2),
    ),
    ("a state inside an evaluation", inside_an_evaluation),
    ("a pass that was left", next_after_a_cut),
    ("a pass that a resume skips", next_after_a_resume),
    ("batches that are dealt out again", lambda: list(loader(batch_sampler=Dealt()))),
    ("a trainer that has lost what it kept to itself", lambda: private("torch", OPEN, "_lost")),
    ("a step's size before the first", lambda: loader().step_size),
    ("an item that cannot travel", item_in_another_process),
    ("a loader that is dealt out again", lambda: loader()._is_accelerate_prepared),
    ("a sampler that is dealt out again", lambda: loader().sampler.generator),
]
