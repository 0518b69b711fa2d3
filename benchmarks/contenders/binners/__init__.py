"""Code that makes bins of samples by their lengths, or deals bins evenly: ours and rivals'.

A binner is a module of this folder with a class `Binner(case, lengths, **options)`, which builds
what all epochs share, and

- `epoch(number)`: the samples of all bins of an epoch, in the order in which they are dealt, and
  where each bin starts among them, and the end;
- for balance, instead: `share(step, rank)`, the samples that a rank gets in a step;
- for windows, instead: `window(number, place)`, the document, start and stop of each piece of a
  window of an epoch, and `num_windows()`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.contenders import Contender
from benchmarks.measure import lengths, real_lengths

Int64 = NDArray[np.int64]

NEEDS = {
    "packing": "Bins that lengths fill",
    "batches": "Batches of 32 of similar length",
    "budget": "Batches of similar length under a budget of tokens",
    "balance": "A step divided so that its ranks have equal work",
    "windows": "Windows of shuffled documents",
}
"""What binners are asked for: how the page calls it."""
DRAWN = {"chats": lengths.chats, "documents": lengths.documents, "speech": lengths.speech}
BATCH, MULTIPLE = 32, 8
FLAT = 24576
"""What a token costs beside its square, by VERL's formula for a model of 7e9 weights."""


class Case(NamedTuple):
    """What is asked for, of which lengths, how many."""

    need: str
    kind: str
    n: int = 0
    """Samples of drawn lengths; of real ones there are as many as there are."""
    limit: int = 0
    """What a bin holds at most: tokens, or padded tokens."""
    ranks: int = 0
    per_rank: int = 32


@dataclass(frozen=True)
class Entry(Contender):
    """One way to make bins; everything about it but its code."""

    needs: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    most: int = 10**6
    """Samples that it is given at most: for more it takes too long."""
    beside: str = "indexplan"
    """Which of ours is held against it."""


BINNERS = (
    Entry(
        "indexplan",
        "ours",
        "indexplan",
        ("packing", "batches", "budget"),
        note="`Packed`, `LengthGrouped` and `TokenBudget`, the latter with 64 buckets each.",
        ours=True,
    ),
    Entry(
        "indexplan, 32 buckets",
        "ours",
        "indexplan",
        ("batches",),
        note="The same with 32 buckets: half as many pairs meet again, at twice the padding.",
        options={"num_buckets": 32},
        ours=True,
    ),
    Entry(
        "indexplan, shuffled",
        "shuffled",
        "indexplan",
        ("batches",),
        note="`Shuffle`, cut into batches: what there is without looking at lengths.",
        ours=True,
    ),
    Entry(
        "indexplan, balance",
        "balanced",
        "indexplan",
        ("balance",),
        note="`Balance` in a plan, asked for the batch of one rank.",
        ours=True,
    ),
    Entry(
        "indexplan, windows",
        "document_windows",
        "indexplan",
        ("windows",),
        note="`DocumentWindows`, asked for one window at a time.",
        ours=True,
    ),
    Entry(
        "axolotl multipack",
        "multipack",
        "axolotl",
        ("packing",),
        note="`MultipackBatchSampler` with its defaults on a shuffle of each epoch; making it "
        "includes its `len()`, which packs four times over, as every trainer asks for it. "
        "Imported without the rest of axolotl.",
        cure="pip install --no-deps axolotl==0.19.0",
    ),
    Entry(
        "TRL bfd",
        "trl_bfd",
        "trl",
        ("packing",),
        note="What `pack_dataset` does to each 1,000 rows, as it comes: the packing, which moves "
        "the tokens themselves. Bins are shuffled in each epoch.",
        options={"rows": 1000},
        most=10**5,
        cure="pip install --no-deps trl==1.16.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19",
    ),
    Entry(
        "TRL bfd, all rows at once",
        "trl_bfd",
        "trl",
        ("packing",),
        note="The same with `map_kwargs={'batch_size': None}`.",
        most=10**5,
        cure="pip install --no-deps trl==1.16.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19",
    ),
    Entry(
        "OLMo-core packer",
        "olmo_packer",
        "ai2-olmo-core",
        ("packing",),
        note="Its `InstancePacker`, on what it is given from a file. Bins are shuffled in each "
        "epoch. Imported without its `io`, which needs the clients of several clouds.",
        most=10**5,
        cure="pip install --no-deps ai2-olmo-core==3.0.0",
    ),
    Entry(
        "Grain first fit",
        "grain_packing",
        "grain",
        ("packing",),
        note="`FirstFitPackIterDataset` with 64 bins open, over a shuffle of each epoch; it "
        "copies the tokens.",
        options={"num_packing_bins": 64},
        most=10**5,
    ),
    Entry(
        "transformers LengthGroupedSampler",
        "length_grouped",
        "transformers",
        ("batches",),
        note="A sort inside random mega-batches of 50 batches.",
        beside="indexplan, 32 buckets",
        cure="pip install -e . --group test",
    ),
    Entry(
        "fairseq batch_by_size",
        "by_size",
        "fairseq",
        ("budget",),
        note=f"Its own Cython on samples sorted by length, with `required_batch_size_multiple="
        f"{MULTIPLE}`. Bins are shuffled in each epoch.",
        cure="pip install --no-deps fairseq==0.12.2",
    ),
    Entry(
        "Lhotse DynamicBucketingSampler",
        "dynamic_buckets",
        "lhotse",
        ("budget",),
        note="64 buckets, shuffled, over cuts that say how long they are and nothing else; all its "
        "other options as they come.",
        most=10**5,
        cure="pip install --no-deps lhotse==1.33.0 soundfile==0.14.0 intervaltree==3.2.1 "
        "sortedcontainers==2.4.0 tabulate==0.10.0 lilcom==1.8.2 cytoolz==1.2.0 toolz==1.2.0",
    ),
    Entry(
        "VERL Karmarkar-Karp",
        "karmarkar_karp",
        "verl",
        ("balance",),
        note="`get_seqlen_balanced_partitions` with `equal_size=True`. Imported without its "
        "protocol, which needs tensordict.",
        beside="indexplan, balance",
        cure="pip install --no-deps verl==0.9.1",
    ),
    Entry(
        "Megatron indices",
        "megatron_index",
        "megatron-core",
        ("windows",),
        note="Its own C++, `build_sample_idx`, from its wheel; documents and windows are shuffled "
        "by NumPy, as in its GPTDataset.",
        beside="indexplan, windows",
        cure="pip install --no-deps megatron-core==0.16.1",
    ),
)
NAMES = {binner.name: binner for binner in BINNERS}


def given(case: Case, most: int = 10**6) -> Int64:
    """Return the lengths that all binners are given, `most` of them at most, cut to the limit."""
    rng = np.random.default_rng(0)
    if case.kind in DRAWN:
        found = DRAWN[case.kind](rng, min(case.n, most))
    else:
        found = rng.permutation(real_lengths.load(case.kind))[:most]
    if case.ranks:  # whole steps
        found = found[len(found) % (case.ranks * case.per_rank) :]
    return np.minimum(found, case.limit) if case.need == "packing" else found


def joined(bins: list[Any], seed: int | None = None) -> tuple[Int64, Int64]:
    """Return what `epoch` does, of a list of bins; shuffled with a seed if there is one."""
    if seed is not None:
        bins = [bins[i] for i in np.random.default_rng(seed).permutation(len(bins))]
    offsets = np.cumsum([0, *map(len, bins)], dtype=np.int64)
    return np.concatenate([np.asarray(each, np.int64) for each in bins]), offsets
