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


class SeedWorker:
    """A `worker_init_fn` that seeds each worker from (seed, pass, rank, worker).

    Pass it to your own DataLoader around a `PlanBatchSampler`; `PlanLoader` has it by default.
    Persistent workers are seeded only once, when they start. Without workers, seed the process that
    reads like worker 0 of its rank: `loader.worker_init_fn(0)`, after `set_epoch` and before the
    loop. In the last step of a pass it would already seed for the next pass.

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
        """Seed this process as a worker; torch returns the seed: `torch.initial_seed()`."""
        sent = None if process_group_runs() else vars(self).get("rank")
        rank = self.run.running()[1] if sent is None else sent
        number = self.run.coming  # workers are seeded before their sampler begins the pass
        # passes are numbered through all sub-epochs, so each has its own stream
        key = self.run.plan.order.stream_key
        value = worker_seed(key, epoch=number % 2**32, rank=rank, worker=worker)
        random.seed(value)
        np.random.seed(value % 2**32)  # noqa: NPY002 (augmentations use the global state)
        torch.manual_seed(value)

    def __getstate__(self) -> dict[str, Any]:
        """Find the rank before being sent to a spawned worker, which has no process group."""
        with contextlib.suppress(IndexPlanError):  # the sampler raises it later, when it draws
            return {**vars(self), "rank": self.run.running()[1]}
        return vars(self)
