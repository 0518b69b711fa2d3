"""Random streams for augmentation: one for every rank and worker, all from one seed."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import torch

from indexplan import IndexPlanError, worker_seed
from indexplan.errors import invalid
from indexplan_torch.ranks import process_group_runs
from indexplan_torch.run import Run


def _seed(run: Run, rank: int, worker: int) -> int:
    number = run.coming  # workers are seeded before their sampler begins the pass
    # passes are numbered through all sub-epochs, so each has its own stream
    seed = run.plan.order.stream_key
    value = worker_seed(seed, epoch=number % 2**32, rank=rank, worker=worker)
    random.seed(value)
    np.random.seed(value % 2**32)  # noqa: NPY002 (augmentations use the global state)
    torch.manual_seed(value)
    return value


class SeedWorker:
    """A `worker_init_fn` that seeds each worker from (seed, pass, rank, worker).

    Pass it to your own DataLoader around a `PlanBatchSampler`; `PlanLoader` has it by default.
    Persistent workers are seeded only once, when they start.

    Parameters
    ----------
    run : Run
        `sampler.run`, where sampler is the one that the DataLoader reads.

    Examples
    --------
    >>> import indexplan as ip
    >>> from torch.utils.data import DataLoader
    >>> from indexplan_torch import PlanBatchSampler
    >>> from indexplan_torch.seeding import SeedWorker
    >>> sampler = PlanBatchSampler(ip.Plan(ip.Shuffle(10), batch_size=4))
    >>> start = SeedWorker(sampler.run)
    >>> loader = DataLoader(range(10), batch_sampler=sampler, worker_init_fn=start)
    """

    def __init__(self, run: Run) -> None:
        if not isinstance(run, Run):
            raise invalid("run", "a sampler's", run, "pass sampler.run of a PlanBatchSampler")
        self.run = run

    def __call__(self, worker: int) -> None:
        """Seed this process as a worker."""
        sent = None if process_group_runs() else vars(self).get("rank")
        _seed(self.run, self.run.running()[1] if sent is None else sent, worker)

    def __getstate__(self) -> dict[str, Any]:
        """Find the rank before being sent to a spawned worker, which has no process group."""
        with contextlib.suppress(IndexPlanError):  # the sampler raises it later, when it draws
            return {**vars(self), "rank": self.run.running()[1]}
        return vars(self)


def seed_rank(loader: Any) -> int:
    """Seed this process like worker 0 of its rank, for augmentation in loaders without workers.

    Call it after `set_epoch` and before the loop. In the last step of a pass it would already seed
    for the next pass.

    Parameters
    ----------
    loader : PlanLoader or PlanBatchSampler
        The seed comes from its plan, its rank, and its pass (the current one, or the next).

    Returns
    -------
    int
        The seed, `worker_seed` of (the order's `stream_key`, pass, rank, 0), 0 <= seed < 2**64;
        NumPy gets it modulo 2**32. To log it, ask torch: `torch.initial_seed()`, in workers too.

    Raises
    ------
    IndexPlanError
        If loader is neither a PlanLoader nor a PlanBatchSampler.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader, seed_rank
    >>> loader = PlanLoader(range(10), ip.Plan(ip.Shuffle(10, seed=7), batch_size=4))
    >>> loader.set_epoch(2)
    >>> seed_rank(loader) == ip.worker_seed(7, epoch=2, rank=0, worker=0)
    True
    """
    run = getattr(loader, "run", None)
    if not isinstance(run, Run):
        raise invalid(
            "loader",
            "a PlanLoader, or one of the samplers",
            loader,
            "pass PlanLoader(dataset, plan)",
        )
    return _seed(run, run.running()[1], 0)
