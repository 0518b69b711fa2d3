"""Orders by class: known answers, oracles, laws and chance."""

from __future__ import annotations

import gc
import math
from collections import Counter
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import sorting
from indexplan.orders import classes as module
from indexplan.stores import tables
from tests.golden.lines import known
from tests.support.strategies import seeds

GOLDEN = known("classes_v1")
LABELS = GOLDEN["labels"]

rows_of_labels = st.one_of(
    st.lists(st.integers(0, 4), min_size=1, max_size=60),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20),
    st.lists(st.sampled_from([0, 0, 0, 0, 1, 1, 7, 2**40]), min_size=1, max_size=60),
)


@st.composite
def balanced(draw: st.DrawFn) -> ip.ClassBalanced:
    """Draw an order of equal or weighted classes."""
    labels, weights = draw(rows_of_labels), None
    num = len(set(labels))
    size = draw(st.none() | st.integers(1, 90))
    if draw(st.booleans()):
        some = st.sampled_from([0.0, 1.0, 2.5, 0.2, 1 / 3])
        weights = draw(st.lists(some, min_size=num, max_size=num))
        weights[0] = weights[0] or 1.0
        enough = math.ceil(sum(weights) / min(filter(None, weights)) + 1e-9)
        size = draw(st.integers(enough, enough + 20))
    return ip.ClassBalanced(labels, size, weights, draw(seeds))


@st.composite
def batches(draw: st.DrawFn) -> ip.ClassBatches:
    """Draw an order of batches, with classes that are too small for one."""
    labels = draw(rows_of_labels)
    counts = sorted(Counter(labels).values())
    short = draw(st.sampled_from(["error", "repeat", "leave_out"]))
    most = {"error": counts[0], "repeat": 9, "leave_out": counts[-1]}[short]
    per_class = draw(st.integers(1, most))
    kept = len(counts) if short != "leave_out" else sum(each >= per_class for each in counts)
    size = draw(st.none() | st.integers(1, 40))
    return ip.ClassBatches(labels, draw(st.integers(1, kept)), per_class, size, draw(seeds), short)


@pytest.mark.parametrize("case", GOLDEN["class-balanced-v1"])
def test_known_answers_of_balanced(case: dict[str, Any]) -> None:
    """Bits that never change."""
    order = ip.ClassBalanced(LABELS, case["epoch_size"], case.get("weights"), case["seed"])
    assert case["indices"] == order.take(case["epoch"], case["positions"]).tolist()


@pytest.mark.parametrize("case", GOLDEN["class-batches-v1"])
def test_known_answers_of_batches(case: dict[str, Any]) -> None:
    """Bits that never change."""
    spec = (case["classes"], case["per_class"], 1000, case["seed"], case["short"])
    order = ip.ClassBatches(LABELS, *spec)
    for number, unit in zip(case["numbers"], case["units"], strict=True):
        assert unit == order.take(*divmod(number, 1000)).tolist()


@given(rows_of_labels)
def test_members_of_classes(labels: list[int]) -> None:
    """They rise, class by class: sorted by NumPy, or counted once none are few."""
    expected = {
        label: [sample for sample, each in enumerate(labels) if each == label]
        for label in sorted(set(labels))
    }
    for few in (sorting.FEW, -1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sorting, "FEW", few)
            found = module._sorted(np.array(labels))
        assert list(expected) == found.labels.tolist()
        members = np.split(found.members, found.starts[1:])
        assert list(expected.values()) == [each.tolist() for each in members]
        assert [len(each) for each in expected.values()] == found.sizes.tolist()
        assert np.uint32 == found.members.dtype


