"""What one writes by hand: NumPy's permutation of everything, and a slice of it."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contenders.planners import Job


def order(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).permutation(n)


def share(job: Job) -> Any:
    """Keep what a training loop keeps, so that the epoch can go."""
    return np.ascontiguousarray(order(job.n, job.seed)[job.rank :: job.world][: job.limit])


def stream(job: Job) -> Iterator[Any]:
    return resume(job, 0)


def resume(job: Job, state: int) -> Iterator[Any]:
    mine = order(job.n, job.seed)[job.rank :: job.world]
    return (mine[i : i + job.batch] for i in range(state * job.batch, len(mine), job.batch))
