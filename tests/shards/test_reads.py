"""Which shards ranks read from when to when, and what nodes download: by sets of batches."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan import kernels
from indexplan.shards import guide
from indexplan.shards import shard_reads as module
from tests.support.bins import Bins, bin_orders
from tests.support.examples import examples
from tests.support.strategies import (
    balanced_plans,
    orders,
    plans,
    seeds,
    start_of,
    steps_of,
    sub_epochs_of,
)


def shard_of(sizes: Sequence[int]) -> list[int]:
    """Return the shard of each sample."""
    return [shard for shard, size in enumerate(sizes) for _ in range(size)]


def read_in(
    plan: ip.Plan, sizes: Sequence[int], epoch: int, sub_epoch: int, step: int, ranks: range
) -> list[int]:
    """Return the shard of each sample that some ranks read in a step."""
    shards = shard_of(sizes)
    batches = [plan.batch(epoch, sub_epoch, step=step, rank=rank).tolist() for rank in ranks]
    return [shards[index] for batch in batches for index in batch]


@st.composite
def shards_of(draw: st.DrawFn, num_samples: int) -> list[int]:
    """Draw sizes of shards, some of them empty, that hold so many samples."""
    cuts = sorted(draw(st.lists(st.integers(0, num_samples), max_size=12)))
    edges = [0, *cuts, num_samples]
    return [high - low for low, high in pairwise(edges)]


SHARDS = st.builds(
    lambda sizes, lanes, seed: ip.ShardShuffle(
        [*sizes, 1], lanes=lanes, stripe=3 * lanes, window=1, seed=seed
    ),
    st.lists(st.integers(0, 30), max_size=9),
    st.integers(1, 5),
    seeds,
)
AGAIN = st.builds(
    lambda n, seed: ip.Weighted(range(1, n + 1), seed=seed), st.integers(1, 80), seeds
)
ORDERS = orders(ip.Shuffle) | bin_orders(Bins) | AGAIN | SHARDS  # single samples and others


def walked(
    plan: ip.Plan,
    sizes: list[int],
    where: tuple[int, int],
    ranks: range,
    steps: range,
) -> list[tuple[int, int, int, int]]:
    """Return each shard, its first and last step, and its samples."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for step in steps:
        for rank in ranks:
            for shard in read_in(plan, sizes, *where, step, range(rank, rank + 1)):
                first.setdefault(shard, step)
                last[shard] = step
                counts[shard] += 1
    return [(s, first[s], last[s], counts[s]) for s in first]


def rows(found: ip.types.Reads) -> list[tuple[int, ...]]:
    """Return the arrays as rows."""
    columns = found.shards, found.first_steps, found.last_steps, found.num_samples
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(plans(ORDERS) | balanced_plans(ORDERS), st.data())
def test_reads_are_those_of_the_batches(plan: ip.Plan, data: st.DataObject) -> None:
    """Of any order, shards, ranks and steps; however few samples are drawn at a time."""
    sizes = data.draw(shards_of(plan.order.num_samples))
    where = data.draw(st.sampled_from(sub_epochs_of(plan)))
    low, high = plan.steps(*where).start, plan.steps(*where).stop
    start = data.draw(st.integers(low, high))
    stop = data.draw(st.integers(start, high))
    world = plan.world_size or 0
    first = data.draw(st.integers(0, world - 1))
    ranks = range(first, data.draw(st.integers(first + 1, world)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LOOK", data.draw(st.integers(1, 40)))
        found = ip.reads(plan, sizes, *where, ranks=ranks, start_step=start, stop_step=stop)
    assert walked(plan, sizes, where, ranks, range(start, stop)) == rows(found)
    assert (start, stop) == (found.start_step, found.stop_step)


def test_sizes_in_any_form(tmp_path: Path) -> None:
    """A list, an array, a Column, what has sizes; those of the order, stored and in layers too."""

    class Shards:
        sizes = np.array([5, 0, 25, 10], np.uint16)

    order = ip.ShardShuffle([5, 0, 25, 10], lanes=2, stripe=4)
    plan = ip.Plan(order, world_size=2, batch_size=2)
    expected = rows(ip.reads(plan, [5, 0, 25, 10], 0))
    for same in (None, np.array([5, 0, 25, 10]), ip.Column([5, 0, 25, 10]), Shards()):
        assert expected == rows(ip.reads(plan, same, 0))
    layers = ip.Plan(ip.Repeat(order, 1), world_size=2, batch_size=2)
    ip.save(plan, tmp_path / "a.plan")
    for each in (layers, ip.load(tmp_path / "a.plan")):
        assert expected == rows(ip.reads(each, None, 0))


def nodes_of(plan: ip.Plan, each: int) -> list[range]:
    """Return the ranks of each node."""
    world = plan.world_size or 0
    return [range(low, min(low + each, world)) for low in range(0, world, each)]


@examples(50)
@given(
    plans(ORDERS) | balanced_plans(ORDERS),
    st.integers(1, 9),
    st.data(),
)
def test_traffic_is_that_of_the_batches(plan: ip.Plan, each: int, data: st.DataObject) -> None:
    """Downloads, live shards and mixing are those of sets, however the steps are cut."""
    sizes = data.draw(shards_of(plan.order.num_samples))
    first = start_of(plan)[0]
    epochs = [first, first + 1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LOOK", data.draw(st.sampled_from([1, 256, 2**18])))
        found = ip.traffic(plan, sizes, ranks_per_node=each, epochs=epochs)
    for i, epoch in enumerate(epochs):
        steps = [where for of, *where in steps_of(plan, epoch + 1) if of == epoch]
        all_ranks = range(plan.world_size or 0)
        counts = [len(set(read_in(plan, sizes, epoch, *step, all_ranks))) for step in steps]
        mean = sum(counts) / max(len(counts), 1)
        assert (min(counts, default=0), mean, max(counts, default=0)) == found.different[i]
        assert len(steps) == found.num_steps[i]
        for node, ranks in enumerate(nodes_of(plan, each)):
            of_steps = [set(read_in(plan, sizes, epoch, *step, ranks)) for step in steps]
            needed = set().union(*of_steps)
            assert sum(sizes[shard] for shard in needed) == found.downloads[i, node]
            until = [set().union(*of_steps[: t + 1]) for t in range(len(steps))]
            live = [until[t] & set().union(*of_steps[t:]) for t in range(len(steps))]
            assert max(map(len, live), default=0) == found.live[i, node]
            most = max((sum(sizes[shard] for shard in each) for each in live), default=0)
            assert most == found.live_samples[i, node]
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    n = plan.order.num_samples
    assert found.times == tuple(sum(row) / n for row in found.downloads.tolist())


def test_samples_that_a_wrong_order_reads_stay_inside() -> None:
    """Those that no shard holds are noted with the first and the last shard, and nowhere else."""
    table = guide.table_of(ip.Sequential(4), [3, 0, 1, 0])
    wrong, ends = np.array([-(2**63), -1, 4, 2**62]), np.array([4])
    room = np.zeros((5, 99), np.int64)
    kernels.shard_reads.note_reads(
        *table, wrong, ends, 0, 0, room[0, 50:54], *(each[50:54] for each in room[1:])
    )
    assert [2, 2] == room[4, 50:52].tolist()
    small = np.zeros((3, 99), np.int32)
    given = (each[50:54] for each in small)
    kernels.shard_reads.note_nodes(*table, wrong, ends, 0, 1, *given, room[0, 60:61])
    assert [1, 0, 0, 1] == small[0, 50:54].tolist()
    for each in (*room, *small):
        assert not each[:50].any()
        assert not each[61:].any()
