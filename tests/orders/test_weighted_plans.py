"""Weighted orders: weights that change on the way, lie in files, and whose tables are shared."""

from __future__ import annotations

import gc
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import indexplan as ip
from indexplan.kernels import weighted_tables
from indexplan.stores import tables
from tests.support.in_a_fork import counted_in_a_fork
from tests.support.reweighted import reweighted

loads = pickle.loads  # of our own


FIELDS = {"epoch_size": 30, "seed": 5, "max_repeats": 9}
FIRST, SECOND, THIRD = [1.0] * 10, [0.0, *range(1, 10)], [0.5] * 9 + [2.0]


def test_what_else_may_not_change() -> None:
    """Another seed, size, cap, number of samples or kind of order is another run."""
    order = ip.Weighted(FIRST, **FIELDS)
    for other in (
        ip.Weighted(FIRST, **{**FIELDS, "seed": 6}),
        ip.Weighted(FIRST, **{**FIELDS, "epoch_size": 31}),
        ip.Weighted(FIRST, **{**FIELDS, "max_repeats": 8}),
        ip.Weighted([1.0] * 11, **FIELDS),
        ip.Shuffle(10, seed=5),
    ):
        assert not order.continues(other.to_dict(), 0, 0)
    assert order.continues(reweighted(order, 3, SECOND).to_dict(), 3, 0)
    assert not order.continues(reweighted(order, 3, SECOND).to_dict(), 3, 1)
    assert order.continues(ip.Weighted(SECOND, **FIELDS).to_dict(), 0, 0)
    saved = order.to_dict()
    for weights in (None, 7, [], [7], [[0]], [[0, 7]], [["0", saved["weights"]]], {"length": 10}):
        assert not order.continues({**saved, "weights": weights}, 0, 0)
    assert not order.continues({"algorithm": "weighted-v1"}, 0, 0)


def test_updates_follow_each_other() -> None:
    """Each epoch is read by the weights that took effect last, of which two tables are kept."""
    listed = [(0, FIRST), (3, SECOND), (7, THIRD)]
    order = ip.Weighted(listed, **FIELDS)
    assert reweighted(reweighted(ip.Weighted(FIRST, **FIELDS), 3, SECOND), 7, THIRD) == order
    assert ip.Weighted(listed[:1], **FIELDS) == ip.Weighted(FIRST, **FIELDS)
    alone = [ip.Weighted(weights, **FIELDS) for _, weights in listed]
    for epoch, expected in [(0, 0), (2, 0), (3, 1), (6, 1), (7, 2), (2**32 - 1, 2), (3, 1), (0, 0)]:
        assert alone[expected].take(epoch, 0, 30).tolist() == order.take(epoch, 0, 30).tolist()
    assert 2 == len(vars(order)["_latest_table_of"])  # of three that were read


def test_promises() -> None:
    """How often a sample is read, as far as the fields tell."""
    assert "any" == ip.Weighted(FIRST).traits.reads
    assert "any" == ip.Weighted(FIRST, max_repeats=2).traits.reads
    assert "at most once" == ip.Weighted(FIRST, 9, max_repeats=1).traits.reads
    assert "once" == ip.Weighted(FIRST, max_repeats=1).traits.reads


def test_weights_change_after_a_plan_directory(tmp_path: Path) -> None:
    """A run that read stored epochs continues under the weights of later ones."""
    order = ip.Weighted([(0, FIRST), (1, SECOND)], **FIELDS)
    plan = ip.Plan(order, world_size=2, batch_size=3)
    ip.save(plan, tmp_path / "a.plan", epochs=range(1))
    loaded = ip.load(tmp_path / "a.plan")
    cursor = loaded.cursor(0, step=2)
    assert loaded.replace(order=reweighted(order, 2, THIRD)).resume(cursor).steps(0).start == 2


def test_equal_orders_share_one_table() -> None:
    """As long as one of them lives; it is never pickled, and no part of what an order is."""
    one, other = (ip.Weighted([3, 1, 4, 1, 5], seed=9) for _ in range(2))
    one.take(0, 0)
    assert one._table(0) is other._table(5)
    assert reweighted(one, 2, [1] * 5)._table(1) is one._table(0)
    assert ip.Weighted([3, 1, 4, 1, 5], seed=8)._table(0) is not one._table(0)
    data = pickle.dumps(one)
    assert b"_tables" not in data
    again = loads(data)
    assert again == one
    keys = set(tables.TABLES)
    del one, other, again
    gc.collect()
    assert keys - set(tables.TABLES)


SLOW = """
from indexplan.kernels import weighted_tables

built = weighted_tables.built

def slow(*arguments):
    pause()
    return built(*arguments)

weighted_tables.built = slow
order = ip.Weighted([1, 2, 3], epoch_size=60)
"""


def test_a_fork_waits_for_a_table_that_is_built() -> None:
    """The child of a process that builds in another thread has the table, and no closed lock."""
    assert 30 == counted_in_a_fork(SLOW, 2)


def test_threads_build_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that ask at once wait for the one that builds."""
    number, built = [], weighted_tables.built
    monkeypatch.setattr(weighted_tables, "built", lambda *a: number.append(1) or built(*a))
    order = ip.Weighted([2, 7, 1, 8], seed=3)
    start = threading.Barrier(4)

    def ask() -> None:
        start.wait()
        order.take(0, 0)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [1] == number


def test_an_update_reads_no_weights_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that changes its weights often checks each array once, not at every later change."""
    read: list[int] = []
    array = vars(ip.Column)["array"].fget

    def counted(column: ip.Column) -> object:
        read.append(len(column))
        return array(column)

    monkeypatch.setattr(ip.Column, "array", property(counted))
    order = ip.Weighted(np.ones(50))
    for epoch in range(1, 40):
        order = reweighted(order, epoch, np.arange(1.0, 51.0) + epoch)
    assert len(read) <= 3 * 40
    cursor = ip.Plan(order, world_size=1, batch_size=2).cursor(50, step=3)
    assert cursor.order == order.to_dict()
    assert ip.Cursor.from_json(cursor.to_json()) == cursor
    bad = np.ones(50)
    bad[7] = -1
    for _ in range(2):  # what failed once fails again
        with pytest.raises(ip.IndexPlanError, match="weight of sample 7"):
            reweighted(order, 40, ip.Column(bad))
