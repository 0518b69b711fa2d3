"""The one table of rivals, ours among them, that feeds every comparison of planning.

A rival is a function of this file, which imports what it needs and returns a `Planner`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders import Contender, name_packages

FULL_SHARE = 2**22


class Job(NamedTuple):
    """What a rank is asked for."""

    n: int
    world: int = 64
    rank: int = 7
    batch: int = 256
    seed: int = 1
    limit: int = FULL_SHARE
    """Indices of the share at most."""
    folder: str = ""
    """Where files go."""

    def steps(self) -> int:
        """Return the full global batches of an epoch."""
        return self.n // (self.world * self.batch)


class Sized:
    """A dataset of which only the size is asked."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n


class Planner:
    """What a rival can be asked; those that are torch samplers, build files and so on say more.

    - `order(n, seed)`: the whole epoch, int64, for a rival with a shuffle of its own.
    - `batch_sampler(job)`, `loader(dataset, job, workers)`: for a rival that is a torch sampler.
    - `build(job)`: write the file that others read; returns its bytes.
    """

    def stream(self, job: Job) -> Iterator[Any]:
        """Return an iterator over a rank's batches, each ready to index a dataset."""
        return self.resume(job, 0)

    def share(self, job: Job) -> Any:
        """Return all indices that a rank reads in an epoch, or the first `job.limit` of them."""
        raise NotImplementedError

    def saved(self, job: Job, step: int) -> Any:
        """Return what a checkpoint holds from which `resume` goes on."""
        return step

    def resume(self, job: Job, state: Any) -> Iterator[Any]:
        """Return the rest of `stream` from a step on, the way the rival's own users resume."""
        raise NotImplementedError

    def prepare(self, job: Job) -> None:
        """Make the file that a run finds there already, before `share` and `resume`."""


