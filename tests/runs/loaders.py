"""The one table of loaders that claim to resume, ours among them.

A loader is a function, named by its entry, that imports what it needs and returns what makes a
`Loader` of a place and a checkpoint (see running.py); if the data has to be in a format of its own,
that also has `write(folder, n)`. Each cites the page that says how to set it up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.contenders.planners import Sized
from tests.histories.stories import Given, Record, Story
from tests.runs.histories import EPOCHS, Leg, history
from tests.runs.rivals import Rival
from tests.runs.running import Loader, Make, Place, Policy, Saved, Stateful, counted, play


def nothing(n: int, legs: Sequence[Leg]) -> tuple[int, int]:  # noqa: ARG001
    """Read each sample once."""
    return 0, 0


def pads_ranks(n: int, legs: Sequence[Leg]) -> tuple[int, int]:
    """Repeat samples until all ranks have as many."""
    return 0, max(-n % leg.world for leg in legs)


def drops_ranks(n: int, legs: Sequence[Leg]) -> tuple[int, int]:
    """Drop samples until all ranks have as many."""
    return max(n % leg.world for leg in legs), 0


def pads_each_leg(n: int, legs: Sequence[Leg]) -> tuple[int, int]:
    """Repeat samples until all ranks have as many of what is left when the ranks change."""
    worlds = {leg.world for leg in legs}
    return 0, (-n % worlds.pop() if len(worlds) == 1 else max(worlds) - 1)


def pads_batches(n: int, legs: Sequence[Leg]) -> tuple[int, int]:
    """Repeat samples until all ranks have as many full batches."""
    return 0, max(-n % (leg.world * leg.batch) for leg in legs)


def drops_batches(n: int, legs: Sequence[Leg]) -> tuple[int, int]:
    """Drop what does not fill a batch on every rank."""
    sizes = {leg.world * leg.batch for leg in legs}
    return (n % sizes.pop() if len(sizes) == 1 else max(sizes) - 1), 0


def drops_worker_batches(n: int, legs: Sequence[Leg]) -> tuple[int, int]:
    """Drop what does not fill a batch of every worker of every rank."""
    sizes = {leg.world * leg.batch * max(1, leg.workers) for leg in legs}
    return (n % sizes.pop() if len(sizes) == 1 else max(sizes) - 1), 0


@dataclass(frozen=True)
class Entry(Rival):
    """One loader; everything about it but its code."""

    docs: str
    """The page by which it is set up."""
    setup: str
    """How it is set up, in words."""
    promises: str
    """What its docs say of a resume."""
    policy: Policy = nothing
    histories: int = 2_000
    """How many it is dealt without worker processes; slow ones get a shorter prefix."""
    with_workers: int = 100
    """How many it is dealt with worker processes."""
    forked: bool = False
    """Whether each rank needs a process of its own."""
    cure: str = field(default="pip install -e . --group together", kw_only=True)

    def most(self, given: Given) -> int:
        """Return how many histories it is given."""
        return self.with_workers if given.workers else self.histories

    def live(self, story: Story, given: Given) -> None:
        """Stop and resume it; what ours lose is wrong."""
        dealt = history(story.number, with_workers=given.workers > 0)
        story.say(str(dealt))
        make, root = opened(self, given.stack)
        folder = root / str(dealt.n)
        if not folder.exists():
            folder.mkdir()
            getattr(make, "write", lambda *_: None)(str(folder), dealt.n)
        rans = play(make, dealt, str(folder), forked=self.forked)
        sums = counted(dealt, rans, self.policy)
        story.record = {"with_workers" if given.workers else "plain": {dealt.kind: sums}}
        if self.ours and (sums["lost"] or sums["twice"]):
            story.fail(*sums["examples"])

    def wrong(self, record: Record) -> list[str]:
        """Return the kinds of histories that were refused before they could say anything."""
        return [
            f"{kind}: no history went through its first pass"
            for kinds in record.values()
            for kind, sums in kinds.items()
            if sums["histories"] and not sums["samples"]
        ]


@cache
def opened(entry: Entry, stack: ExitStack) -> tuple[Make, Path]:
    """Return what makes a loader, and a folder for datasets, which all histories share."""
    import torch

    torch.set_num_threads(1)
    return entry.load(), Path(stack.enter_context(TemporaryDirectory()))


def page() -> Any:
    """Return what writes the page of results."""
    from tests.runs import page

    return page


RIVALS = LOADERS = (
    Entry(
        "indexplan PlanLoader",
        "plan_loader",
        "indexplan",
        "resume.md",
        "`PlanLoader(dataset, plan)` of an open world size; rank 0's `state_dict` for all.",
        "any world size, batch size and number of workers",
        histories=9_800,
        with_workers=200,
        ours=True,
    ),
    Entry(
        "indexplan PlanBatchSampler in StatefulDataLoader",
        "plan_batch_sampler",
        "indexplan",
        "trainers.md",
        "`StatefulDataLoader(batch_sampler=PlanBatchSampler(plan))`; the loader's state of rank 0 "
        "for all ranks.",
        "any world size and batch size",
        histories=9_800,
        with_workers=200,
        ours=True,
    ),
    Entry(
        "torch DistributedSampler and skipping",
        "torch_skip",
        "torch",
        "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",
        "`set_epoch`, then whole batches are skipped by the position in samples: the best that "
        "users can do, as each step reads the next stretch of one order.",
        "none; skipping is the user's",
        pads_ranks,
    ),
    Entry(
        "torchdata StatefulDataLoader",
        "torchdata_loader",
        "torchdata",
        "https://github.com/meta-pytorch/data/blob/v0.11.0/torchdata/stateful_dataloader/README.md",
        "Over its StatefulDistributedSampler; each rank loads the state that it saved, new ranks "
        "load rank 0's.",
        "the same ranks: state is handled across workers, not across ranks",
        pads_ranks,
    ),
    Entry(
        "Accelerate skip_first_batches",
        "accelerate_skip",
        "accelerate",
        "https://huggingface.co/docs/accelerate/usage_guides/checkpoint",
        "`prepare_data_loader` with the seedable sampler, `set_epoch`, `skip_first_batches` with "
        "the batches that the loop has received in the pass.",
        "the same dataset, batch size and distributed configuration",
        pads_batches,
    ),
    Entry(
        "Grain DataLoader",
        "grain_loader",
        "grain",
        "https://google-grain.readthedocs.io/en/latest/tutorials/data_loader_tutorial.html",
        "Over its IndexSampler, one for each epoch, `drop_remainder=False`; each rank sets the "
        "state that it got, new ranks rank 0's.",
        "the same ranks and workers, which it checks",
        drops_ranks,
        histories=600,
        with_workers=12,
    ),
    Entry(
        "Grain ElasticIterator",
        "grain_elastic",
        "grain",
        "https://google-grain.readthedocs.io/en/latest/grain.experimental.html",
        "One iterator for each epoch over `MapDataset.range(n).shuffle(seed)`, the global batch is "
        "world size x batch size; the state of rank 0 for all ranks.",
        "any world size and global batch that it divides; drops what does not fill a global batch",
        drops_batches,
        histories=1_000,
        with_workers=12,
    ),
    Entry(
        "MosaicML Streaming",
        "streaming",
        "mosaicml-streaming",
        "https://docs.mosaicml.com/projects/streaming/en/stable/distributed_training/elastic_determinism.html",
        "`StreamingDataset(shuffle=True, num_canonical_nodes=1)` in a `StreamingDataLoader`, one "
        "node; the state of rank 0 for all ranks.",
        "any world size that divides a global batch that stays",
        pads_each_leg,
        histories=150,
        with_workers=24,
        forked=True,
        cure="pip install --no-deps mosaicml-streaming==0.13.0 and what it imports (.ci/run)",
    ),
    Entry(
        "LitData",
        "litdata",
        "litdata",
        "https://github.com/Lightning-AI/litData/blob/main/README.md",
        "`StreamingDataset(shuffle=True, drop_last=True)` in a `StreamingDataLoader`; the state of "
        "rank 0 for all ranks.",
        "any world size, batch size and number of workers; its code calls it elastic",
        drops_worker_batches,
        histories=150,
        with_workers=24,
        forked=True,
        cure="pip install --no-deps litdata==0.2.76",
    ),
)

# --- ours


def plan_loader() -> Make:
    """PlanLoader, as docs/resume.md and docs/trainers.md say."""
    import indexplan as ip
    from indexplan_torch import PlanLoader

    def make(place: Place, saved: Saved | None) -> Loader:
        plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
        here: dict[str, Any] = {"rank": place.rank, "world_size": place.world}
        loader = PlanLoader(range(place.n), plan, num_workers=place.workers, **here)
        return Stateful(loader, saved, begin=loader.set_epoch)

    return make


def plan_batch_sampler() -> Make:
    """PlanBatchSampler in torchdata's StatefulDataLoader, as docs/trainers.md says."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    import indexplan as ip
    from indexplan_torch import PlanBatchSampler

    class OfASampler(Stateful):
        def __init__(self, place: Place, saved: Saved | None) -> None:
            plan = ip.Plan(ip.Shuffle(place.n, seed=place.seed), batch_size=place.batch)
            sampler = PlanBatchSampler(plan, rank=place.rank, world_size=place.world)
            self.left = saved is not None  # a state, whose pass comes first
            dataset: Any = range(place.n)
            loader = StatefulDataLoader(dataset, batch_sampler=sampler, num_workers=place.workers)
            super().__init__(loader, saved)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Read what is left of the state's pass, and then epochs that are set."""
            left, self.left = self.left, False
            if left:
                rest = super().batches(epoch)
                first = next(rest, None)
                if first is not None:
                    yield first
                    yield from rest
                    return
            self.loader.batch_sampler.set_epoch(epoch)
            yield from super().batches(epoch)

    return OfASampler


