"""Shuffles: known answers and oracles; sizes are unrelated, sources in step are refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.examples import examples
from tests.support.shards_oracle import Shards
from tests.support.shuffle_cases import CASES
from tests.support.strategies import seeds


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


# ShardShuffle: what lanes promise, and what a node reads


@st.composite
def shards(draw: st.DrawFn, most: int = 12, num: int = 12) -> Shards:
    """Draw fields: empty shards, more lanes than samples, and windows past the end among them."""
    size = st.integers(0, most) | st.sampled_from([0, 1, most])
    sizes = draw(st.lists(size, min_size=1, max_size=num).filter(any))
    lanes = draw(st.integers(1, 6) | st.integers(1, 40))
    stripe = lanes * draw(st.integers(1, 5) | st.integers(1, 40))
    grid = draw(st.sampled_from(["epoch", "stream"]))
    window = draw(st.integers(1, 3) | st.just(2**32 - 1))
    return Shards(sizes, lanes, stripe, window, draw(st.booleans()), grid, draw(seeds))


def made(fields: Shards) -> ip.ShardShuffle:
    """Return the order of these fields."""
    return ip.ShardShuffle(**fields._asdict())


@pytest.mark.parametrize("num", [30, 200])
def test_windows_of_many_shards(num: int) -> None:
    """Places in windows of some 45 stretches, all of them compared, and of 300, bisected."""
    fields = Shards([3, 1, 4] * num, 2, 2, 2**32 - 1, False, "epoch", 5)
    expected = fields.epoch(1)
    assert expected == made(fields).take(1, 0, len(expected)).tolist()


@st.composite
def aligned(draw: st.DrawFn) -> tuple[Shards, int, int, int]:
    """Draw fields for which the law of locality holds; with nodes, ranks of each and G."""
    nodes, ranks = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    steps, lanes_of_a_node = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    lanes = nodes * lanes_of_a_node * steps
    step = math.lcm(nodes * ranks, lanes) * draw(st.integers(1, 3))
    stripe = step * steps
    sizes = draw(st.lists(st.integers(0, 40), min_size=1, max_size=60).filter(any))
    grid = draw(st.sampled_from(["epoch", "stream"]))
    fields = Shards(sizes, lanes, stripe, 2, draw(st.booleans()), grid, draw(seeds))
    return fields, nodes, ranks, step


@examples(40)
@given(aligned(), st.integers(1, 3))
def test_a_node_keeps_its_lanes(drawn: tuple[Shards, int, int, int], sub_epochs: int) -> None:
    """The law of locality: the same lanes at the same step of every stripe, and L / nodes in all.

    Of full steps from an epoch's start with grid "epoch"; with "stream", of all that "carry" has.
    """
    fields, nodes, ranks, step = drawn
    n, stream = sum(fields.sizes), fields.grid == "stream"
    order, world_size = made(fields), nodes * ranks
    assume(stream or n >= step)
    plan = ip.Plan(
        order,
        world_size=world_size,
        batch_size=step // world_size,
        remainder="carry" if stream else "drop",
        sub_epochs=sub_epochs if stream else 1,
    )
    lanes_of: list[list[set[int]]] = [
        [set() for _ in range(fields.stripe // step)] for _ in range(nodes)
    ]
    for epoch in range(3):
        positions = order.locate(epoch, range(n)).tolist()
        shift = epoch * n % fields.stripe if stream else 0
        ranks_of = plan.locate(range(n), epoch=epoch).rank.tolist()
        for position, rank in zip(positions, ranks_of, strict=True):
            if rank >= 0:
                place = position + (epoch * n if stream else 0)
                of_node = lanes_of[rank // ranks]
                of_node[place // step % len(of_node)].add(fields.lane_at(position + shift))
    most = fields.lanes * step // (fields.stripe * nodes)
    for of_node in lanes_of:
        assert all(len(lanes) <= most for lanes in of_node)
        assert len(set().union(*of_node)) == sum(map(len, of_node)) <= fields.lanes // nodes


def test_rows_are_kept_of_some_epochs() -> None:
    """Of the latest ones, both ways, whatever epochs are asked for; and none is pickled."""
    order = ip.ShardShuffle(range(30), lanes=4, stripe=8, sticky=True, seed=1)
    for epoch in (0, 3, 1, 0, 2, 3, 5, 0, 1):
        assert list(range(435)) == order.locate(epoch, order.take(epoch, 0, 435)).tolist()
    kept = vars(order)
    assert 3 == len(kept["_latest_row"]) == len(kept["_latest_row_by_sample"])
    sorted_once = order._row_by_sample(1)
    order.locate(1, [5])
    assert sorted_once is order._row_by_sample(1)
    assert set(vars(ip.ShardShuffle(range(30)))) == set(order.__getstate__())


@pytest.mark.parametrize("grid", ["epoch", "stream"])
def test_few_shards_are_live(grid: str) -> None:
    """Windows are whole turns of a lane; with windows of twice the mean size, 33 would be live."""
    sizes = np.random.default_rng(0).lognormal(np.log(512), 0.7, 20_000).astype(np.int64) + 1
    remainder = "carry" if grid == "stream" else "drop"
    plan = ip.Plan(
        ip.ShardShuffle(sizes, grid=grid), world_size=128, batch_size=32, remainder=remainder
    )
    assert ip.traffic(plan, sizes, ranks_per_node=8, epochs=[0]).live.max() <= 26
