"""Loops of a torchft group that read a plan: one with a loader, and one of its own."""

from __future__ import annotations

import torch

import indexplan as ip
from benchmarks.torture.group import Group
from indexplan_torch.live import Live, LiveLoader

BATCH = 60


def plan_of(group: Group) -> ip.Plan:
    """Return what all groups read."""
    return ip.Plan(ip.Shuffle(group.samples, seed=5), global_batch_size=BATCH)


def through_loader(group: Group) -> None:
    """Train as torchft's train_ddp does."""
    for _ in group.train(LiveLoader(torch.arange(group.samples), plan_of(group), group.manager)):
        pass


def by_hand(group: Group) -> None:
    """Train in a loop of its own, which draws before it knows the quorum."""
    live = Live(plan_of(group), group.manager)
    while True:
        group.optimizer.zero_grad()
        rows = torch.from_numpy(live.begin())
        loss = group.loss(rows)
        if (instead := live.settled()) is not None:
            rows = torch.from_numpy(instead)
            loss = group.loss(rows)
        group.backward(loss, rows)
        committed = group.manager.should_commit()
        if committed:
            group.optimizer.optim.step()
            group.counts()
        live.commit(committed)
