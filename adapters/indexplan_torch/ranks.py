"""Which rank is this, and of how many? Asked at first use, when the trainer has settled it."""

from __future__ import annotations

import os

import torch.distributed

from indexplan import IndexPlanError


def discover(rank: int | None = None, world_size: int | None = None) -> tuple[int, int]:
    """Return (rank, world_size) of the running process.

    What is given wins; then torch.distributed, if its process group is up; then the environment's
    RANK and WORLD_SIZE, as torchrun sets them; else this is the only rank.

    Raises
    ------
    IndexPlanError
        If only one of the two is given, or several ranks run and none says which one this is.

    Examples
    --------
    >>> from indexplan_torch import discover
    >>> discover(rank=3, world_size=8)
    (3, 8)
    """
    if (rank is None) != (world_size is None):
        raise IndexPlanError(
            f"rank and world_size must be given together; got rank={rank}, "
            f"world_size={world_size}; leave both out to have them discovered"
        )
    if rank is not None and world_size is not None:
        return rank, world_size
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    running = int(os.environ.get("WORLD_SIZE", "1"))
    if running == 1:
        return 0, 1
    if "RANK" not in os.environ:
        raise IndexPlanError(
            f"rank must be known before batches are; got WORLD_SIZE={running} and no RANK; "
            "initialize torch.distributed first, or pass rank and world_size"
        )
    return int(os.environ["RANK"]), running