# --- others


def torch_skip() -> Make:
    """Torch's DistributedSampler: the order is made again, and what was read is skipped.

    Its page says to call `set_epoch`, and that samples are added until the ranks divide them; of
    resuming it says nothing. A batch of all ranks is a stretch of one order, so what was read is a
    prefix of it.
    """
    from torch.utils.data import BatchSampler, DataLoader
    from torch.utils.data.distributed import DistributedSampler

    class Skipping:
        def __init__(self, place: Place, saved: Saved | None) -> None:
            self.place = place
            here: dict[str, Any] = {"num_replicas": place.world, "rank": place.rank}
            sized: Any = Sized(place.n)
            self.sampler: Any = DistributedSampler(sized, **here, seed=place.seed)
            self.read = 0  # samples of the pass, on all ranks
            self.resumed, self.skip = -1, 0
            if saved and not saved.after_pass:
                self.resumed = saved.epoch
                self.skip = saved.state(0) // (place.world * place.batch)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Skip in the sampler, so that nothing is loaded to be thrown away."""
            self.sampler.set_epoch(epoch)
            batches: Any = BatchSampler(self.sampler, self.place.batch, drop_last=False)
            skip = self.skip if epoch == self.resumed else 0
            step = self.place.world * self.place.batch
            self.read = skip * step
            dataset: Any = range(self.place.n)
            rest: Any = list(islice(batches, skip, None))
            for batch in DataLoader(dataset, batch_sampler=rest, num_workers=self.place.workers):
                self.read += step
                yield batch

        def state(self) -> int:
            """Return how many samples the pass has read."""
            return self.read

    return Skipping


