"""Code that deals samples by weight, by class, from several datasets or repeatedly; rivals' too.

A dealer is a module of this folder with a class `Dealer(case, given)`, which builds what a run
needs, and

- `batches(step)`: an iterator over the epoch's batches from a step on, the way the dealer's own
  users resume;
- `epoch(limit)`: all indices of an epoch that was not drawn yet, or its first `limit`, the way
  that is fastest in bulk;
- `sources(dealt)`, for mixtures: the source of each index that `epoch` returned.

What they return has `__len__` and can be sliced, or is a tuple of such columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.contenders import Contender

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


DEALERS = (
    Entry(
        "indexplan",
        "ours",
        "indexplan",
        tuple(NEEDS),
        note="`plan.indices` and `plan.batch` of a plan of `Weighted`, `ClassBalanced`, "
        "`ClassBatches`, `Mixture` of `Shuffle`s, or `Repeat(Epochs(Shuffle))`.",
        ours=True,
    ),
    Entry(
        "indexplan, sources in order",
        "ours_in_order",
        "indexplan",
        ("mixture",),
        note="The same of `Sequential` sources: what rivals do that say a source and a number in "
        "it.",
        ours=True,
    ),
    Entry(
        "torch WeightedRandomSampler",
        "weighted_random_sampler",
        "torch",
        ("weights", "equal classes"),
        note="With replacement, and a generator seeded for the epoch; in a BatchSampler. For equal "
        "classes its weights are 1 / the size of the class. A resume skips batches.",
    ),
    Entry(
        "detectron2-style repeat factors",
        "repeat_factor_style",
        "torch",
        ("repeat factors",),
        note="Written here in the manner of detectron2's RepeatFactorTrainingSampler, which does "
        "not install: factors from lists of categories, rounded at random for each epoch, a list "
        "of all reads, shuffled by torch. A resume skips batches.",
    ),
    Entry(
        "pytorch-metric-learning MPerClassSampler",
        "m_per_class",
        "pytorch-metric-learning",
        ("class batches",),
        note="With `batch_size=128` and its own 100,000 reads an epoch. It takes no seed, but the "
        "generator of all of NumPy, so a run cannot go on where another one stopped.",
        seeks=False,
        cure="pip install --no-deps pytorch-metric-learning==2.9.0",
    ),
    Entry(
        "Megatron blending",
        "megatron_blending",
        "megatron-core",
        ("mixture",),
        note="Its own C++, `build_blending_indices`, from its wheel: a source and a number in it "
        "for every read of a run, which its datasets then look up in shuffles of their own.",
        cure="pip install --no-deps megatron-core==0.16.1",
    ),
    Entry(
        "Grain mix",
        "grain_mix",
        "grain",
        ("mixture",),
        note="The arithmetic of `MapDataset.mix` alone: a source and a number in it, index by "
        "index.",
        limit=10**6,
    ),
    Entry(
        "datasets interleave_datasets",
        "interleave",
        "datasets",
        ("first exhausted", "all exhausted"),
        note="In memory, with a seed; what is read is its table of indices, not the rows.",
        cure="pip install --no-deps datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19",
    ),
    Entry(
        "timm RepeatAugSampler",
        "repeat_aug",
        "timm",
        ("repeats",),
        note=f"{COPIES} repeats; in a BatchSampler. A resume skips batches. Imported without the "
        "rest of timm, which needs torchvision.",
        cure="pip install --no-deps timm==1.0.31",
    ),
)
NAMES = {dealer.name: dealer for dealer in DEALERS}


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