def ours() -> Any:
    """indexplan, computing its order."""
    import indexplan as ip

    class Ours(Planner):
        def plan(self, job: Job) -> ip.Plan:
            order = ip.Shuffle(job.n, seed=job.seed)
            return ip.Plan(order, world_size=job.world, batch_size=job.batch)

        def stream(self, job: Job) -> Iterator[Any]:
            return self.plan(job).batches(0, rank=job.rank)

        def share(self, job: Job, of: ip.Plan | None = None) -> Any:
            plan = of or self.plan(job)
            stop = min(plan.steps(0).stop, max(1, job.limit // job.batch))
            return plan.indices(0, rank=job.rank, stop_step=stop)

        def saved(self, job: Job, step: int) -> str:
            return self.plan(job).cursor(0, step=step).to_json()

        def resume(self, job: Job, state: str) -> Iterator[Any]:
            plan = self.plan(job).resume(ip.Cursor.from_json(state))
            return plan.batches(0, rank=job.rank)

        def order(self, n: int, seed: int) -> Any:
            return ip.Shuffle(n, seed=seed).take(0, 0, n)

    return Ours()


def ours_saved() -> Any:
    """`indexplan.save`, then `indexplan.load`: chunks mapped into memory."""
    import indexplan as ip

    computing = ours()

    class Saved(Planner):
        def path(self, job: Job) -> Path:
            return Path(job.folder) / f"{job.n}-{job.world}.plan"

        def plan(self, job: Job) -> ip.Plan:
            return ip.load(self.path(job))

        def build(self, job: Job) -> int:
            ip.save(computing.plan(job), self.path(job))
            return sum(file.stat().st_size for file in self.path(job).rglob("*") if file.is_file())

        def prepare(self, job: Job) -> None:
            if not (self.path(job) / "plan.json").exists():
                self.build(job)

        def stream(self, job: Job) -> Iterator[Any]:  # as the first run has it: built, then read
            self.prepare(job)
            return iter(self.plan(job).batches(0, rank=job.rank))

        def share(self, job: Job) -> Any:
            return computing.share(job, self.plan(job))

        def saved(self, job: Job, step: int) -> str:
            return str(computing.saved(job, step))

        def resume(self, job: Job, state: str) -> Iterator[Any]:
            plan = self.plan(job).resume(ip.Cursor.from_json(state))
            return plan.batches(0, rank=job.rank)

    return Saved()


def torch_sampler(kind: Any) -> Any:
    """Return the class of those that have one of torch's kind of samplers in a BatchSampler."""
    import torch
    from torch.utils.data import BatchSampler, DataLoader

    torch.set_num_threads(1)

    class Sampler(Planner):
        def sampler(self, job: Job) -> Any:
            return kind(Sized(job.n), num_replicas=job.world, rank=job.rank, seed=job.seed)

        def batch_sampler(self, job: Job, sampler: Any = None) -> Any:
            return BatchSampler(sampler or self.sampler(job), job.batch, drop_last=False)

        def loader(self, dataset: Any, job: Job, workers: int) -> Any:
            return DataLoader(dataset, job.batch, sampler=self.sampler(job), num_workers=workers)

        def stream(self, job: Job) -> Iterator[Any]:
            return iter(self.batch_sampler(job))

        def share(self, job: Job) -> Any:  # the iterator makes the whole of it first
            return list(islice(iter(self.sampler(job)), job.limit))

    return Sampler


def distributed_sampler() -> Any:
    """In a BatchSampler. A resume skips batches, as Accelerate's skip_first_batches does."""
    import torch
    from torch.utils.data.distributed import DistributedSampler

    class Distributed(torch_sampler(DistributedSampler)):  # type: ignore[misc]
        def resume(self, job: Job, state: int) -> Iterator[Any]:
            return islice(self.stream(job), state, None)

        def order(self, n: int, seed: int) -> Any:
            return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).numpy()

    return Distributed()


def stateful_sampler() -> Any:
    """In a BatchSampler; resumes through its `state_dict`. Its order is torch.randperm."""
    from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

    class Stateful(torch_sampler(StatefulDistributedSampler)):  # type: ignore[misc]
        def saved(self, job: Job, step: int) -> dict[str, Any]:  # its state_dict: a test compares
            return {StatefulDistributedSampler._YIELDED: step * job.batch}  # noqa: SLF001

        def resume(self, job: Job, state: dict[str, Any]) -> Iterator[Any]:
            sampler = self.sampler(job)
            sampler.load_state_dict(state)
            return iter(self.batch_sampler(job, sampler))

    return Stateful()


def grain_sampler() -> Any:
    """Shuffles inside each rank's contiguous shard, by index_shuffle; makes a random generator
    for each record.
    """
    from grain.samplers import IndexSampler
    from grain.sharding import ShardOptions

    class Grain(Planner):
        def sampler(self, job: Job) -> Any:
            shards = ShardOptions(job.rank, job.world)
            return IndexSampler(job.n, shards, shuffle=True, num_epochs=1, seed=job.seed)

        def share(self, job: Job) -> Any:
            sampler, places = self.sampler(job), range(job.rank, job.n, job.world)
            return [sampler[i].record_key for i in islice(places, job.limit)]

        def resume(self, job: Job, state: int) -> Iterator[Any]:
            sampler, places = self.sampler(job), range(job.rank, job.n, job.world)
            for i in range(state * job.batch, len(places), job.batch):
                yield [sampler[j].record_key for j in places[i : i + job.batch]]

    return Grain()


def grain_shuffle() -> Any:
    """`grain.experimental.index_shuffle` on `range(rank, n, world_size)`, 4 rounds."""
    from functools import partial

    from grain.experimental import index_shuffle as module

    # the exported name is the function in some versions, and the module that holds it in others;
    # 4 rounds are what its ShuffleMapDataset passes
    shuffle = partial(getattr(module, "index_shuffle", module), rounds=4)

    class Grain(Planner):
        def share(self, job: Job) -> Any:
            places = islice(range(job.rank, job.n, job.world), job.limit)
            return [shuffle(i, max_index=job.n - 1, seed=job.seed) for i in places]

        def resume(self, job: Job, state: int) -> Iterator[Any]:
            places, last = range(job.rank, job.n, job.world), job.n - 1
            for i in range(state * job.batch, len(places), job.batch):
                batch = places[i : i + job.batch]
                yield [shuffle(j, max_index=last, seed=job.seed) for j in batch]

        def order(self, n: int, seed: int) -> Any:
            shuffled = (shuffle(i, max_index=n - 1, seed=seed) for i in range(n))
            return np.fromiter(shuffled, np.int64, n)

    return Grain()


def megatron_style() -> Any:
    """Written here in the manner of Megatron-LM: RandomState shuffle of uint32, np.save,
    np.load mapped; contiguous batches of ranks, a last step that is not full is dropped.
    """

    class Cached(Planner):
        def path(self, job: Job) -> Path:
            return Path(job.folder) / f"{job.n}-{job.seed}.npy"

        def build(self, job: Job) -> int:
            dtype = np.uint32 if job.n < 2**32 - 2 else np.int64
            shuffle_index = np.arange(job.n, dtype=dtype)
            np.random.RandomState(job.seed).shuffle(shuffle_index)
            np.save(self.path(job), shuffle_index, allow_pickle=False)
            return self.path(job).stat().st_size

        def prepare(self, job: Job) -> None:
            if not self.path(job).exists():
                self.build(job)

        def mapped(self, job: Job) -> Any:
            return np.load(self.path(job), mmap_mode="r")

        def stream(self, job: Job) -> Iterator[Any]:  # as the first run has it: built, then read
            self.prepare(job)
            return self.resume(job, 0)

        def share(self, job: Job) -> Any:
            size = job.world * job.batch
            steps = self.mapped(job)[: job.steps() * size].reshape(-1, job.world, job.batch)
            # a copy: for one rank a view would do, which reads nothing of the file
            return np.array(steps[: max(1, job.limit // job.batch), job.rank]).ravel()

        def resume(self, job: Job, state: int) -> Iterator[Any]:
            order, size = self.mapped(job), job.world * job.batch
            first = job.rank * job.batch
            for start in range(state * size + first, job.steps() * size, size):
                yield np.array(order[start : start + job.batch])

    return Cached()


def numpy_slice() -> Any:
    """`default_rng(seed).permutation(n)[rank::world_size]`, cut into batches."""

    class Sliced(Planner):
        def order(self, n: int, seed: int) -> Any:
            return np.random.default_rng(seed).permutation(n)

        def share(self, job: Job) -> Any:  # a copy, as a training loop lets the epoch go
            mine = self.order(job.n, job.seed)[job.rank :: job.world]
            return np.ascontiguousarray(mine[: job.limit])

        def resume(self, job: Job, state: int) -> Iterator[Any]:
            mine = self.order(job.n, job.seed)[job.rank :: job.world]
            return (mine[i : i + job.batch] for i in range(state * job.batch, len(mine), job.batch))

    return Sliced()


def streaming_code() -> tuple[Any, Any]:
    """Return MosaicML Streaming's partition and shuffle, as they are published.

    `import streaming` imports the clients of several clouds, transformers and torchvision; its two
    planning packages import NumPy alone. So its parent packages are named without being run.
    """
    name_packages("streaming", "streaming.base")
    from streaming.base.partition import get_partitions
    from streaming.base.shuffle import get_shuffle

    return get_partitions, get_shuffle


def streaming() -> Any:
    """`get_partitions` and `get_shuffle` with their defaults, on nothing but sizes: shards of
    4,096, nodes of 8 ranks. One process per node does it while the others wait, so its memory
    is per node. Installed without its dependencies, which allow no NumPy past 2.2 and bring the
    clients of every cloud; what is called needs NumPy alone.
    """
    get_partitions, get_shuffle = streaming_code()
    shard, per_node = 4096, 8

    class Streaming(Planner):
        def order(self, n: int, seed: int, num_nodes: int = 1) -> Any:
            """Return its default shuffle, with the default canonical nodes and block size."""
            sizes = np.full(-(-n // shard), shard, np.int64)
            sizes[-1] = n - shard * (len(sizes) - 1)
            block = max(4_000_000 // num_nodes, 2**18)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # blocks smaller than a shard, in small jobs
                return get_shuffle("py1e", sizes, num_nodes, seed, 0, block)

        def work(self, job: Job, done: int = 0) -> Any:
            """Do what its datasets do when an epoch starts or goes on; (batches, batch) of a rank.

            They also map ids once more for datasets that are mixed; that is left out.
            """
            nodes, ranks = max(1, job.world // per_node), min(per_node, job.world)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few samples for many ranks, in small jobs
                ids = get_partitions(
                    "relaxed", job.n, nodes, nodes, ranks, 1, job.batch, done, nodes
                )
            ids = np.where(ids != -1, self.order(job.n, job.seed, nodes)[ids], -1)
            # ids: (nodes, ranks per node, workers per rank, batches per worker, batch size)
            return ids[job.rank // ranks, job.rank % ranks, 0]

        def share(self, job: Job) -> Any:
            flat = self.work(job).ravel()
            return flat[flat != -1][: job.limit]

        def resume(self, job: Job, state: int) -> Iterator[Any]:
            done = state * job.world * job.batch
            return (batch[batch != -1] for batch in self.work(job, done))

    return Streaming()


@dataclass(frozen=True)
class Rival(Contender):
    """One way to plan an epoch; everything about it but its code."""

    colour: str
    dashes: str = "-"
    bytes_per_index: int = 0
    """Of its file, if it has one."""
    by_index: bool = False
    """Whether it answers one index per call from Python, so that its rate shows on few."""
    order_name: str = ""
    """What its own shuffle is called, if it has one."""
    largest_order: int = 10**8
    """The largest whole order that the repeated timings of it have the time for."""


# Colours are Okabe and Ito's, which colour-blind readers tell apart; whoever shares one differs in
# line style.
RIVALS = (
    Rival("indexplan", "ours", "indexplan", "#000000", ours=True, order_name="indexplan.Shuffle"),
    Rival(
        "indexplan, saved plan",
        "ours_saved",
        "indexplan",
        "#000000",
        dashes="--",
        ours=True,
        bytes_per_index=4,
    ),
    Rival(
        "torch DistributedSampler",
        "distributed_sampler",
        "torch",
        "#D55E00",
        order_name="torch.randperm",
    ),
    Rival(
        "torchdata StatefulDistributedSampler",
        "stateful_sampler",
        "torchdata",
        "#E69F00",
        dashes="--",
    ),
    Rival(
        "NumPy permutation + slice",
        "numpy_slice",
        "numpy",
        "#0072B2",
        order_name="numpy Generator.permutation",
    ),
    Rival(
        "Grain index_shuffle",
        "grain_shuffle",
        "grain",
        "#009E73",
        by_index=True,
        order_name="grain index_shuffle",
        largest_order=10**5,
    ),
    Rival("Grain IndexSampler", "grain_sampler", "grain", "#009E73", dashes=":", by_index=True),
    Rival(
        "MosaicML Streaming planning",
        "streaming",
        "mosaicml-streaming",
        "#CC79A7",
        order_name="Streaming py1e",
        largest_order=10**6,
        apart="mosaicml-streaming==0.13.0",
    ),
    Rival("Megatron-style cached .npy", "megatron_style", "numpy", "#56B4E9", bytes_per_index=4),
)

NAMES = {rival.name: rival for rival in RIVALS}
OURS = RIVALS[0].name


def present() -> list[Rival]:
    """Return the rivals that can be imported; the report lists the others."""
    return [rival for rival in RIVALS if not rival.standing()["missing"]]