def torchdata_loader() -> Make:
    """Torchdata's StatefulDataLoader over its StatefulDistributedSampler.

    The state is handled across workers, but not across ranks; so each saves and loads its own.
    """
    from torchdata.stateful_dataloader import StatefulDataLoader
    from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

    def make(place: Place, saved: Saved | None) -> Loader:
        here: dict[str, Any] = {"num_replicas": place.world, "rank": place.rank, "seed": place.seed}
        sized: Any = Sized(place.n)
        sampler: Any = StatefulDistributedSampler(sized, **here)
        dataset: Any = range(place.n)
        loader = StatefulDataLoader(
            dataset, place.batch, sampler=sampler, num_workers=place.workers
        )
        return Stateful(loader, saved, place.rank, begin=sampler.set_epoch)

    return make


def accelerate_skip() -> Make:
    """Accelerate: a prepared loader, and `skip_first_batches` after a resume.

    As its page says: skip the batches of the pass that were done, and go back to the prepared
    loader for the next one. `save_state` keeps the sampler's epoch and seed, which are given here.
    """
    from accelerate import PartialState
    from accelerate.data_loader import prepare_data_loader, skip_first_batches
    from torch.utils.data import DataLoader

    PartialState(cpu=True)

    class Skipping:
        def __init__(self, place: Place, saved: Saved | None) -> None:
            self.saved = saved
            dataset: Any = range(place.n)
            self.loader: Any = prepare_data_loader(
                DataLoader(dataset, place.batch, shuffle=True, num_workers=place.workers),
                num_processes=place.world,
                process_index=place.rank,
                put_on_device=False,
                use_seedable_sampler=True,
                data_seed=place.seed,
            )

        def batches(self, epoch: int) -> Iterator[Any]:
            """Set the epoch, skip what is done of it, and iterate."""
            self.loader.set_epoch(epoch)
            if self.saved and epoch == self.saved.epoch and self.saved.batches:
                yield from skip_first_batches(self.loader, self.saved.batches)
            else:
                yield from self.loader

        def state(self) -> None:
            """Need nothing but what the loop counts."""

    return Skipping


