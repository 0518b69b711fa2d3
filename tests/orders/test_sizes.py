"""Orders of other sizes are unrelated, even of one seed; sources that read in step are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import indexplan as ip
from indexplan.kernels import feistel, permutation
from tests.support import oracles

NEAR = (1, 2, 10, 24)  # sizes so close that their networks have the same sides
NUM = 60  # pairs of orders
MOST = 40  # of NUM agreements that chance gives; it exceeds 100 once in a million

Read = Callable[[int, int, int], Any]


def in_bins(kind: Any, n: int, seed: int) -> ip.Order:
    """Return bins of one sample each."""
    order: ip.Order = kind(np.arange(1, n + 1), batch_size=1, num_buckets=n, seed=seed)
    return order


KINDS: dict[str, Read] = {  # what is read of a dataset of about 1,000 samples
    "Shuffle": lambda n, seed, epoch: ip.Shuffle(n, seed).take(epoch, 0, 900),
    "BlockShuffle": lambda n, seed, epoch: ip.BlockShuffle(n, 1, seed=seed).take(epoch, 0, 900),
    "windows of blocks": (
        lambda n, seed, epoch: ip.BlockShuffle(n, n, seed=seed).take(epoch, 0, 900)
    ),
    "LocalShuffle": lambda n, seed, epoch: ip.LocalShuffle(n, 900, seed).take(epoch, 0, 900),
    "ShardShuffle": (
        lambda n, seed, epoch: ip.ShardShuffle([1] * n, lanes=1, stripe=1, seed=seed).take(
            epoch, 0, 900
        )
    ),
    "windows of lanes": (
        lambda n, seed, epoch: ip.ShardShuffle([n], lanes=1, stripe=1, window=1, seed=seed).take(
            epoch, 0, 900
        )
    ),
    "Weighted": lambda n, seed, epoch: ip.Weighted([1.0] * n, 1000, seed).take(epoch, 0, 900),
    "classes": (
        lambda n, seed, epoch: ip.ClassBalanced(np.arange(n), n, seed=seed).take(epoch, 0, 900)
    ),
    "their members": lambda n, seed, epoch: ip.ClassBalanced([0] * n, n, seed=seed).take(
        epoch, 0, 900
    ),
    "their numbers": (
        lambda n, seed, epoch: ip.ClassBatches(np.arange(n), 1, 1, n, seed, "repeat").take(
            epoch, 0, 900
        )
    ),
    "bins": lambda n, seed, epoch: in_bins(ip.LengthGrouped, n, seed).take(epoch, 0, 900),
    "strata": lambda n, seed, epoch: ip.LengthGrouped([1] * n, batch_size=n, seed=seed).take(
        epoch, 0
    ),
    "TokenWindows": (
        lambda n, seed, epoch: ip.TokenWindows(n, 1, shift=False, overlap=0, seed=seed).take(
            epoch, 0, 900
        )
    ),
    "documents": (
        lambda n, seed, epoch: ip.DocumentWindows([1] * n, n, overlap=0, seed=seed).take(epoch, 0)
    ),
    "parts": (
        lambda n, seed, epoch: ip.Split(n, {"a": 1, "b": 1}, seed=seed * 100 + epoch)["a"].take(
            0, 0, 450
        )
    ),
}


def agreements(read: Read) -> tuple[int, int]:
    """Return how often two orders of near sizes read the same index, or the same pair in a row."""
    same = following = 0
    for number in range(NUM):
        n, d, seed, epoch = 990 + 3 * number, NEAR[number % 4], number // 3, number % 3
        a, b = (np.asarray(read(each, seed, epoch))[:900] for each in (n, n + d))
        num = min(len(a), len(b))
        a, b = a[:num], b[:num]
        same += int((a == b).sum())
        after = np.full(n + d, -1)
        after[a[:-1]] = a[1:]
        following += int((after[b[:-1]] == b[1:]).sum())
    return same, following


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_are_unrelated(kind: str) -> None:
    """The same index at the same place, or after the same index, no oftener than by chance."""
    assert max(agreements(KINDS[kind])) < NUM + MOST


def without_the_size(n: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """shuffle-v1 as it would be if key words did not hash the size."""
    words = np.array(oracles.key_words(seed, 0, epoch, 2 * feistel.num_rounds(n)), np.uint32)
    out = np.empty(900, np.int64)
    permutation.permute_runs(n, words, np.zeros(1, np.int64), np.full(1, 900), out)
    return out


def test_the_size_makes_the_difference() -> None:
    """Without it, the test above fails by far."""
    same, following = agreements(without_the_size)
    assert min(same, following) > 900 * NUM // 10


SHUFFLE = ip.Shuffle(100, seed=4)
IN_STEP: dict[str, tuple[Any, Any]] = {
    "one kind": (ip.Shuffle(100, 4), ip.Shuffle(100, 4)),
    "other blocks": (ip.BlockShuffle(100, 5, seed=4), ip.BlockShuffle(100, 7, seed=4)),
    "other lengths": (
        ip.LengthGrouped([1, 2] * 50, batch_size=2, seed=4),
        ip.LengthGrouped([3, 9] * 50, batch_size=2, seed=4),
    ),
    "strata of two kinds": (
        ip.TokenBudget([5] * 100, 20, seed=4),
        ip.Packed([3, 4] * 50, 20, seed=4),
    ),
    "classes of two kinds": (
        ip.ClassBalanced([0, 1] * 50, seed=4),
        ip.ClassBatches([0, 1] * 50, 2, 4, 10, 4),
    ),
    "a layer": (ip.Subset(SHUFFLE, range(100), 200), SHUFFLE),
    "two layers": (ip.Repeat(SHUFFLE, copies=2, span=10), ip.Epochs(SHUFFLE, 30)),
    "a mixture": (ip.Mixture({"a": SHUFFLE}, {"a": 1}, seed=3), SHUFFLE),
    "two mixtures": (
        ip.Mixture({"a": ip.Shuffle(9)}, {"a": 1}, seed=4),
        ip.Mixture({"a": ip.Shuffle(8)}, {"a": 1}, seed=4),
    ),
    "one part of two datasets": (
        ip.Split(100, {"a": 1, "b": 3}, seed=4)["a"],
        ip.Split(100, {"x": 1, "y": 3}, seed=4)["x"],
    ),
}


@pytest.mark.parametrize("kind", IN_STEP)
def test_sources_in_step(kind: str) -> None:
    """They are refused, whatever lies around them."""
    with pytest.raises(ip.IndexPlanError) as error:
        ip.Mixture(dict(zip("ab", IN_STEP[kind], strict=True)), {"a": 1, "b": 1})
    assert str(error.value) == (
        "sources must differ in seed where algorithm and size are equal; got 4 in 'a' and 'b'; "
        "pass seed=5 to one of them"
    )


@pytest.mark.parametrize(
    "sources",
    [
        (SHUFFLE, ip.Shuffle(101, seed=4)),
        (SHUFFLE, ip.Shuffle(100, seed=5)),
        (SHUFFLE, ip.LocalShuffle(100, 10, seed=4)),
        tuple(ip.Split(100, {"a": 1, "b": 1}, seed=4).values()),
        (ip.Sequential(10), ip.Sequential(11)),
        (ip.Subset(ip.Sequential(5), range(5), 10), ip.Subset(ip.Sequential(5), range(5, 10), 10)),
    ],
)
def test_sources_apart(sources: tuple[ip.Order, ...]) -> None:
    """Another size, seed, algorithm or part of a split is enough."""
    mixture = ip.Mixture(dict(zip("ab", sources, strict=True)), {"a": 1, "b": 1})
    assert mixture == ip.Plan.from_json(ip.Plan(mixture, batch_size=1).to_json()).order
