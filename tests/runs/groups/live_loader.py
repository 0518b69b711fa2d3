"""A LiveLoader: the state of the run comes with the weights."""

from __future__ import annotations

import torch

import indexplan as ip
from indexplan_torch.live import LiveLoader
from tests.runs.groups.group import Group
from tests.runs.groups.live import BATCH, GROUPS


def train(group: Group) -> None:
    """Read until the run's epoch ends."""
    plan = ip.Plan(ip.Shuffle(group.samples), global_batch_size=GROUPS * BATCH)
    loader = LiveLoader(torch.arange(group.samples), plan, group.manager, num_epochs=1)
    for _ in group.train(loader):
        pass
