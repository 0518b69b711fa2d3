"""In the manner of Megatron-LM: one process shuffles and saves, all map the file.

Not Megatron's code: the same calls, for the same dtype, cut as its pretraining sampler cuts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders.planners import Job


def path_of(job: Job) -> Path:
    return Path(job.folder) / f"{job.n}-{job.seed}.npy"


def build(job: Job) -> int:
    dtype = np.uint32 if job.n < 2**32 - 2 else np.int64
    shuffle_index = np.arange(job.n, dtype=dtype)
    np.random.RandomState(job.seed).shuffle(shuffle_index)
    np.save(path_of(job), shuffle_index, allow_pickle=False)
    return path_of(job).stat().st_size


def prepare(job: Job) -> None:
    if not path_of(job).exists():
        build(job)


def mapped(job: Job) -> Any:
    return np.load(path_of(job), mmap_mode="r")


def stream(job: Job) -> Iterator[Any]:
    """As the first run has it: the file is built, then read."""
    prepare(job)
    return resume(job, 0)


def share(job: Job) -> Any:
    size = job.world * job.batch
    steps = mapped(job)[: job.steps() * size].reshape(-1, job.world, job.batch)
    # a copy: for one rank a view would do, which reads nothing of the file
    return np.array(steps[: max(1, job.limit // job.batch), job.rank]).ravel()


def resume(job: Job, state: int) -> Iterator[Any]:
    order, size = mapped(job), job.world * job.batch
    first = job.rank * job.batch
    for start in range(state * size + first, job.steps() * size, size):
        yield np.array(order[start : start + job.batch])
