"""The loops of torchft groups, each of which reads an epoch by one of the loaders of live.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torchdata.stateful_dataloader import StatefulDataLoader
from torchft.data import DistributedSampler

import indexplan as ip
from indexplan_torch.live import LiveLoader
from tests.runs.groups.group import Group
from tests.runs.groups.live import BATCH, GROUPS, STEPS


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
