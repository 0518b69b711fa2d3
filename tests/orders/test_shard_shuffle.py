"""shard-shuffle-v1: known answers, the oracle, what lanes promise, and what a node reads."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from tests.golden.lines import cases
from tests.support.examples import examples
from tests.support.shards_oracle import Shards
from tests.support.strategies import seeds

epochs = st.integers(0, 2**32 - 1)


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
    sizes, *more = fields
    return ip.ShardShuffle(sizes, **dict(zip(Shards._fields[1:], more, strict=True)))


def drawn(most: int, num: int) -> st.SearchStrategy[ip.ShardShuffle]:
    """Return a strategy for orders."""
    return shards(most, num).map(made)


@pytest.mark.parametrize(
    "case", cases("shard_shuffle_v1"), ids=lambda case: f"{case['seed']}, epoch {case['epoch']}"
)
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change."""
    order = made(Shards(*(case[name] for name in Shards._fields)))
    row = order.take(case["epoch"], 0, order.num_samples)
    assert case["first"] == row[:40].tolist()
    assert case["sha256"] == hashlib.sha256(row.astype("<i8").tobytes()).hexdigest()


@examples(60)
@given(shards(), st.sampled_from([0, 1, 2, 77]), st.data())
def test_the_oracle(fields: Shards, epoch: int, data: st.DataObject) -> None:
    """Whole epochs, runs of them and single places are the oracle's, and lead back."""
    order, expected = made(fields), fields.epoch(epoch)
    n = len(expected)
    assert expected == order.take(epoch, 0, n).tolist()
    assert list(range(n)) == order.locate(epoch, expected).tolist()
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=6)))
    runs = [expected[a:b] for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    assert sum(runs, []) == order.take(epoch, [0, *cuts], [*cuts, n]).tolist()
    some = data.draw(st.lists(st.integers(0, n - 1), max_size=5))
    assert [expected[at] for at in some] == order.take(epoch, some).tolist()


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


@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize(
    ("sizes", "lanes", "stripe"),
    [
        ([2**61, 0, 2**62 - 5, 17], 2**32 - 1, 2**32 - 1),
        ([2**62, 2**40], 3, 3 * 2**59),
        ([5, 7, 11], 2**32 - 1, 2**30 * (2**32 - 1)),
    ],
)
def test_huge_ones(sizes: list[int], lanes: int, stripe: int, sticky: bool) -> None:
    """Sizes, lanes and stripes up to the largest: places lead to samples and back."""
    for grid in ("epoch", "stream"):
        order = ip.ShardShuffle(sizes, lanes=lanes, stripe=stripe, sticky=sticky, grid=grid)
        n, epoch = sum(sizes), 2**32 - 1
        places = sorted({0, 1, n // 7, n // 3, n // 2 + 1, n - 2, n - 1})
        samples = order.take(epoch, places)
        assert len(set(samples.tolist())) == len(places)
        assert 0 <= samples.min() <= samples.max() < n
        assert places == order.locate(epoch, samples).tolist()


def test_rows_are_kept_of_some_epochs() -> None:
    """Whatever epochs are asked for, in whatever order, each answers as a new order does."""
    order = ip.ShardShuffle(range(30), lanes=4, stripe=8, sticky=True, seed=1)
    for epoch in (0, 3, 1, 0, 2, 3, 5, 0, 1):
        alone = ip.ShardShuffle(range(30), lanes=4, stripe=8, sticky=True, seed=1)
        assert alone.take(epoch, 0, 435).tolist() == order.take(epoch, 0, 435).tolist()
        assert alone.locate(epoch, range(435)).tolist() == order.locate(epoch, range(435)).tolist()
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
