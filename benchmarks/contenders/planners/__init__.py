"""The one table of rivals, ours among them, that feeds every comparison.

A rival is a module of this folder, which imports what it needs, with some of these functions:

- `stream(job)`: an iterator over a rank's batches, each ready to index a dataset.
- `share(job)`: all indices that a rank reads in an epoch, or the first `job.limit` of them.
- `resume(job, state)`: the rest of `stream` from a step on, the way the rival's own users resume.
  `state` is the number of the step, or what `saved(job, step)` returns: the checkpoint.
- `order(n, seed)`: the whole epoch, int64, for a rival with a shuffle of its own.
- `sub_epochs(job)`: a function from a sub-epoch to its batches.
- `batch_sampler(job)`, `loader(dataset, job, num_workers)`: for a rival that is a torch sampler.
- `build(job)`: write the file that others read; returns its bytes.
- `prepare(job)`: make the file that a run finds there already, before `share` and `resume`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.contenders import Contender

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
    num_sub_epochs: int = 40
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


@dataclass(frozen=True)
class Rival(Contender):
    """One way to plan an epoch; everything about it but its code."""

    colour: str
    marker: str
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
# line style and marker.
RIVALS = (
    Rival(
        "indexplan", "ours", "indexplan", "#000000", "o", ours=True, order_name="indexplan.Shuffle"
    ),
    Rival(
        "indexplan, saved plan",
        "ours_saved",
        "indexplan",
        "#000000",
        "s",
        "--",
        ours=True,
        bytes_per_index=4,
        note="`indexplan.save`, then `indexplan.load`: chunks mapped into memory.",
    ),
    Rival(
        "torch DistributedSampler",
        "distributed_sampler",
        "torch",
        "#D55E00",
        "^",
        order_name="torch.randperm",
        note="In a BatchSampler. A resume skips batches, as Accelerate's skip_first_batches does.",
    ),
    Rival(
        "torchdata StatefulDistributedSampler",
        "stateful_sampler",
        "torchdata",
        "#E69F00",
        "v",
        "--",
        note="In a BatchSampler; resumes through its `state_dict`. Its order is torch.randperm.",
    ),
    Rival(
        "NumPy permutation + slice",
        "numpy_slice",
        "numpy",
        "#0072B2",
        "D",
        order_name="numpy Generator.permutation",
        note="`default_rng(seed).permutation(n)[rank::world_size]`, cut into batches.",
    ),
    Rival(
        "Grain index_shuffle",
        "grain_shuffle",
        "grain",
        "#009E73",
        "P",
        by_index=True,
        order_name="grain index_shuffle",
        largest_order=10**5,
        note="`grain.experimental.index_shuffle` on `range(rank, n, world_size)`, 4 rounds.",
    ),
    Rival(
        "Grain IndexSampler",
        "grain_sampler",
        "grain",
        "#009E73",
        "X",
        ":",
        by_index=True,
        note="Shuffles inside each rank's contiguous shard, by index_shuffle; makes a random "
        "generator for each record.",
    ),
    Rival(
        "MosaicML Streaming planning",
        "streaming",
        "mosaicml-streaming",
        "#CC79A7",
        "*",
        order_name="Streaming py1e",
        largest_order=10**6,
        cure="pip install --no-deps mosaicml-streaming==0.13.0",
        note="`get_partitions` and `get_shuffle` with their defaults, on nothing but sizes: shards "
        "of 4,096, nodes of 8 ranks. One process per node does it while the others wait, so its "
        "memory is per node. Installed without its dependencies, which allow no NumPy past 2.2 "
        "and bring the clients of every cloud; what is called needs NumPy alone.",
    ),
    Rival(
        "Megatron-style cached .npy",
        "megatron_style",
        "numpy",
        "#56B4E9",
        "h",
        bytes_per_index=4,
        note="Written here in the manner of Megatron-LM: RandomState shuffle of uint32, np.save, "
        "np.load mapped; contiguous batches of ranks, a last step that is not full is dropped.",
    ),
    Rival(
        "EfficientViT-style sub-epochs",
        "efficientvit_style",
        "torch",
        "#D55E00",
        "p",
        "--",
        note="Written here in the manner of EfficientViT's SAM sampler: DistributedSampler's whole "
        "permutation in each sub-epoch, then a slice of it.",
    ),
)

NAMES = {rival.name: rival for rival in RIVALS}
OURS = RIVALS[0].name


def present() -> list[Rival]:
    """Return the rivals that can be imported; the report lists the others."""
    return [rival for rival in RIVALS if not rival.standing()["missing"]]
