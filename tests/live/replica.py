"""Loops of a torchft group that read a plan: one with a loader, and one of its own.

All groups share a ledger, which the first one of a quorum writes, as if one rank had read all.
"""

from __future__ import annotations

from contextlib import suppress

import torch

import indexplan as ip
from indexplan_torch.live import LiveLoader
from tests.runs.groups.group import Group

BATCH = 60
LEDGER = "run.ledger"
SAVED_EVERY = 7  # steps


def plan_of(group: Group) -> ip.Plan:
    """Return what all groups read."""
    return ip.Plan(ip.Shuffle(group.samples, seed=5), global_batch_size=BATCH)


def through_loader(group: Group) -> None:
    """Train as torchft's train_ddp does."""
    loader = LiveLoader(torch.arange(group.samples), plan_of(group), group.manager)
    for _ in group.train(loader):
        save(group, loader)


def save(group: Group, live: LiveLoader) -> None:
    """Save a checkpoint, if it is time, in the first group; of two quorums, both may try."""
    manager = group.manager
    if manager.current_step() % SAVED_EVERY == 0 and manager.participating_rank() == 0:
        with suppress(ip.PlanFileError):  # the other quorum has written meanwhile
            ledger = ip.Ledger(group.folder / LEDGER)
            ledger.rewind(min(manager.current_step() - 1, ledger.step))
            ledger.record(plan_of(group).replace(world_size=1), live.cursor)


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
