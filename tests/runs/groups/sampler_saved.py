"""torchft's own DistributedSampler, with a loader whose state each group saves after each step."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.runs.groups.group import Group
from tests.runs.groups.sampler import loader_of, loop


def train(group: Group) -> None:
    """Go on where the group's own file says."""
    loader, file = loader_of(group), group.folder / f"g{group.number}.loader"
    if file.exists():
        loader.load_state_dict(torch.load(file))

    def save() -> None:
        new = Path(f"{file}.new")
        torch.save(loader.state_dict(), new)
        new.replace(file)

    loop(group, loader, save)
