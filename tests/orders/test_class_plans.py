"""Labels of orders by class: in files, as groups, and the tables of members that they share."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.orders import classes as shared
from indexplan.stores import tables


def test_tables_are_shared() -> None:
    """Orders over equal labels have one table while one of them lives, which no pickle holds."""
    labels = np.arange(50_000) % 91
    one, other = ip.ClassBalanced(labels), ip.ClassBatches(labels.tolist(), 3, 4)
    one.take(0, 0, 9)
    assert one._table is other._table
    column = ip.Column(labels)
    assert len(pickle.dumps(one)) < len(pickle.dumps(column)) + 1000
    (key,) = [key for key in tables.TABLES if column.identity["sha256"] in key]
    del one, other
    gc.collect()
    assert key not in tables.TABLES


@pytest.mark.parametrize("labels", [np.arange(5000) * 2**40 % 97 - 3, np.arange(5000)[::-1] % 7])
def test_tables(labels: Any) -> None:
    """Each class has its samples, rising, whether labels lie close together or not."""
    table = shared.classes_of(ip.Column(labels))
    for label, start, size in zip(table.labels, table.starts, table.sizes, strict=True):
        own = table.members[start : start + size]
        assert np.array_equal(np.flatnonzero(labels == label), own)
    assert table.labels.tolist() == sorted(set(labels.tolist()))
    every = np.arange(5000)
    numbers = table.numbers(labels)
    at = table.starts[numbers] + table.ranks(every, numbers)
    assert np.array_equal(table.members[at], every)
    assert [-1, -1] == table.numbers(np.array([-(2**50), 2**62])).tolist()


def test_groups() -> None:
    """Groups are the classes that are read, named by their label."""
    order = ip.ClassBalanced([5, -1, 5, 5], 8, weights=[1, 3])
    assert (("-1", "5"), [1, 0, 1, 1]) == (order.group_names, order.group_of(range(4)).tolist())
    assert [0.25, 0.75] == order.group_shares(0, 1, 3).tolist()
    assert [0.5, 0.5] == ip.ClassBalanced([5, -1, 5, 5]).group_shares(2, 0, 4).tolist()
    some = ip.ClassBatches([5, -1, 5, 5, 7, 7], 2, 2, short="leave_out")
    assert (("5", "7"), [0, -1, 0, 0, 1, 1]) == (some.group_names, some.group_of(range(6)).tolist())
    assert [0.5, 0.5] == some.group_shares(0, 0, 1).tolist()
