"""torchft's own DistributedSampler, in the loop of its train_ddp: each group has a fixed part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torchdata.stateful_dataloader import StatefulDataLoader
from torchft.data import DistributedSampler

from tests.runs.groups.group import Group
from tests.runs.groups.live import BATCH, GROUPS, STEPS


def train(group: Group) -> None:
    """Read pass after pass of the group's part, until the run has as many steps as an epoch."""
    loop(group, loader_of(group), lambda: None)


def loader_of(group: Group) -> Any:
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


def loop(group: Group, loader: Any, after_step: Callable[[], None]) -> None:
    """Train as train_ddp does, which ends by the manager's step."""
    while True:
        for _ in group.train(loader):
            after_step()
            if group.manager.current_step() >= STEPS:
                return
