"""Which rank is this, and of how many? Asked at first use, when the trainer has settled it."""

from __future__ import annotations

import os
from typing import Any

import torch.distributed

from indexplan import IndexPlanError
from indexplan_torch.arguments import integer, shown
from indexplan_torch.meshes import ranks_in, ranks_of_meshes_that_run


def discover(
    rank: int | None = None, world_size: int | None = None, *, mesh: Any = None
) -> tuple[int, int]:
    """Return (rank, world_size) of the running process, among those that read different samples.

    What is given wins; then torch.distributed, if its process group is up: its device meshes, by
    the names of their dimensions, so that tensor-parallel peers read the same; without a mesh each
    rank its own. Then the environment's RANK and WORLD_SIZE, as torchrun sets them; else this is
    the only rank.

    Parameters
    ----------
    rank, world_size : int, optional
        Both or none.
    mesh : torch.distributed.device_mesh.DeviceMesh, optional
        A mesh, or its data-parallel dimension, such as `mesh["dp"]`.

    Raises
    ------
    IndexPlanError
        If only one of the two is given, they are no rank and world size, several ranks run and none
        says which one this is, or a mesh does not tell which of its dimensions is data-parallel.

    Examples
    --------
    >>> from indexplan_torch import discover
    >>> discover(rank=3, world_size=8)
    (3, 8)
    """
    if (rank is None) != (world_size is None):
        raise IndexPlanError(
            f"rank and world_size must be given together; got rank={shown(rank)}, "
            f"world_size={shown(world_size)}; leave both out to have them discovered"
        )
    if mesh is not None:
        if rank is not None:
            raise IndexPlanError(
                f"mesh must be alone, as it tells the rank; got rank={shown(rank)} too; leave rank "
                "and world_size out"
            )
        return ranks_in(mesh)
    if rank is not None and world_size is not None:
        return given(rank, world_size)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        among = ranks_of_meshes_that_run()
        return among or (torch.distributed.get_rank(), torch.distributed.get_world_size())
    running = int(os.environ.get("WORLD_SIZE", "1"))
    if running == 1:
        return 0, 1
    if "RANK" not in os.environ:
        raise IndexPlanError(
            f"rank must be known before batches are; got WORLD_SIZE={running} and no RANK; "
            "initialize torch.distributed first, or pass rank and world_size"
        )
    return int(os.environ["RANK"]), running


def given(rank: Any, world_size: Any) -> tuple[int, int]:
    """Return what somebody gave, if it is a rank of that many."""
    ranks = integer(world_size)
    if ranks is None or ranks < 1:
        raise IndexPlanError(
            f"world_size must be an integer from 1; got {shown(world_size)}; count the ranks "
            "that train"
        )
    number = integer(rank)
    if number is None or not 0 <= number < ranks:
        raise IndexPlanError(
            f"rank must be an integer from 0 to {ranks - 1}, with world_size={ranks}; got "
            f"{shown(rank)}; count ranks from 0"
        )
    return number, ranks


def refuse_num_replicas(number: Any) -> None:
    """Refuse DistributedSampler's word for the world size, with ours."""
    if number is not None:
        raise IndexPlanError(
            f"num_replicas must be left out; got {shown(number)}; its name here is world_size="
        )
