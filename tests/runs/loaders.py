"""The one table of loaders that claim to resume, ours among them.

A loader is a function of a file of `frameworks` that returns what makes a `Loader` of a place and a
checkpoint (see running.py); if the data has to be in a format of its own, the file also has
`write(folder, n)`. Each cites the page that says how to set it up.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.histories.stories import Given, Record, Story
from tests.runs.histories import Leg, history
from tests.runs.rivals import Rival
from tests.runs.running import Make, Policy, counted, play


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

    @property
    def code(self) -> tuple[Any, str]:
        """Return the file that has it, and the function."""
        file, _, function = self.module.partition(".")
        return importlib.import_module(f"tests.runs.frameworks.{file}"), function

    def load(self) -> Make:
        """Return what makes it."""
        make: Make = getattr(*self.code)()
        return make

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
            getattr(self.code[0], "write", lambda *_: None)(folder, dealt.n)
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


RIVALS = LOADERS = (
    Entry(
        "indexplan PlanLoader",
        "plain_ddp.drawn_by_plan",
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
        "torchdata_loader.drawn_by_plan",
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
        "plain_ddp.drawn",
        "torch",
        "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",
        "`set_epoch`, then whole batches are skipped by the position in samples: the best that "
        "users can do, as each step reads the next stretch of one order.",
        "none; skipping is the user's",
        pads_ranks,
    ),
    Entry(
        "torchdata StatefulDataLoader",
        "torchdata_loader.drawn",
        "torchdata",
        "https://github.com/meta-pytorch/data/blob/v0.11.0/torchdata/stateful_dataloader/README.md",
        "Over its StatefulDistributedSampler; each rank loads the state that it saved, new ranks "
        "load rank 0's.",
        "the same ranks: state is handled across workers, not across ranks",
        pads_ranks,
    ),
    Entry(
        "Accelerate skip_first_batches",
        "accelerate_loop.drawn",
        "accelerate",
        "https://huggingface.co/docs/accelerate/usage_guides/checkpoint",
        "`prepare_data_loader` with the seedable sampler, `set_epoch`, `skip_first_batches` with "
        "the batches that the loop has received in the pass.",
        "the same dataset, batch size and distributed configuration",
        pads_batches,
    ),
    Entry(
        "Grain DataLoader",
        "grain.drawn",
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
        "grain.drawn_elastic",
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
        "mosaicml_streaming.drawn",
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
        "litdata_streaming.drawn",
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
