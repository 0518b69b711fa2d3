"""MosaicML Streaming's planning: its partition and shuffle functions, on nothing but sizes.

`import streaming` imports the clients of several clouds, transformers and torchvision; its two
planning packages import NumPy alone. So its parent packages are named without being run, and the
code below them is the published one, as it is.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.contenders import name_packages
from benchmarks.contenders.planners import Job

name_packages("streaming", "streaming.base")
from streaming.base.partition import get_partitions  # noqa: E402 (needs the names above)
from streaming.base.shuffle import get_shuffle  # noqa: E402

SHARD, RANKS_PER_NODE = 4096, 8


def nodes(job: Job) -> tuple[int, int]:
    """Return the nodes of a world, and the ranks of each."""
    return max(1, job.world // RANKS_PER_NODE), min(RANKS_PER_NODE, job.world)


def shuffled(n: int, seed: int, num_nodes: int) -> Any:
    """Return its default shuffle, with the default canonical nodes and block size."""
    sizes = np.full(-(-n // SHARD), SHARD, np.int64)
    sizes[-1] = n - SHARD * (len(sizes) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # blocks smaller than a shard, in small warm-up jobs
        return get_shuffle("py1e", sizes, num_nodes, seed, 0, max(4_000_000 // num_nodes, 2**18))


def work(job: Job, drop_first: int = 0) -> Any:
    """Do what its datasets do when an epoch starts or goes on; (batches, batch) of a rank.

    They also map ids once more for datasets that are mixed from several; that is left out.
    """
    num_nodes, per_node = nodes(job)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few samples for many ranks, in small warm-up jobs
        ids = get_partitions(
            "relaxed", job.n, num_nodes, num_nodes, per_node, 1, job.batch, drop_first, num_nodes
        )
    order = shuffled(job.n, job.seed, num_nodes)
    ids = np.where(ids != -1, order[ids], -1)
    # ids: (nodes, ranks per node, workers per rank, batches per worker, batch size)
    return ids[job.rank // per_node, job.rank % per_node, 0]


def stream(job: Job) -> Iterator[Any]:
    return (batch[batch != -1] for batch in work(job))


def share(job: Job) -> Any:
    flat = work(job).ravel()
    return flat[flat != -1][: job.limit]


def resume(job: Job, state: int) -> Iterator[Any]:
    return (batch[batch != -1] for batch in work(job, state * job.world * job.batch))


def order(n: int, seed: int) -> Any:
    return shuffled(n, seed, 1)
