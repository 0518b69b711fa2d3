"""Orders for global batches: of one group or of different labels, on all ranks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.distinct import BLOCK, _listed
from tests.laws.test_pathological import peak
from tests.support.strategies import seeds


@st.composite
def grouped(draw: st.DrawFn) -> ip.Flat:
    """Draw groups, each of at least one bin, most with samples left over."""
    size = draw(st.integers(1, 7))
    counts = draw(st.lists(st.integers(size, 3 * size), min_size=1, max_size=4))
    groups = draw(st.permutations([g for g, count in enumerate(counts) for _ in range(count)]))
    return ip.Flat(ip.Grouped(groups, size, seed=draw(seeds)))


@st.composite
def mixed(draw: st.DrawFn) -> ip.Flat:
    """Draw sources of whole batches, mixed by weight."""
    size, sources = draw(st.integers(1, 7)), {}
    for seed in range(draw(st.integers(1, 4))):
        order = ip.Shuffle(draw(st.integers(1, 20)), seed=seed)
        sources[str(seed)] = ip.Batched(ip.Epochs(order, size * draw(st.integers(1, 4))), size)
    weights = {name: draw(st.integers(1, 5)) for name in sources}
    return ip.Flat(ip.Mixture(sources, weights, seed=draw(seeds)))


@st.composite
def distinct(draw: st.DrawFn) -> ip.Distinct:
    """Draw labels, some of them often, and a batch size that they allow."""
    kinds = draw(st.sampled_from([3, 20, 10**6, 2**63 - 1]))
    labels = draw(st.lists(st.integers(-kinds, kinds), min_size=1, max_size=60))
    most = len(labels) // max(Counter(labels).values())
    return ip.Distinct(labels, draw(st.integers(1, most)), seed=draw(seeds))


def keeps_its_law(order: Any, batch: list[int], size: int) -> bool:
    """Return whether a global batch, or a part of it, is of one group, or of different labels."""
    if isinstance(order, ip.Distinct):
        return len(set(order.labels.array[batch].tolist())) == len(batch) == size
    return len({*order.group_of(batch).tolist()}) == 1


@given(grouped() | mixed() | distinct(), st.data())
def test_each_global_batch_keeps_its_law(order: Any, data: st.DataObject) -> None:
    """In six epochs, on any ranks, in whole batches or parts, and after a resume at any step."""
    size = order.ip_global_batch
    parts = [part for part in range(1, size + 1) if size % part == 0]
    remainder = data.draw(st.sampled_from(["spread", "drop", "pad", "carry"]))
    plan = ip.Plan(order, world_size=1, global_batch_size=size, remainder=remainder)

    def read(steps: range) -> list[int]:
        """Read some steps on all ranks."""
        row: list[int] = []
        for step in steps:
            ranks = range(plan.world_size or 0)
            parts = [plan.batch(epoch, step=step, rank=rank) for rank in ranks]
            batch = np.concatenate(parts).tolist()
            assert keeps_its_law(order, batch, plan.global_batch_size)
            row += batch
        return row

    for epoch in range(6):
        whole = plan.replace(world_size=1, global_batch_size=size)
        cut = data.draw(st.integers(0, whole.steps(epoch).stop))
        plan, cursor = whole, whole.cursor(epoch, step=cut)
        row = read(plan.steps(epoch)[:cut])
        world, part = data.draw(st.integers(1, 4)), data.draw(st.sampled_from(parts))
        plan = plan.replace(world_size=world, global_batch_size=part).resume(cursor)
        row += read(plan.steps(epoch)) if cursor.epoch == epoch else []
        assert row == order.take(epoch, 0, order.num_units(epoch)).tolist()


@given(grouped())
def test_shares_are_those_of_what_is_read(order: ip.Flat) -> None:
    """Samples that an epoch leaves out count for no group."""
    row = order.take(1, 0, order.num_units(1))
    counts = np.bincount(order.group_of(row), minlength=len(order.group_names))
    assert np.allclose(counts / len(row), order.group_shares(1, 0, len(row)))


@pytest.mark.parametrize(
    ("order", "num_units"),
    [(ip.Flat(ip.Grouped([0] * 10 + [1] * 9, 4, seed=1)), 16), (ip.Distinct(range(10), 4, 3), 8)],
)
def test_other_samples_are_left_out_in_each_epoch(order: ip.Order, num_units: int) -> None:
    """Each sample that fills no batch is left out as often as another."""
    samples, left_out = {*range(order.num_samples)}, Counter[int]()
    for epoch in range(200):
        left_out.update(samples - {*order.take(epoch, 0, num_units).tolist()})
    assert {*left_out} == samples
    assert sum(left_out.values()) == 200 * (len(samples) - num_units)
    assert max(left_out.values()) < 2 * sum(left_out.values()) / len(samples)


INSIDE: dict[str, ip.Order] = {
    "groups": ip.Grouped([i % 3 for i in range(50)], 4, seed=1),
    "lengths": ip.LengthGrouped(list(range(1, 50)), 6, num_buckets=3, seed=1),
    "classes": ip.ClassBatches([i % 5 for i in range(60)], 2, 3, seed=1),
    "distinct": ip.Batched(ip.Distinct([i // 2 for i in range(48)], 12, seed=1), 6),
    "copies": ip.Repeat(ip.Batched(ip.Shuffle(24), 6), 2),
    "epochs": ip.Epochs(ip.Batched(ip.Shuffle(24), 6), 3),
    "nested": ip.Batched(ip.Flat(ip.Grouped([i % 3 for i in range(50)], 4, seed=1)), 2),
}


def test_copies_are_told_apart() -> None:
    """A batch that is read twice is augmented in two ways."""
    order = ip.Flat(INSIDE["copies"])
    plan = ip.Plan(order, world_size=2, batch_size=3)
    copies = [plan.units(0, step=step, rank=1).copies.tolist() for step in range(4)]
    assert copies == [[0] * 3, [1] * 3, [0] * 3, [1] * 3]


def test_batches_grow_only_where_one_ends() -> None:
    """From steps of 4 to those of 12, a run goes on at every third of them, and nowhere else."""
    order = ip.Flat(ip.Batched(ip.Shuffle(48), 12))
    small = ip.Plan(order, world_size=2, batch_size=2)
    for step in range(12):
        cursor, large = small.cursor(0, step=step), small.replace(batch_size=6)
        if step % 3:
            with pytest.raises(ip.IndexPlanError, match="resumed at a multiple"):
                large.resume(cursor)
        else:
            assert step // 3 == 4 - len(large.resume(cursor).steps(0))


@pytest.mark.parametrize("step", [0, 1, 3, 6, 17, 29])
@pytest.mark.parametrize("grows", [False, True])
def test_weights_change_at_a_cursor(grows: bool, step: int) -> None:
    """From the next bin on, whatever part of one was read; all before stays as it was."""
    each = {name: ip.Batched(ip.Shuffle(60, seed=seed), 12) for seed, name in enumerate("ab")}
    flat = ip.Flat(ip.Mixture(each, {"a": 2, "b": 1}))
    plan = ip.Plan(flat, world_size=2, global_batch_size=4)
    cursor = plan.cursor(0, step=step)
    new = {"c": ip.Batched(ip.Shuffle(24, seed=9), 12)} if grows else None
    weights = {"a": 0, "b": 0, "c": 1} if grows else {"a": 0, "b": 1}
    mixture = flat.order
    assert isinstance(mixture, ip.Mixture)
    other = mixture.with_phase(cursor, weights, sources=new)
    assert other.weights[-1][0] == -(-step // 3)
    rest = plan.replace(order=ip.Flat(other), world_size=3).resume(cursor)
    row = [rest.batch(0, step=at, rank=rank) for at in rest.steps(0) for rank in range(3)]
    read, begun = np.concatenate(row), -step % 3 * 4  # samples of the bin that has begun
    assert read[:begun].tolist() == flat.take(0, step * 4, step * 4 + begun).tolist()
    assert {*rest.order.group_of(read[begun:]).tolist()} <= {2 if grows else 1}


def test_samples_are_left_out_from_an_epoch_on() -> None:
    """By an order of those that stay, where `Without` would cut global batches."""
    labels, kept = np.arange(60) // 2, np.delete(np.arange(60), [3, 40])
    before = ip.Plan(ip.Distinct(labels, 12), world_size=2, global_batch_size=12)
    order = ip.Subset(ip.Distinct(labels[kept], 12), kept, 60)
    after = before.replace(order=order)
    after = after.resume(after.cursor(3, step=0))
    for step in after.steps(3):
        batch = np.concatenate([after.batch(3, step=step, rank=rank) for rank in range(2)])
        assert not {3, 40} & {*batch.tolist()}
        assert len({*labels[batch].tolist()}) == 12


def test_wide_labels_and_many_samples() -> None:
    """Labels past 2**32 apart sort like others, and a batch of 1e5 samples is both ways its own."""
    labels = np.random.default_rng(0).integers(-(2**62), 2**62, 100_000) // 3
    labels[::3] = labels[0 : len(labels[::3])]
    order = ip.Distinct(labels, 300, seed=1)
    row = order.take(5, 0, order.num_units(5))
    assert all(len(set(labels[batch])) == 300 for batch in row.reshape(-1, 300))
    assert np.array_equal(np.arange(len(row)), order.locate(5, row))


@pytest.mark.parametrize("kinds", [2**21, 4000])
def test_what_building_takes(kinds: int) -> None:
    """At most 16 bytes a sample, and what a block of samples takes: each label once, or often."""
    labels = ip.Column(np.random.default_rng(0).permutation(2**21).astype(np.uint32) % kinds)
    ip.Distinct(labels.array[: 2**17], 32).num_units(0)  # what is imported and compiled
    _, most = peak(lambda: _listed(labels))
    assert most < 16 * len(labels) + 80 * BLOCK
