"""The loops of torchft groups.

Some read an epoch by one of the loaders of live.py. Others read a plan until they are killed, and
share a ledger, which the first one of a quorum writes, as if one rank had read all.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torchdata.stateful_dataloader import StatefulDataLoader
from torchft.data import DistributedSampler

import indexplan as ip
from indexplan_torch.live import LiveLoader
from tests.runs.groups.group import Group
from tests.runs.groups.live import BATCH, GROUPS, STEPS

BATCH_OF_ALL = 60
LEDGER = "run.ledger"
SAVED_EVERY = 7  # steps


def live_loader(group: Group) -> None:
    """Read until the run's epoch ends; the state of the run comes with the weights."""
    plan = ip.Plan(ip.Shuffle(group.samples), global_batch_size=GROUPS * BATCH)
    loader = LiveLoader(torch.arange(group.samples), plan, group.manager, num_epochs=1)
    for _ in group.train(loader):
        pass


def sampler(group: Group) -> None:
    """Read pass after pass of the group's fixed part, by torchft's own DistributedSampler."""
    _until_the_epoch_ends(group, _loader_of(group), lambda: None)


def sampler_saved(group: Group) -> None:
    """The same with a loader whose state each group saves after each step, in a file of its own."""
    loader, file = _loader_of(group), group.folder / f"g{group.number}.loader"
    if file.exists():
        loader.load_state_dict(torch.load(file))

    def save() -> None:
        new = Path(f"{file}.new")
        torch.save(loader.state_dict(), new)
        new.replace(file)

    _until_the_epoch_ends(group, loader, save)


def _loader_of(group: Group) -> Any:
    """Return the loader of train_ddp, for a group of one rank."""
    dataset: Any = torch.arange(group.samples)
    sampler = DistributedSampler(
        dataset,
        replica_rank=group.number,
        num_replica_groups=GROUPS,
        group_rank=0,
        num_replicas=1,
        shuffle=True,
    )
    return StatefulDataLoader(dataset, batch_size=BATCH, sampler=sampler)


def _until_the_epoch_ends(group: Group, loader: Any, after_step: Callable[[], None]) -> None:
    """Train as train_ddp does, which ends by the manager's step: as many as an epoch has."""
    while True:
        for _ in group.train(loader):
            after_step()
            if group.manager.current_step() >= STEPS:
                return


def plan_of(group: Group) -> ip.Plan:
    """Return what all groups read that are killed."""
    return ip.Plan(ip.Shuffle(group.samples, seed=5), global_batch_size=BATCH_OF_ALL)


def through_loader(group: Group) -> None:
    """Train as torchft's train_ddp does."""
    loader = LiveLoader(torch.arange(group.samples), plan_of(group), group.manager)
    for _ in group.train(loader):
        save(group, loader)


def by_hand(group: Group) -> None:
    """Train in a loop of its own, which asks for each batch by itself."""
    loader = LiveLoader(torch.arange(group.samples), plan_of(group), group.manager)
    while True:
        rows = next(iter(loader))
        group.optimizer.zero_grad()
        group.backward(group.loss(rows), rows)
        if group.manager.should_commit():
            group.optimizer.optim.step()
            group.counts()
        save(group, loader)


def save(group: Group, live: LiveLoader) -> None:
    """Save a checkpoint, if it is time, in the first group; of two quorums, both may try."""
    manager = group.manager
    if manager.current_step() % SAVED_EVERY == 0 and manager.participating_rank() == 0:
        with suppress(ip.PlanFileError):  # the other quorum has written meanwhile
            ledger = ip.Ledger(group.folder / LEDGER)
            ledger.rewind(min(manager.current_step() - 1, ledger.step))
            ledger.record(plan_of(group).replace(world_size=1), live.cursor)
