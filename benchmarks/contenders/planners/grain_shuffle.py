"""Grain's keyed shuffle, called for each index, as its datasets call it."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from grain.experimental import index_shuffle as module

from benchmarks.contenders.planners import Job

# The exported name is the function in some versions, and the module that holds it in others.
index_shuffle = getattr(module, "index_shuffle", module)
ROUNDS = 4  # what its ShuffleMapDataset passes


def stream(job: Job) -> Iterator[Any]:
    return resume(job, 0)


def share(job: Job) -> Any:
    positions = islice(range(job.rank, job.n, job.world), job.limit)
    return [index_shuffle(i, max_index=job.n - 1, seed=job.seed, rounds=ROUNDS) for i in positions]


def resume(job: Job, state: int) -> Iterator[Any]:
    positions = range(job.rank, job.n, job.world)
    for i in range(state * job.batch, len(positions), job.batch):
        yield [
            index_shuffle(j, max_index=job.n - 1, seed=job.seed, rounds=ROUNDS)
            for j in positions[i : i + job.batch]
        ]


def order(n: int, seed: int) -> Any:
    shuffled = (index_shuffle(i, max_index=n - 1, seed=seed, rounds=ROUNDS) for i in range(n))
    return np.fromiter(shuffled, np.int64, n)