def grain_loader(*, elastic: bool = False) -> Make:
    """Grain's DataLoader over an IndexSampler, with checkpoints of its iterator.

    Elastic is its ElasticIterator, whose state is a global position: it takes a dataset that is
    neither batched nor sharded, and the state of any shard restores all of them after changes of
    the shards and of the global batch size, which the shards have to divide.
    """
    from grain.experimental import ElasticIterator
    from grain.multiprocessing import MultiprocessingOptions
    from grain.python import DataLoader, MapDataset, RangeDataSource, ReadOptions
    from grain.samplers import IndexSampler
    from grain.sharding import ShardOptions
    from grain.transforms import Batch

    # nothing is read from anywhere, so nothing needs to be read ahead
    ahead = ReadOptions(num_threads=0, prefetch_buffer_size=0)

    class OfIterators:
        def __init__(self, place: Place, saved: Saved | None) -> None:
            self.place, self.saved = place, saved
            self.iterator: Any = None
            if saved and not saved.after_pass:
                self.iterator = self.fresh(saved.epoch)
                self.iterator.set_state(saved.state(0 if elastic else place.rank))

        def fresh(self, epoch: int) -> Any:
            """Return an iterator of an epoch's start."""
            place = self.place
            seed = place.seed + epoch
            if elastic:
                workers = (
                    MultiprocessingOptions(num_workers=place.workers) if place.workers else None
                )
                return ElasticIterator(
                    MapDataset.range(place.n).shuffle(seed=seed),
                    place.world * place.batch,
                    ShardOptions(place.rank, place.world),
                    read_options=ahead,
                    multiprocessing_options=workers,
                )
            shard = ShardOptions(place.rank, place.world, drop_remainder=False)
            return iter(
                DataLoader(
                    data_source=RangeDataSource(0, place.n, 1),
                    sampler=IndexSampler(place.n, shard, shuffle=True, num_epochs=1, seed=seed),
                    shard_options=shard,
                    operations=[Batch(place.batch, drop_remainder=False)],
                    worker_count=place.workers,
                    read_options=ahead,
                )
            )

        def batches(self, epoch: int) -> Iterator[Any]:
            """Go on with the iterator that was restored, or begin one."""
            if not (self.saved and epoch == self.saved.epoch and not self.saved.after_pass):
                self.iterator = self.fresh(epoch)
            yield from (np.asarray(batch) for batch in self.iterator)

        def state(self) -> Any:
            """Return the iterator's own."""
            return self.iterator.get_state()

    return OfIterators


def grain_elastic() -> Make:
    """Grain's ElasticIterator."""
    return grain_loader(elastic=True)


def streaming() -> Make:
    """MosaicML Streaming: MDS shards, a StreamingDataset, and a StreamingDataLoader's state.

    As its page and fast_resumption.html beside it say: batch_size given to both, the same
    num_canonical_nodes, a global batch that stays and that the ranks divide.
    """
    from tests.runs.frameworks import mosaicml_streaming as mds

    class OfShards(Stateful):
        write = staticmethod(mds.write)

        def __init__(self, place: Place, saved: Saved | None) -> None:
            mds.clean_stale_shared_memory()  # of a leg that was ended, as its errors say to
            dataset = mds.StreamingDataset(
                local=place.folder,
                batch_size=place.batch,
                shuffle=True,
                shuffle_seed=place.seed,
                num_canonical_nodes=1,
            )
            options = {"batch_size": place.batch, "num_workers": place.workers}
            super().__init__(mds.StreamingDataLoader(dataset, **options), saved)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Iterate."""
            yield from (batch["n"].tolist() for batch in super().batches(epoch))

    return OfShards


def litdata() -> Make:
    """LitData: chunks written by `optimize`, a StreamingDataset, a StreamingDataLoader's state.

    `drop_last` is True, as it is by default on more than one rank: it keeps the ranks in step,
    where some have batches to spare without it, and states check it.
    """
    from tests.runs.frameworks import litdata_streaming as lit

    class OfChunks(Stateful):
        write = staticmethod(lit.write)

        def __init__(self, place: Place, saved: Saved | None) -> None:
            dataset = lit.StreamingDataset(
                place.folder, shuffle=True, drop_last=True, seed=place.seed
            )
            options = {"batch_size": place.batch, "num_workers": place.workers}
            super().__init__(lit.StreamingDataLoader(dataset, **options), saved)

        def batches(self, epoch: int) -> Iterator[Any]:
            """Iterate."""
            for batch in super().batches(epoch):
                if self.epoch >= EPOCHS:
                    return
                yield batch.tolist()

        @property
        def epoch(self) -> int:
            """Return which pass it is in: after a state of a pass's last batch, it's the next."""
            return int(self.loader.current_epoch) - 1

    return OfChunks
