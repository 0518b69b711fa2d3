"""Find the rank and the world size, at first use, when the trainer has set them up."""

from __future__ import annotations

import os
import warnings
from typing import Any

import torch.distributed

from indexplan import IndexPlanError
from indexplan.errors import integer, shown


def discover(
    rank: int | None = None, world_size: int | None = None, *, mesh: Any = None
) -> tuple[int, int]:
    """Return this process's rank and the world size, counting ranks that read different samples.

    Loaders and samplers call it. It looks at these, in this order: the arguments;
    torch.distributed, if its process group is initialized; and the environment variables RANK and
    WORLD_SIZE, which torchrun sets. Without any of these, this is the only rank. In
    torch.distributed, the names of the running device meshes' dimensions decide, so tensor-parallel
    peers count as one rank. Without a mesh, each process is a rank. A mesh with a single dimension
    can't be found, so pass it if its ranks are peers.

    Parameters
    ----------
    rank, world_size : int, optional
        Both or neither.
    mesh : torch.distributed.device_mesh.DeviceMesh, optional
        A mesh, or its data-parallel dimension, such as `mesh["dp"]`, instead of rank and
        world_size.

    Raises
    ------
    IndexPlanError
        If you pass only one of rank and world_size, or a mesh as well; if they are out of range; if
        WORLD_SIZE is set without RANK; or if a mesh's names don't show which of its dimensions is
        data-parallel.

    Examples
    --------
    >>> from indexplan_torch.ranks import discover
    >>> discover(rank=3, world_size=8)
    (3, 8)
    """
    if (rank is None) != (world_size is None):
        raise IndexPlanError(
            "rank and world_size",
            "must be given together",
            f"rank={shown(rank)}, world_size={shown(world_size)}",
            "leave both out to have them discovered",
        )
    if mesh is not None:
        if rank is not None:
            raise IndexPlanError(
                "mesh",
                "must be passed alone, as it tells the rank",
                f"rank={shown(rank)} too",
                "leave rank and world_size out",
            )
        from indexplan_torch.meshes import ranks_in

        return ranks_in(mesh)
    if rank is not None and world_size is not None:
        return given(rank, world_size)
    if process_group_runs():
        from indexplan_torch.meshes import ranks_of_meshes_that_run

        among = ranks_of_meshes_that_run()
        return among or (torch.distributed.get_rank(), torch.distributed.get_world_size())
    running = int(os.environ.get("WORLD_SIZE", "1"))
    if running == 1:
        return 0, 1
    if "RANK" not in os.environ:
        raise IndexPlanError(
            "rank",
            "must be known before batches are read",
            f"WORLD_SIZE={running} and no RANK",
            "initialize torch.distributed first, or pass rank and world_size",
        )
    return int(os.environ["RANK"]), running


def process_group_runs() -> bool:
    """Return whether torch.distributed is initialized."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def check_found_ranks(*, given: bool) -> None:
    """Check, at a run's first pass, what can't be known earlier about the ranks that were found.

    Two cases get a warning. Without a process group, a rank may train, save and end before another
    begins, which then loads the end of the run and reads nothing. And processes that srun started
    without telling anyone their ranks each read all samples, which is right only for independent
    runs.

    """
    running = int(os.environ.get("WORLD_SIZE", "1"))
    if given or process_group_runs():
        return
    if running > 1:
        warnings.warn(
            f"a process group must run where WORLD_SIZE={running} processes read a plan, or one "
            "of them may load what another has saved at the end; got none; add "
            "torch.distributed.init_process_group() before the checkpoint is looked for, or pass "
            "rank= and world_size=",
            stacklevel=5,  # the loop that begins a pass
        )
    elif "WORLD_SIZE" not in os.environ and int(os.environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        warnings.warn(
            "rank and world_size must be known where srun has started "
            f"{os.environ['SLURM_STEP_NUM_TASKS']} processes, or each of them reads all samples; "
            "got neither; add torch.distributed.init_process_group(rank=, world_size=) of "
            "SLURM_PROCID and SLURM_NTASKS before the first pass, or pass rank=0 and world_size=1 "
            "if each process is a run of its own",
            stacklevel=5,
        )


def given(rank: Any, world_size: Any) -> tuple[int, int]:
    """Check a rank and a world size that were passed, and return them."""
    ranks = integer("world_size", world_size, 1, 2**31, "pass the number of ranks that train")
    return integer("rank", rank, 0, ranks, f"count ranks from 0, below world_size={ranks}"), ranks
