"""distinct-v1: known answers, the oracle, and that no two samples of a label meet."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.distinct import BLOCK, _listed
from tests.support import distinct_oracle
from tests.support.strategies import seeds

GOLDEN = Path(__file__).parents[1] / "golden" / "distinct_v1.json"
CASES = json.loads(GOLDEN.read_text())["cases"]


@st.composite
def orders(draw: st.DrawFn) -> ip.Distinct:
    """Draw labels, some of them often, and a batch size that they allow."""
    kinds = draw(st.sampled_from([3, 20, 10**6, 2**63 - 1]))
    labels = draw(st.lists(st.integers(-kinds, kinds), min_size=1, max_size=60))
    most = len(labels) // max(Counter(labels).values())
    return ip.Distinct(labels, draw(st.integers(1, most)), seed=draw(seeds))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['labels'])}")
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change, of the order and of the oracle."""
    spec = (case["labels"], case["batch_size"], case["seed"])
    order = ip.Distinct(*spec)
    assert case["reads"] == order.take(case["epoch"], 0, order.num_units(0)).tolist()
    assert case["reads"] == distinct_oracle.read(*spec, case["epoch"])


@given(orders(), st.sampled_from([0, 1, 2, 17, 2**32 - 1]))
def test_the_oracle_and_the_law(order: ip.Distinct, epoch: int) -> None:
    """Each sample at most once, no label twice in a batch, fewer than a batch are left out."""
    labels, size = order.labels.array.tolist(), order.batch_size
    row = order.take(epoch, 0, order.num_units(epoch)).tolist()
    assert row == distinct_oracle.read(labels, size, order.seed, epoch)
    assert len(row) == len(set(row)) == len(labels) // size * size
    for start in range(0, len(row), size):
        assert len({labels[i] for i in row[start : start + size]}) == size
    expected = [row.index(i) if i in row else -1 for i in range(len(labels))]
    assert expected == order.locate(epoch, range(len(labels))).tolist()


@given(orders(), st.data())
def test_a_run_keeps_the_law(order: ip.Distinct, data: st.DataObject) -> None:
    """Ranks share a global batch or a part of it, also after resumes on other ranks."""
    labels, row = order.labels.array.tolist(), []
    sizes = [size for size in range(1, order.batch_size + 1) if order.batch_size % size == 0]
    remainder = data.draw(st.sampled_from(["spread", "drop", "pad", "carry"]))
    plan = ip.Plan(order, world_size=1, global_batch_size=sizes[-1], remainder=remainder)
    cursor = plan.cursor(0, step=0)
    for _ in range(3):
        world, size = data.draw(st.integers(1, 4)), data.draw(st.sampled_from(sizes))
        other = plan.replace(world_size=world, global_batch_size=size)
        if cursor.position % size:
            with pytest.raises(ip.IndexPlanError, match="resumed at a multiple"):
                other.resume(cursor)
            continue
        plan, epoch = other.resume(cursor), cursor.epoch
        steps = plan.steps(epoch)
        stop = data.draw(st.integers(steps.start, steps.stop))
        for step in range(steps.start, stop):
            parts = [plan.batch(epoch, step=step, rank=rank) for rank in range(world)]
            batch = np.concatenate(parts).tolist()
            assert len({labels[i] for i in batch}) == len(batch) == size
            row += batch
        cursor = plan.cursor(epoch, step=stop)
    read = [order.take(epoch, 0, order.num_units(epoch)).tolist() for epoch in range(3)]
    assert sum(read, [])[: len(row)] == row


def test_what_is_left_out_changes() -> None:
    """Over as many epochs as there are labels, each label is once the first that is read."""
    order = ip.Distinct(range(10), 4, seed=3)
    left_out = Counter[int]()
    for epoch in range(200):
        left_out.update({*range(10)} - {*order.take(epoch, 0, 8).tolist()})
    assert min(left_out.values()) > 20
    assert max(left_out.values()) < 60


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
    tracemalloc.start()
    try:
        _listed(labels)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 16 * len(labels) + 80 * BLOCK
