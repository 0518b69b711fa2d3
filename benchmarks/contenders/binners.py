"""Code that makes bins of samples by their lengths, or deals bins evenly: ours and rivals'.

A binner is a function of this file, which imports what it needs and returns a class. An object of
that, `Binner(case, lengths, **options)`, builds what all epochs share, and has

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

from benchmarks.contenders import Contender, leave_out, name_packages
from benchmarks.measure.lengths import DRAWN, Int64, real

NEEDS = {
    "packing": "Bins that lengths fill",
    "batches": "Batches of 32 of similar length",
    "budget": "Batches of similar length under a budget of tokens",
    "balance": "A step divided so that its ranks have equal work",
    "windows": "Windows of shuffled documents",
}
"""What binners are asked for: how the page calls it."""
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


def given(case: Case, most: int = 10**6) -> Int64:
    """Return the lengths that all binners are given, `most` of them at most, cut to the limit."""
    rng = np.random.default_rng(0)
    if case.kind in DRAWN:
        found = DRAWN[case.kind](rng, min(case.n, most))
    else:
        found = rng.permutation(real(case.kind))[:most]
    if case.ranks:  # whole steps
        found = found[len(found) % (case.ranks * case.per_rank) :]
    return np.minimum(found, case.limit) if case.need == "packing" else found


def joined(bins: list[Any], seed: int | None = None) -> tuple[Int64, Int64]:
    """Return what `epoch` does, of a list of bins; shuffled with a seed if there is one."""
    if seed is not None:
        bins = [bins[i] for i in np.random.default_rng(seed).permutation(len(bins))]
    offsets = np.cumsum([0, *map(len, bins)], dtype=np.int64)
    return np.concatenate([np.asarray(each, np.int64) for each in bins]), offsets


def ours() -> Any:
    """`Packed`, `LengthGrouped` and `TokenBudget`, the latter with 64 buckets each."""
    import indexplan as ip

    def order_of(case: Case, lengths: Int64, num_buckets: int = 64) -> ip.Order:
        if case.need == "packing":
            return ip.Packed(lengths, case.limit)
        if case.need == "batches":
            return ip.LengthGrouped(lengths, BATCH, num_buckets=num_buckets)
        return ip.TokenBudget(lengths, case.limit, multiple_of=MULTIPLE, num_buckets=num_buckets)

    class Binner:
        def __init__(self, case: Case, lengths: Int64, **options: int) -> None:
            self.order = order_of(case, lengths, **options)
            self.num = self.order.num_units(0)

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            samples = self.order.take(number, 0, self.num)
            return samples, self.order.offsets(number, 0, self.num)

    return Binner


def shuffled() -> Any:
    """`Shuffle`, cut into batches: what there is without looking at lengths."""
    import indexplan as ip

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.order = ip.Shuffle(len(lengths))

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            n = self.order.num_units(number)
            return self.order.take(number, 0, n), np.append(np.arange(0, n, BATCH), n)

    return Binner


def balanced() -> Any:
    """`Balance` in a plan, asked for the batch of one rank."""
    import indexplan as ip

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.plan = ip.Plan(
                ip.Sequential(len(lengths)),
                world_size=case.ranks,
                batch_size=case.per_rank,
                balance=ip.Balance(lengths, linear=FLAT, quadratic=1),
            )

        def share(self, step: int, rank: int) -> Int64:
            return self.plan.batch(0, step=step, rank=rank)

    return Binner


def document_windows() -> Any:
    """`DocumentWindows`, asked for one window at a time."""
    import indexplan as ip

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.order = ip.DocumentWindows(lengths, case.limit)

        def window(self, number: int, place: int) -> Int64:
            documents = self.order.take(number, place)
            return np.column_stack([documents, self.order.spans(number, place)])

        def num_windows(self) -> int:
            return self.order.num_units(0)

    return Binner


def multipack() -> Any:
    """`MultipackBatchSampler` with its defaults on a shuffle of each epoch; making it includes
    its `len()`, which packs four times over, as every trainer asks for it. Imported without the
    rest of axolotl.
    """
    name_packages("axolotl", "axolotl.utils", "axolotl.utils.samplers")
    from axolotl.utils.samplers.multipack import MultipackBatchSampler

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.row = np.arange(len(lengths))
            self.sampler = MultipackBatchSampler(
                self, 1, case.limit, lengths, bin_size=case.limit, drop_last=False
            )
            self.epoch_number = 0
            len(self.sampler)

        def __iter__(self) -> Any:
            return iter(np.random.default_rng(self.epoch_number).permutation(self.row).tolist())

        def __len__(self) -> int:
            return len(self.row)

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            self.epoch_number = number
            self.sampler.set_epoch(number)
            # its iterator would end at the least of the four
            return joined([each for batch in self.sampler.generate_batches() for each in batch])

    return Binner


def trl_bfd() -> Any:
    """What `pack_dataset` does to each 1,000 rows, as it comes: the packing, which moves the
    tokens themselves. Bins are shuffled in each epoch.
    """
    import pyarrow as pa

    name_packages("trl")
    from trl.data_utils import _pack_bfd

    class Binner:
        def __init__(self, case: Case, lengths: Int64, rows: int = 2**62) -> None:
            self.bins: list[Int64] = []
            for start in range(0, len(lengths), rows):
                sizes = lengths[start : start + rows]
                ends = np.append(0, np.cumsum(sizes)).astype(np.int32)
                numbers = np.arange(start, start + len(sizes), dtype=np.int32)
                tokens = pa.ListArray.from_arrays(ends, np.repeat(numbers, sizes))
                packed = _pack_bfd(pa.table({"input_ids": tokens}), case.limit)
                row = packed["input_ids"].combine_chunks().flatten().to_numpy()
                parts = packed["seq_lengths"].combine_chunks()
                samples = row[np.cumsum(parts.flatten().to_numpy()) - 1]
                self.bins += np.split(samples, np.cumsum(parts.value_lengths().to_numpy())[:-1])

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            return joined(self.bins, number)

    return Binner


def olmo_packer() -> Any:
    """Its `InstancePacker`, on what it is given from a file.

    Bins are shuffled in each epoch. Imported without its `io`, which needs the clients of
    several clouds.
    """
    name_packages("olmo_core", "olmo_core.data")
    leave_out("olmo_core.io", "olmo_core.utils", "olmo_core.config")
    from olmo_core.data.utils import InstancePacker

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            ends = np.cumsum(lengths)
            documents = np.stack([ends - lengths, ends], axis=1)
            bins, found, _ = InstancePacker(case.limit).pack_documents(documents)
            numbers = np.searchsorted(ends, found[:, 1])
            self.bins = [numbers[each] for each in bins]

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            return joined(self.bins, number)

    return Binner


def grain_packing() -> Any:
    """`FirstFitPackIterDataset` with 64 bins open, over a shuffle of each epoch; it copies the
    tokens.
    """
    import grain
    from grain.experimental import FirstFitPackIterDataset

    class Binner:
        def __init__(self, case: Case, lengths: Int64, num_packing_bins: int) -> None:
            self.case, self.lengths, self.open = case, lengths, num_packing_bins

        def tokens(self, sample: int) -> dict[str, Int64]:
            return {"tokens": np.full(self.lengths[sample], sample)}

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            samples = grain.MapDataset.range(len(self.lengths)).shuffle(seed=number)
            read = grain.ReadOptions(num_threads=0)
            rows = FirstFitPackIterDataset(
                samples.map(self.tokens).to_iter_dataset(read),
                length_struct={"tokens": self.case.limit},
                num_packing_bins=self.open,
                seed=number,
            )
            bins = []
            for row in rows:
                cuts = np.flatnonzero(np.diff(row["tokens_segment_ids"], append=0))
                tokens = row["tokens"][cuts]
                bins.append(tokens[row["tokens_segment_ids"][cuts] > 0])
            return joined(bins)

    return Binner


def length_grouped() -> Any:
    """A sort inside random mega-batches of 50 batches."""
    import torch
    from transformers.trainer_pt_utils import LengthGroupedSampler

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.generator = torch.Generator()
            self.sampler = LengthGroupedSampler(
                BATCH, lengths=lengths.tolist(), generator=self.generator
            )

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            self.generator.manual_seed(number)
            samples = np.array(list(self.sampler), np.int64)
            return samples, np.append(np.arange(0, len(samples), BATCH), len(samples))

    return Binner


def by_size() -> Any:
    """Its own Cython on samples sorted by length, with `required_batch_size_multiple=8`.

    Bins are shuffled in each epoch.
    """
    name_packages("fairseq", "fairseq.data")
    from fairseq.data.data_utils_fast import batch_by_size_vec

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            rows = np.random.default_rng(0).permutation(len(lengths))
            rows = rows[np.argsort(lengths[rows], kind="stable")]  # as its datasets of pairs do
            self.bins = batch_by_size_vec(rows, lengths[rows], case.limit, -1, MULTIPLE)

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            return joined(self.bins, number)

    return Binner


def dynamic_buckets() -> Any:
    """64 buckets, shuffled, over cuts that say how long they are and nothing else; all its
    other options as they come.
    """
    from lhotse import MonoCut
    from lhotse.dataset.sampling import DynamicBucketingSampler

    frames = 100  # of a second

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            cuts = [
                MonoCut(id=str(i), start=0, duration=length / frames, channel=0)
                for i, length in enumerate(lengths.tolist())
            ]
            options = {"num_buckets": 64, "shuffle": True, "rank": 0, "world_size": 1}
            longest = case.limit / frames
            self.sampler = DynamicBucketingSampler(cuts, max_duration=longest, **options)

        def epoch(self, number: int) -> tuple[Int64, Int64]:
            self.sampler.set_epoch(number)
            return joined([[int(cut.id) for cut in cuts] for cuts in self.sampler])

    return Binner


def karmarkar_karp() -> Any:
    """`get_seqlen_balanced_partitions` with `equal_size=True`.

    Imported without its protocol, which needs tensordict.
    """
    name_packages("verl", "verl.utils")
    leave_out("verl.protocol", "verl.utils.tensordict_utils", "verl.utils.device")
    from verl.utils.seqlen_balancing import get_seqlen_balanced_partitions

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.case, self.costs = case, FLAT * lengths + lengths**2

        def share(self, step: int, rank: int) -> Int64:
            units = self.case.ranks * self.case.per_rank
            costs = self.costs[step * units : (step + 1) * units].tolist()
            found = get_seqlen_balanced_partitions(costs, self.case.ranks, equal_size=True)
            return step * units + np.array(found[rank])

    return Binner


def megatron_index() -> Any:
    """Its own C++, `build_sample_idx`, from its wheel; documents and windows are shuffled by
    NumPy, as in its GPTDataset.
    """
    name_packages("megatron", "megatron.core", "megatron.core.datasets")
    from megatron.core.datasets.helpers_cpp import build_sample_idx_int32

    class Binner:
        def __init__(self, case: Case, lengths: Int64) -> None:
            self.case, self.lengths, self.number = case, lengths.astype(np.int32), -1

        def window(self, number: int, place: int) -> Int64:
            if number != self.number:
                self.number = number
                rng = np.random.RandomState(number)
                self.documents = np.arange(len(self.lengths), dtype=np.int32)
                rng.shuffle(self.documents)
                total = int(self.lengths.sum(dtype=np.int64))
                self.cuts = build_sample_idx_int32(
                    self.lengths, self.documents, self.case.limit, 1, total, True, 1
                )
                self.order = np.arange(len(self.cuts) - 1, dtype=np.uint32)
                rng.shuffle(self.order)
            (first, start), (last, stop) = self.cuts[self.order[place] :][:2].tolist()
            documents = self.documents[first : last + 1].astype(np.int64)
            stops = self.lengths[documents].astype(np.int64)
            starts = np.zeros_like(stops)
            starts[0], stops[-1] = start, stop + 1
            return np.stack([documents, starts, stops], axis=1)

        def num_windows(self) -> int:
            return len(self.order)

    return Binner


BINNERS = (
    Entry("indexplan", "ours", "indexplan", ("packing", "batches", "budget"), ours=True),
    Entry(
        "indexplan, 32 buckets",
        "ours",
        "indexplan",
        ("batches",),
        note="The same with 32 buckets: half as many pairs meet again, at twice the padding.",
        options={"num_buckets": 32},
        ours=True,
    ),
    Entry("indexplan, shuffled", "shuffled", "indexplan", ("batches",), ours=True),
    Entry("indexplan, balance", "balanced", "indexplan", ("balance",), ours=True),
    Entry("indexplan, windows", "document_windows", "indexplan", ("windows",), ours=True),
    Entry("axolotl multipack", "multipack", "axolotl", ("packing",), apart="axolotl==0.19.0"),
    Entry(
        "TRL bfd",
        "trl_bfd",
        "trl",
        ("packing",),
        options={"rows": 1000},
        most=10**5,
        apart="trl==1.16.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19",
    ),
    Entry(
        "TRL bfd, all rows at once",
        "trl_bfd",
        "trl",
        ("packing",),
        note="The same with `map_kwargs={'batch_size': None}`.",
        most=10**5,
        apart="trl==1.16.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19",
    ),
    Entry(
        "OLMo-core packer",
        "olmo_packer",
        "ai2-olmo-core",
        ("packing",),
        most=10**5,
        apart="ai2-olmo-core==3.0.0",
    ),
    Entry(
        "Grain first fit",
        "grain_packing",
        "grain",
        ("packing",),
        options={"num_packing_bins": 64},
        most=10**5,
    ),
    Entry(
        "transformers LengthGroupedSampler",
        "length_grouped",
        "transformers",
        ("batches",),
        beside="indexplan, 32 buckets",
        cure="pip install -e . --group test",
    ),
    Entry("fairseq batch_by_size", "by_size", "fairseq", ("budget",), apart="fairseq==0.12.2"),
    Entry(
        "Lhotse DynamicBucketingSampler",
        "dynamic_buckets",
        "lhotse",
        ("budget",),
        most=10**5,
        apart="lhotse==1.33.0 soundfile==0.14.0 intervaltree==3.2.1 "
        "sortedcontainers==2.4.0 tabulate==0.10.0 lilcom==1.8.2 cytoolz==1.2.0 toolz==1.2.0",
    ),
    Entry(
        "VERL Karmarkar-Karp",
        "karmarkar_karp",
        "verl",
        ("balance",),
        beside="indexplan, balance",
        apart="verl==0.9.1",
    ),
    Entry(
        "Megatron indices",
        "megatron_index",
        "megatron-core",
        ("windows",),
        beside="indexplan, windows",
        apart="megatron-core==0.16.1",
    ),
)
NAMES = {binner.name: binner for binner in BINNERS}
