"""Weighted orders: weights that change on the way, lie in files, and whose tables are shared."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import weighted_tables
from indexplan.stores import tables
from tests.support.examples import examples
from tests.support.in_a_fork import counted_in_a_fork
from tests.support.reweighted import reweighted

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


def test_equal_orders_share_one_table() -> None:
    """As long as one of them lives."""
    one, other = (ip.Weighted([3, 1, 4, 1, 5], seed=9) for _ in range(2))
    one.take(0, 0)
    assert one._table(0) is other._table(5)
    assert reweighted(one, 2, [1] * 5)._table(1) is one._table(0)
    assert ip.Weighted([3, 1, 4, 1, 5], seed=8)._table(0) is not one._table(0)
    keys = set(tables.TABLES)
    del one, other
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


@pytest.mark.slow
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


N = 12


def drawn(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return weights by number; equal numbers, equal weights."""
    return np.random.default_rng(number).random(N)


def order_of(rows: list[tuple[int, int]], **options: Any) -> ip.Weighted:
    """Return the order of some rows, each an epoch and the number of its weights."""
    return ip.Weighted([(epoch, drawn(number)) for epoch, number in rows], **options)


def rest(plan: ip.Plan, epoch: int, step: int) -> list[list[int]]:
    """Return what a plan reads from a step on, in two epochs."""
    steps = [(epoch, each) for each in range(step, plan.steps(epoch).stop)]
    steps += [(epoch + 1, each) for each in plan.steps(epoch + 1)]
    return [plan.batch(e, step=s, rank=r).tolist() for e, s in steps for r in range(2)]


ROWS = st.tuples(st.lists(st.integers(1, 9), max_size=6, unique=True), st.integers(0, 2**16))


def rows_of(drawn_rows: tuple[list[int], int]) -> list[tuple[int, int]]:
    """Return rows of weights that begin at some epochs, by the digits of a number."""
    epochs, digits = drawn_rows
    return [(epoch, digits // 4**i % 4) for i, epoch in enumerate([0, *sorted(epochs)])]


@examples(150)
@given(theirs=ROWS, own=ROWS, same=st.booleans(), epoch=st.integers(0, 10), step=st.integers(0, 2))
def test_a_run_continues_if_its_weights_were_those_of_each_epoch_so_far(
    theirs: tuple[list[int], int], own: tuple[list[int], int], same: bool, epoch: int, step: int
) -> None:
    """Whatever rows say so; what comes later is the plan's. Listed epoch by epoch."""
    rows, mine = rows_of(theirs), rows_of(own)
    begun = epoch + (step > 0)
    if same:  # as the run had them, and perhaps a row too many that changes nothing
        mine = [row for row in rows if row[0] < begun] + [row for row in mine if row[0] >= begun]
        mine = sorted({1: [n for at, n in rows if at <= 1][-1], **dict(mine)}.items())
    there, here = ([[n for at, n in r if at <= e][-1] for e in range(12)] for r in (rows, mine))
    whole = ip.Plan(order_of(rows, seed=5), world_size=2, batch_size=2)
    fresh = whole.replace(order=order_of(mine, seed=5))
    cursor = ip.Cursor.from_json(whole.cursor(epoch, step=step).to_json())
    if here[:begun] != there[:begun]:
        with pytest.raises(ip.IndexPlanError, match=r"a cursor must .*with sha256"):
            fresh.resume(cursor)
        return
    resumed = fresh.resume(cursor)
    read = rest(resumed, epoch, step)
    assert read == rest(fresh, epoch, 0)[-len(read) :]
    if here == there:
        assert read == rest(whole, epoch, step)


def test_the_files_of_all_weights_so_far_are_enough(tmp_path: Path) -> None:
    """The cure of the error: arrays of epochs that are over are mapped from their files."""
    rows = [(each, each) for each in range(5)]
    whole = ip.Plan(order_of(rows), world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    with pytest.raises(ip.IndexPlanError) as caught:
        whole.replace(order=ip.Weighted(drawn(4))).resume(cursor)
    assert "pass the weights of all epochs so far, or their files" in str(caught.value)
    for epoch, number in rows:
        np.save(tmp_path / f"{epoch}.npy", drawn(number))
    mapped = ip.Weighted([(epoch, tmp_path / f"{epoch}.npy") for epoch, _ in rows])
    assert whole.replace(order=mapped).resume(cursor) == whole.resume(cursor)


def test_new_weights_may_begin_where_the_error_says() -> None:
    """In the middle of an epoch its weights stay; the refusal names the first epoch for others."""
    order = order_of([(0, 0), (3, 3)])
    whole = ip.Plan(order, world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    with pytest.raises(ip.IndexPlanError, match="and new ones from epoch 5 on"):
        whole.replace(order=reweighted(order, 4, drawn(4))).resume(cursor)
    later = whole.replace(order=reweighted(order, 5, drawn(4))).resume(cursor)
    assert later.indices(4, rank=0).tolist() == whole.resume(cursor).indices(4, rank=0).tolist()
