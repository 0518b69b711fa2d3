"""Orders by class in plans: resumed, saved, nested; and the tables of members that they share."""

from __future__ import annotations

import gc
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.cli.written import order_as_written
from indexplan.orders import classes as shared
from indexplan.stores import tables
from indexplan.testing import check_order
from tests.orders.test_classes import LABELS, balanced, batches
from tests.orders.test_protocol import units
from tests.support.examples import examples
from tests.support.in_a_fork import counted_in_a_fork
from tests.support.strategies import cursors, fresh_plans, partitions, plans, steps_of

ORDERS = balanced().filter(lambda order: order.num_units(0) <= 90) | batches()


@examples(30)
@given(plans(ORDERS))
def test_plans_keep_the_laws(plan: ip.Plan) -> None:
    """Under all remainders, fresh and resumed under another partition; saved as JSON."""
    assert ip.verify(plan).ok
    again = ip.Plan.from_json(plan.to_json(), columns=list(plan.order.columns.values()))
    assert (again, again.order.fingerprint) == (plan, plan.order.fingerprint)


@examples(30)
@given(fresh_plans(ORDERS, "spread"), st.data())
def test_a_run_that_goes_on_under_another_world(plan: ip.Plan, data: st.DataObject) -> None:
    """What was read before the cursor, and after it by others, is the epoch."""
    cursor = data.draw(cursors(plan, epochs=1))
    fields = data.draw(partitions(plan.order, plan.sub_epochs, "spread"))
    after = ip.Plan(plan.order, sub_epochs=plan.sub_epochs, **fields).resume(cursor)
    stopped = (cursor.epoch, cursor.sub_epoch, cursor.step)
    steps = [(plan, step) for step in steps_of(plan, 1) if step < stopped]
    steps += [(after, step) for step in steps_of(after, 1) if step[0] == 0]
    read: Counter[int] = Counter()
    for run, (*pair, step) in steps:
        for rank in range(run.world_size):
            read.update(run.batch(*pair, step=step, rank=rank).tolist())
    assert Counter(plan.order.take(0, 0, plan.order.num_units(0)).tolist()) == read


@pytest.mark.parametrize(
    "order",
    [
        ip.ClassBalanced(LABELS, seed=2),
        ip.ClassBalanced(LABELS, 500, [1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]),
        ip.ClassBatches([i % 7 for i in range(60)], 3, 4),
        ip.ClassBatches(LABELS, 5, 8, 20, short="repeat"),
        ip.ClassBatches(LABELS, 5, 12, 20, short="leave_out"),
        ip.Epochs(ip.ClassBalanced(LABELS, 90), 40),
        ip.Repeat(ip.ClassBatches([0, 1, 2] * 20, 2, 4, 6), 2),
        ip.Subset(ip.ClassBalanced([0, 0, 0, 1], 6), [3, 5, 6, 8], 10),
        ip.Mixture({"a": ip.ClassBalanced([0, 0, 0, 1], 6), "b": ip.Shuffle(9)}, {"a": 1, "b": 2}),
    ],
    ids=lambda order: order.algorithm,
)
def test_the_kit(order: ip.Order) -> None:
    """Everything that plans, files and resuming rely on, alone and under layers."""
    assert check_order(order, fresh_process=False).ok


def test_labels_of_a_file(tmp_path: Path) -> None:
    """They are one column wherever they lie; a plan directory has all that it needs."""
    np.save(tmp_path / "labels.npy", np.array(LABELS, np.uint32))
    order = ip.ClassBalanced(
        tmp_path / "labels.npy", weights={label: 1 + label for label in range(13)}
    )
    assert order == ip.ClassBalanced(LABELS, weights=range(1, 14))
    again = pickle.loads(pickle.dumps(order))  # noqa: S301 (our own)
    assert again.labels.path == str(tmp_path / "labels.npy")
    assert np.array_equal(again.take(3, 0, 203), order.take(3, 0, 203))
    plan = ip.Plan(order, world_size=2, batch_size=4)
    ip.save(plan, tmp_path / "a.plan", epochs=range(2))
    stored = ip.load(tmp_path / "a.plan")
    for epoch in (1, 7):  # stored, and computed from the columns in the directory
        assert np.array_equal(stored.order.take(epoch, 0, 203), order.take(epoch, 0, 203))
    assert ip.verify(stored).ok


def test_orders_from_text(tmp_path: Path) -> None:
    """The command line names the file of the labels, and the other fields."""
    np.save(tmp_path / "labels.npy", LABELS)
    labels = str(tmp_path / "labels.npy")
    text = f"ClassBalanced({labels!r}, epoch_size=90, seed=4)"
    assert ip.ClassBalanced(LABELS, 90, seed=4) == order_as_written(text)
    text = f"ClassBatches({labels!r}, classes=5, per_class=8, short='repeat')"
    assert ip.ClassBatches(LABELS, 5, 8, short="repeat") == order_as_written(text)


def test_batches_of_a_directory(tmp_path: Path) -> None:
    """Bins are stored with their offsets."""
    plan = ip.Plan(ip.ClassBatches(LABELS, 4, 3, 12, short="repeat"), world_size=2, batch_size=1)
    ip.save(plan, tmp_path / "a.plan", epochs=range(2))
    stored = ip.load(tmp_path / "a.plan")
    assert units(stored.order, 1) == units(plan.order, 1)
    assert ip.verify(stored).ok


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


SLOW = """
from indexplan.orders import classes

built = classes._sorted

def slow(labels):
    pause()
    return built(labels)

classes._sorted = slow
order = ip.ClassBalanced([0, 1, 1, 1], 60)
"""


def test_a_fork_waits_for_a_table_that_is_built() -> None:
    """The child of a process that builds in another thread has the table, and no closed lock."""
    assert 30 == counted_in_a_fork(SLOW, 0)


def test_labels_that_have_changed(tmp_path: Path) -> None:
    """A file that was written again after it was hashed is refused."""
    np.save(tmp_path / "a.npy", np.arange(9) % 3)
    labels = ip.Column(tmp_path / "a.npy")
    labels.to_dict()
    np.save(tmp_path / "a.npy", np.arange(9) % 2)
    with pytest.raises(ip.IndexPlanError, match="open it again once it is complete"):
        ip.ClassBalanced(labels).take(0, 0)


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
