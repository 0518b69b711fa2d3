"""Code that deals samples by weight, by class, from several datasets or repeatedly; rivals' too.

A dealer is a function of this file, which imports what it needs and returns a class. An object of
that, `Dealer(case, given)`, builds what a run needs, and has

- `batches(step)`: an iterator over the epoch's batches from a step on, the way the dealer's own
  users resume;
- `epoch(limit)`: all indices of an epoch that was not drawn yet, or its first `limit`, the way
  that is fastest in bulk;
- `sources(dealt)`, for mixtures: the source of each index that `epoch` returned.

What they return has `__len__` and can be sliced, or is a tuple of such columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders import Contender, name_packages
from benchmarks.contenders.planners import Sized

NEEDS = {
    "weights": "Samples by weight",
    "repeat factors": "Repeat factors of rare categories",
    "equal classes": "Equal classes",
    "class batches": "Batches of 32 classes x 4 samples",
    "mixture": "Mixtures",
    "first exhausted": "Mixtures until the first source is exhausted",
    "all exhausted": "Mixtures until all sources are exhausted",
    "repeats": "Repeated augmentation, one rank of 8",
}
"""What dealers are asked for: how the page calls it."""
MIXTURES = ("mixture", "first exhausted", "all exhausted")
CLASSES, PER_CLASS, COPIES, THRESHOLD = 32, 4, 3, 1e-3


class Case(NamedTuple):
    """What is asked for, how large; a rank is always rank 0."""

    need: str
    n: int
    """Samples, of all sources together."""
    num: int = 0
    """Classes, categories or sources."""
    size: int = 0
    """Of the epoch, for a mixture without an end of its own."""
    world: int = 1
    batch: int = 256
    seed: int = 1


@dataclass(frozen=True)
class Entry(Contender):
    """One way to deal samples; everything about it but its code."""

    needs: tuple[str, ...]
    limit: int = 2**62
    """Indices that it is asked for at once, at most."""
    seeks: bool = True
    """Whether a run can go on where another one stopped."""


def shares_of(case: Case) -> Any:
    """Return whole shares of the sources, the least of many 100, so that no dealer rounds them.

    Cases of other sizes have others, so that a warm-up leaves no table for what is measured.
    """
    if case.num == 3:
        return np.roll((7, 2, 1), case.n // 3 % 2)
    rest = np.random.default_rng(case.n).dirichlet(np.ones(case.num - 1))
    shares = 100 + np.floor(rest * (2**16 - 100 * case.num)).astype(int)
    return np.append(shares, 100) + np.eye(case.num, dtype=int)[0] * (2**16 - 100 - shares.sum())


def given(case: Case) -> dict[str, Any]:
    """Return what all dealers of a need are given; making it is not timed."""
    n, num, rng = case.n, case.num, np.random.default_rng(case.n)
    if case.need == "weights":
        weights = rng.exponential(size=n)
        weights[::1000] = 0
        return {"weights": weights}
    if case.need == "repeat factors":
        images = np.repeat(np.arange(n), rng.integers(1, 8, n))
        categories = np.minimum(rng.zipf(1.5, len(images)), num) - 1
        cuts = np.searchsorted(images, np.arange(1, n))
        return {"images": images, "categories": categories, "lists": np.split(categories, cuts)}
    if case.need == "equal classes":
        return {"labels": np.floor(num * rng.random(n) ** 2).astype(int)}
    if case.need == "class batches":
        return {"labels": rng.permutation(n) % num}
    if case.need in MIXTURES:
        sizes = n // num + np.arange(num)
        return {"sizes": sizes, "shares": shares_of(case)}
    return {}


def ours() -> Any:
    """`plan.indices` and `plan.batch` of a plan of `Weighted`, `ClassBalanced`, `ClassBatches`,
    `Mixture` of `Shuffle`s, or `Repeat(Epochs(Shuffle))`.
    """
    import indexplan as ip

    def order_of(case: Case, given: dict[str, Any]) -> ip.Order:
        if case.need == "weights":
            return ip.Weighted(given["weights"], seed=case.seed)
        if case.need == "repeat factors":
            pairs = np.unique(np.stack([given["images"], given["categories"]]), axis=1)
            _, category, shown_in = np.unique(pairs[1], return_inverse=True, return_counts=True)
            factors = np.ones(case.n)  # as docs/classes.md makes them
            np.maximum.at(factors, pairs[0], np.sqrt(THRESHOLD / (shown_in / case.n))[category])
            return ip.Weighted(factors, epoch_size=round(factors.sum()), seed=case.seed)
        if case.need == "equal classes":
            return ip.ClassBalanced(given["labels"], seed=case.seed)
        if case.need == "class batches":
            return ip.ClassBatches(given["labels"], CLASSES, PER_CLASS, seed=case.seed)
        if case.need == "repeats":
            epochs = ip.Epochs(ip.Shuffle(case.n, seed=case.seed), case.n // COPIES)
            return ip.Repeat(epochs, COPIES, span=case.world * case.batch)
        return mixture(case, given, lambda i, n: ip.Shuffle(n, seed=i))

    def mixture(case: Case, given: dict[str, Any], source: Any) -> ip.Order:
        sources = {f"{i}": source(i, n) for i, n in enumerate(given["sizes"].tolist())}
        weights = dict(zip(sources, given["shares"].tolist(), strict=True))
        size = case.size or case.need.replace(" ", "_")
        return ip.Mixture(sources, weights, epoch_size=size, seed=case.seed)

    class Dealer:
        def __init__(self, case: Case, given: dict[str, Any], *, in_order: bool = False) -> None:
            in_row = lambda _, n: ip.Sequential(n)  # noqa: E731
            order = mixture(case, given, in_row) if in_order else order_of(case, given)
            batch = 1 if order.traits.deals_bins else case.batch
            self.plan = ip.Plan(order, world_size=case.world, batch_size=batch)

        def batches(self, step: int) -> Iterator[Any]:
            last = self.plan.steps(0).stop
            return (self.plan.batch(0, step=i, rank=0) for i in range(step, last))

        def epoch(self, limit: int) -> Any:
            return self.plan.indices(0, rank=0)[:limit]

        def sources(self, dealt: Any) -> Any:
            return self.plan.order.split(dealt)[0]

    return Dealer


def ours_in_order() -> Any:
    """The same of `Sequential` sources: what rivals do that say a source and a number in it."""
    from functools import partial

    return partial(ours(), in_order=True)


def weighted_random_sampler() -> Any:
    """With replacement, and a generator seeded for the epoch; in a BatchSampler.

    For equal classes its weights are 1 / the size of the class. A resume skips batches.
    """
    import torch
    from torch.utils.data import WeightedRandomSampler

    class Seeded(WeightedRandomSampler):
        def __init__(self, case: Case, given: dict[str, Any]) -> None:
            self.case, weights = case, given.get("weights")
            if weights is None:
                weights = 1 / np.bincount(given["labels"])[given["labels"]]
            super().__init__(weights, case.n, generator=torch.Generator())

        def __iter__(self) -> Iterator[int]:
            self.generator.manual_seed(self.case.seed)
            return super().__iter__()

    return sampled(Seeded)


def repeat_factor_style() -> Any:
    """Written here in the manner of detectron2's RepeatFactorTrainingSampler, which does not
    install: factors from lists of categories, rounded at random for each epoch, a list of all
    reads, shuffled by torch. A resume skips batches.
    """
    import torch
    from torch.utils.data import BatchSampler

    class Dealer:
        def __init__(self, case: Case, given: dict[str, Any]) -> None:
            self.case, images = case, [set(each.tolist()) for each in given["lists"]]
            held = Counter(category for image in images for category in image)
            factor_of = {
                category: max(1.0, math.sqrt(THRESHOLD * case.n / count))
                for category, count in held.items()
            }
            factors = torch.tensor([max(factor_of[each] for each in image) for image in images])
            self.whole, self.part = torch.trunc(factors), torch.frac(factors)

        def epoch(self, limit: int) -> Any:
            generator = torch.Generator().manual_seed(self.case.seed)
            chance = torch.rand(len(self.part), generator=generator)
            repeats = self.whole + (chance < self.part).float()
            indices: list[int] = []
            for index, repeat in enumerate(repeats):
                indices += [index] * int(repeat)
            order = torch.randperm(len(indices), generator=generator)
            return torch.tensor(indices)[order].tolist()[:limit]

        def batches(self, step: int) -> Iterator[Any]:
            epoch = self.epoch(2**62)
            return islice(BatchSampler(epoch, self.case.batch, drop_last=False), step, None)

    return Dealer


def sampled(make: Any) -> Any:
    """Return a dealer of a torch sampler, which is made of a case and what is given."""
    from torch.utils.data import BatchSampler

    class Dealer:
        def __init__(self, case: Case, given: dict[str, Any]) -> None:
            self.case, self.sampler = case, make(case, given)

        def batches(self, step: int) -> Iterator[Any]:
            return islice(BatchSampler(self.sampler, self.case.batch, drop_last=False), step, None)

        def epoch(self, limit: int) -> Any:
            return list(islice(self.sampler, limit))

    return Dealer


def m_per_class() -> Any:
    """With `batch_size=128` and its own 100,000 reads an epoch.

    It takes no seed, but the generator of all of NumPy, so a run cannot go on where another one
    stopped.
    """
    from pytorch_metric_learning.samplers import MPerClassSampler

    return sampled(lambda case, given: MPerClassSampler(given["labels"], PER_CLASS, case.batch))


def repeat_aug() -> Any:
    """3 repeats; in a BatchSampler.

    A resume skips batches. Imported without the rest of timm, which needs torchvision.
    """
    name_packages("timm", "timm.data")
    from timm.data.distributed_sampler import RepeatAugSampler

    def made(case: Case, _: dict[str, Any]) -> Any:
        sampler = RepeatAugSampler(Sized(case.n), case.world, rank=0, num_repeats=COPIES)
        sampler.set_epoch(case.seed)
        return sampler

    return sampled(made)


def megatron_blending() -> Any:
    """Its own C++, `build_blending_indices`, from its wheel: a source and a number in it for
    every read of a run, which its datasets then look up in shuffles of their own.
    """
    name_packages("megatron", "megatron.core", "megatron.core.datasets")
    from megatron.core.datasets.helpers_cpp import build_blending_indices

    class Dealer:
        def __init__(self, case: Case, given: dict[str, Any]) -> None:
            self.case, self.weights = case, given["shares"] / given["shares"].sum()
            self.blend = self.epoch(case.size)

        def epoch(self, limit: int) -> Any:
            size = min(limit, self.case.size)
            source, number = np.zeros(size, np.int16), np.zeros(size, np.int64)
            build_blending_indices(source, number, self.weights, len(self.weights), size, False)
            return source, number

        def batches(self, step: int) -> Iterator[Any]:
            size = self.case.batch
            for start in range(step * size, self.case.size, size):
                yield tuple(np.array(column[start : start + size]) for column in self.blend)

        def sources(self, dealt: Any) -> Any:
            return dealt[0]

    return Dealer


def grain_mix() -> Any:
    """The arithmetic of `MapDataset.mix` alone: a source and a number in it, index by index."""
    from grain import MapDataset

    class Dealer:
        def __init__(self, case: Case, given: dict[str, Any]) -> None:
            self.case = case
            sources = [MapDataset.range(n) for n in given["sizes"].tolist()]
            mixed = MapDataset.mix(sources, given["shares"].tolist())
            self.select = mixed._selection_map  # noqa: SLF001 (without the elements)

        def epoch(self, limit: int) -> Any:
            return [self.select[i] for i in range(min(limit, self.case.size))]

        def batches(self, step: int) -> Iterator[Any]:
            for start in range(step * self.case.batch, self.case.size, self.case.batch):
                stop = min(start + self.case.batch, self.case.size)
                yield [self.select[i] for i in range(start, stop)]

        def sources(self, dealt: Any) -> Any:
            return np.array(dealt)[:, 0]

    return Dealer


def interleave() -> Any:
    """In memory, with a seed; what is read is its table of indices, not the rows."""
    from datasets import Dataset, interleave_datasets

    class Dealer:
        def __init__(self, case: Case, given: dict[str, Any]) -> None:
            self.case, self.ends = case, np.cumsum(given["sizes"])
            self.shares = given["shares"] / given["shares"].sum()
            self.datasets = [Dataset.from_dict({"x": np.arange(n)}) for n in given["sizes"]]
            self.indices = self.interleaved()

        def interleaved(self) -> Any:
            stop = self.case.need.replace(" ", "_")
            options = {"seed": self.case.seed, "stopping_strategy": stop}
            mixed = interleave_datasets(self.datasets, self.shares.tolist(), **options)
            return mixed._indices.column(0)  # noqa: SLF001 (not the rows)

        def epoch(self, limit: int) -> Any:
            return self.interleaved()[:limit].to_numpy()

        def batches(self, step: int) -> Iterator[Any]:
            for start in range(step * self.case.batch, len(self.indices), self.case.batch):
                yield self.indices[start : start + self.case.batch].to_numpy()

        def sources(self, dealt: Any) -> Any:
            return np.searchsorted(self.ends, dealt, side="right")

    return Dealer


DEALERS = (
    Entry("indexplan", "ours", "indexplan", tuple(NEEDS), ours=True),
    Entry("indexplan, sources in order", "ours_in_order", "indexplan", ("mixture",), ours=True),
    Entry(
        "torch WeightedRandomSampler",
        "weighted_random_sampler",
        "torch",
        ("weights", "equal classes"),
    ),
    Entry("detectron2-style repeat factors", "repeat_factor_style", "torch", ("repeat factors",)),
    Entry(
        "pytorch-metric-learning MPerClassSampler",
        "m_per_class",
        "pytorch-metric-learning",
        ("class batches",),
        seeks=False,
        apart="pytorch-metric-learning==2.9.0",
    ),
    Entry(
        "Megatron blending",
        "megatron_blending",
        "megatron-core",
        ("mixture",),
        apart="megatron-core==0.16.1",
    ),
    Entry("Grain mix", "grain_mix", "grain", ("mixture",), limit=10**6),
    Entry(
        "datasets interleave_datasets",
        "interleave",
        "datasets",
        ("first exhausted", "all exhausted"),
        apart="datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19",
    ),
    Entry("timm RepeatAugSampler", "repeat_aug", "timm", ("repeats",), apart="timm==1.0.31"),
)
NAMES = {dealer.name: dealer for dealer in DEALERS}
