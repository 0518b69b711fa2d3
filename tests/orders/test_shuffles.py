"""Shuffles: known answers and oracles; sizes are unrelated, sources in step are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.golden.lines import CRC, cases, crc32
from tests.support import oracles
from tests.support.shuffle_cases import CASES
from tests.support.strategies import seeds

nums = st.one_of(st.integers(1, 60), st.integers(4000, 9000), st.integers(1, 2**63 - 1))
windows = st.one_of(st.integers(1, 9), st.integers(500, 5000), st.integers(1, 2**63 - 1))
small = st.builds(ip.LocalShuffle, st.integers(1, 60), st.integers(1, 9), seeds)


@pytest.mark.parametrize(
    "case", cases("local_shuffle_v1"), ids=lambda case: f"{case['n']}, {case['window']}"
)
def test_known_answers_of_local_shuffles(case: dict[str, Any]) -> None:
    """Bits that never change."""
    order = ip.LocalShuffle(case["n"], case["window"], case["seed"])
    assert case["indices"] == order.take(case["epoch"], case["positions"]).tolist()
    if CRC in case:
        assert case[CRC] == crc32(order.take(case["epoch"], 0, case["n"]))


@given(nums, windows, seeds, st.integers(0, 2**32 - 1), st.data())
def test_local_shuffles_are_the_oracles(
    n: int, window: int, seed: int, epoch: int, data: st.DataObject
) -> None:
    """Any runs of positions have the oracle's indices, and the indices lead back to them."""
    order = ip.LocalShuffle(n, window, seed)
    edge = st.integers(0, (n - 1) // window).map(lambda v: max(0, v * window - 3))
    starts = data.draw(st.lists(st.one_of(edge, st.integers(0, n - 1)), max_size=4))
    stops = [data.draw(st.integers(start, min(n, start + 9))) for start in starts]
    positions = [p for start, stop in zip(starts, stops, strict=True) for p in range(start, stop)]
    spec = (n, window, seed, epoch)
    expected = [oracles.local_shuffle_forward(*spec, p) for p in positions]
    assert expected == order.take(epoch, starts, stops).tolist()
    assert positions == order.locate(epoch, expected).tolist()
    assert positions == [oracles.local_shuffle_inverse(*spec, index) for index in expected]


def test_known_answers_of_shuffles() -> None:
    """The 1,000 that every language is held to, both ways."""
    for n, seed, epoch, start, indices in CASES:
        order = ip.Shuffle(n, seed)
        assert indices == order.take(epoch, start, start + len(indices)).tolist()
        assert [*range(start, start + len(indices))] == order.locate(epoch, indices).tolist()


NEAR = (1, 2, 10, 24)  # sizes so close that their networks have the same sides
NUM = 60  # pairs of orders
MOST = 40  # of NUM agreements that chance gives; it exceeds 100 once in a million

KINDS: dict[str, Callable[[int, int], Any]] = {  # of about 1,000 samples, and a seed
    "Shuffle": ip.Shuffle,
    "BlockShuffle": lambda n, seed: ip.BlockShuffle(n, 1, seed=seed),
    "windows of blocks": lambda n, seed: ip.BlockShuffle(n, n, seed=seed),
    "LocalShuffle": lambda n, seed: ip.LocalShuffle(n, 900, seed),
    "ShardShuffle": lambda n, seed: ip.ShardShuffle([1] * n, lanes=1, stripe=1, seed=seed),
    "windows of lanes": lambda n, seed: ip.ShardShuffle(
        [n], lanes=1, stripe=1, window=1, seed=seed
    ),
    "Weighted": lambda n, seed: ip.Weighted([1.0] * n, 1000, seed),
    "classes": lambda n, seed: ip.ClassBalanced(np.arange(n), n, seed=seed),
    "their members": lambda n, seed: ip.ClassBalanced([0] * n, n, seed=seed),
    "their numbers": lambda n, seed: ip.ClassBatches(np.arange(n), 1, 1, n, seed, "repeat"),
    "bins": lambda n, seed: ip.LengthGrouped(np.arange(n) + 1, 1, num_buckets=n, seed=seed),
    "strata": lambda n, seed: ip.LengthGrouped([1] * n, batch_size=n, seed=seed),
    "TokenWindows": lambda n, seed: ip.TokenWindows(n, 1, shift=False, overlap=0, seed=seed),
    "documents": lambda n, seed: ip.DocumentWindows([1] * n, n, overlap=0, seed=seed),
    "parts": lambda n, seed: ip.Split(n, {"a": 1, "b": 1}, seed=seed)["a"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_sizes_are_unrelated(kind: str) -> None:
    """The same index at the same place, or after the same index, no oftener than by chance."""
    same = following = 0
    for number in range(NUM):
        n, d, seed, epoch = 990 + 3 * number, NEAR[number % 4], number // 3, number % 3
        seed += 100 * epoch if kind == "parts" else 0  # which are the same in all epochs
        orders = [KINDS[kind](each, seed) for each in (n, n + d)]
        num = min(900, *(order.num_units(epoch) for order in orders))
        a, b = (order.take(epoch, 0, num)[:900] for order in orders)
        same += int((a == b).sum())
        after = np.full(n + d, -1)
        after[a[:-1]] = a[1:]
        following += int((after[b[:-1]] == b[1:]).sum())
    assert max(same, following) < NUM + MOST


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