def test_first_reads_after_a_seam() -> None:
    """An epoch may begin after a sample's read in a round, and the next round may leave it out."""
    order = ip.ClassBatches([0, 1] * 7, 2, 3, 5, seed=1)
    late = 0
    for epoch in range(40):
        row = order.take(epoch, 0, 5).tolist()
        first = [row.index(sample) // 6 if sample in row else -1 for sample in range(14)]
        assert first == order.locate(epoch, range(14)).tolist()
        late += max(first) >= 4  # two rounds of two tuples went by
    assert late


def test_huge_epochs() -> None:
    """Counts are closed forms, up to read 2**62 of the run, where the stream ends."""
    labels = [0] * 7 + [1] * 5 + [2] * 3
    order = ip.ClassBalanced(labels, 2**58, seed=1)
    row = order.take(14, [0, 2**57, 2**58 - 1])
    counts = order.count(14, range(15))
    assert 2**58 == sum(counts.tolist())
    assert 2 >= counts[:7].max() - counts[:7].min()
    assert order.locate(14, row[:1]).tolist() == [0]
    with pytest.raises(ip.IndexPlanError, match="epoch must be below 16, where the order's stream"):
        order.take(16, 0)
    most = 2**62 // 8
    units_of = ip.ClassBatches(labels, 2, 4, most, short="repeat")
    assert 8 == len(units_of.take(0, most - 1))
    counts = units_of.count(0, range(15))
    assert most * 8 == sum(counts.tolist())
    assert 2 >= counts[:7].max() - counts[:7].min()


def test_pairs_meet_by_chance() -> None:
    """Each pair of classes shares a batch as often as any other, and so do samples of a class.

    In a balanced row each class stands at each place, and after each other, equally often.
    """
    num, size, most = 13, 20, 3000
    order = ip.ClassBatches(np.arange(num * 4) % num, 4, 2, most, seed=1)
    classes = order.take(0, 0, most).reshape(most, 4, 2)[:, :, 0] % num
    order = ip.ClassBatches(np.arange(size * 2) // size, 2, 4, most, seed=1)
    members = order.take(0, 0, most).reshape(most * 2, 4)
    row = ip.ClassBalanced(np.arange(num * 3) % num, most * num, seed=1).take(0, 0, most * num)
    rows = (row.reshape(most, num) % num).tolist()
    events: list[tuple[int, Any]] = [  # of how many kinds, and which came
        *(
            (of * (of - 1) // 2, [pair for unit in own for pair in combinations(sorted(unit), 2)])
            for of, own in (
                (num, classes),
                (size, members[members[:, 0] < size]),
                (size, members[members[:, 0] >= size]),
            )
        ),
        (num * num, [pair for each in rows for pair in enumerate(each)]),
        (num * (num - 1), [pair for each in rows for pair in pairwise(each)]),
    ]
    for kinds, came in events:
        counts, expected = [*Counter(came).values()], len(came) / kinds
        assert len(counts) == kinds
        chi_square = sum((count - expected) ** 2 for count in counts) / expected
        assert 0.5 < chi_square / (kinds - 1) < 1.5


def test_classes_deal_by_themselves() -> None:
    """Classes of one size, in the same rounds, deal members of other ranks."""
    labels = np.arange(300) % 3
    read = ip.ClassBalanced(labels, seed=5).take(0, 0, 300)
    ranks = [read[labels[read] == label] // 3 for label in range(3)]
    assert all(np.count_nonzero(a == b) < 8 for a, b in combinations(ranks, 2))


def test_tables_are_shared() -> None:
    """Orders over equal labels have one table while one of them lives."""
    labels = np.arange(50_000) % 91
    one, other = ip.ClassBalanced(labels), ip.ClassBatches(labels.tolist(), 3, 4)
    one.take(0, 0, 9)
    assert one._table is other._table
    (key,) = [key for key in tables.TABLES if ip.Column(labels).identity["sha256"] in key]
    del one, other
    gc.collect()
    assert key not in tables.TABLES


def test_groups() -> None:
    """Groups are the classes that are read, named by their label."""
    order = ip.ClassBalanced([5, -1, 5, 5], 8, weights=[1, 3])
    assert (("-1", "5"), [1, 0, 1, 1]) == (order.group_names, order.group_of(range(4)).tolist())
    assert [0.25, 0.75] == order.group_shares(0, 1, 3).tolist()
    assert [0.5, 0.5] == ip.ClassBalanced([5, -1, 5, 5]).group_shares(2, 0, 4).tolist()
    some = ip.ClassBatches([5, -1, 5, 5, 7, 7], 2, 2, short="leave_out")
    assert (("5", "7"), [0, -1, 0, 0, 1, 1]) == (some.group_names, some.group_of(range(6)).tolist())
    assert [0.5, 0.5] == some.group_shares(0, 0, 1).tolist()
