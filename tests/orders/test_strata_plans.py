"""Orders of bins by length and by group in plans: partitioned, resumed, saved, pickled, nested."""

from __future__ import annotations

import gc
import json
import os
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.stores.tables import TABLES
from indexplan.testing import check_order
from tests.orders.test_layers import layers
from tests.orders.test_protocol import units
from tests.support.examples import examples
from tests.support.lengths import binned, epoch_of, fields_of
from tests.support.strategies import cursors, fresh_plans, partitions, plans

loads = pickle.loads  # of our own

LENGTHS = [1 + i * i * 37 % 90 for i in range(300)]
ORDERS = [
    ip.LengthGrouped(LENGTHS, 4, num_buckets=9, seed=3),
    ip.TokenBudget(LENGTHS, 200, max_samples=12, multiple_of=4, num_buckets=9, seed=3),
    ip.Grouped([length % 7 * 5 for length in LENGTHS], {5 * i: 1 + i for i in range(9)}, seed=3),
    ip.Packed(LENGTHS, 200, max_samples=7, min_stratum=6, seed=3),
]
names = [order.algorithm for order in ORDERS]


@examples(20)
@given(plans(binned(30)))
def test_plans_keep_the_laws(plan: ip.Plan) -> None:
    """Fresh and resumed, under all remainders: verified, and the same from JSON with columns."""
    assert ip.verify(plan).ok
    again = ip.Plan.from_json(plan.to_json(), columns=list(plan.order.columns.values()))
    assert (again, again.order.stream_key) == (plan, plan.order.stream_key)
    assert units(plan.order, 1) == units(again.order, 1)


def bins_of(plan: ip.Plan, epoch: int, stop: ip.Cursor | None = None) -> list[tuple[int, ...]]:
    """Return the bins that ranks read of an epoch, up to a cursor; padding is left out."""
    read = []
    for sub_epoch in range(plan.start.sub_epoch if plan._resumed else 0, plan.sub_epochs):
        counts = set()
        for step in plan.steps(epoch, sub_epoch):
            if stop is not None and (sub_epoch, step) >= (stop.sub_epoch, stop.step):
                return read
            for rank in range(plan.world_size or 1):
                where = {"step": step, "rank": rank}
                batch = plan.batch(epoch, sub_epoch, **where)
                offsets = plan.units(epoch, sub_epoch, **where).offsets
                cut = [tuple(part.tolist()) for part in np.split(batch, offsets[1:-1])]
                read += cut[: plan.units(epoch, sub_epoch, **where).num_valid]
        for rank in range(plan.world_size or 1):
            counts.add(len(plan.batch_sizes(epoch, sub_epoch, rank=rank)))
        assert 1 == len(counts)  # L8: as many steps on all ranks
    return read


@examples(30)
@given(fresh_plans(binned(30), remainder="spread"), st.data())
def test_a_resume_with_other_ranks_reads_the_rest(plan: ip.Plan, data: st.DataObject) -> None:
    """L6 and L7: before and after a cursor, each bin of the oracle's epoch is read once, as is."""
    cursor = ip.Cursor.from_json(data.draw(cursors(plan, epochs=1)).to_json())
    fields = data.draw(partitions(plan.order, plan.sub_epochs, "spread"))
    rest = ip.Plan(plan.order, sub_epochs=plan.sub_epochs, **fields).resume(cursor)
    stopped = cursor.epoch == 0  # else the epoch was read to its end
    read = bins_of(plan, 0, cursor if stopped else None) + (bins_of(rest, 0) if stopped else [])
    order: Any = plan.order
    expected = epoch_of(order, 0)
    assert Counter(map(tuple, expected)) == Counter(read)


@examples(15)
@given(plans(layers(binned(20))))
def test_inside_layers(plan: ip.Plan) -> None:
    """Epochs, Repeat and Subset of such an order are orders as any."""
    assert ip.verify(plan).ok


@pytest.mark.parametrize(
    "order",
    [
        *ORDERS,
        ip.LengthGrouped([5], 3),
        ip.TokenBudget([7] * 40, 21, num_buckets=65536),
        ip.Grouped(np.arange(60) % 31, 1),
        ip.Packed([5], 5),
        ip.Packed(LENGTHS, 90),
        ip.Packed([7] * 40, 10**6, max_samples=3),
        ip.Epochs(ORDERS[0], 50),
        ip.Repeat(ORDERS[1], 2, 8),
        ip.Epochs(ip.Subset(ORDERS[2], range(300, 600), 600), 31),
    ],
    ids=lambda order: order.algorithm,
)
def test_the_kit(order: ip.Order) -> None:
    """Everything that plans, files and resuming rely on."""
    assert check_order(order, fresh_process=False).ok


@pytest.mark.parametrize("order", ORDERS, ids=names)
def test_many_bins_are_drawn_as_few_are(order: ip.Order) -> None:
    """Bins that are sorted by stratum, as many are, are what single ones are; lanes may be cut."""
    longer = {0: np.tile(LENGTHS, 30), 5: np.tile(LENGTHS, 30) % 7 * 5}
    fields = {**fields_of(order)}
    name = next(iter(fields))
    fields[name] = longer[5 if name == "groups" else 0]
    large: Any = type(order)(**fields)
    num = large.num_units(1)
    samples, offsets = large.take(1, 0, num), large.offsets(1, 0, num)
    assert list(range(9000)) == sorted(samples.tolist())
    for position in range(0, num, 37):
        expected = samples[offsets[position] : offsets[position + 1]]
        assert expected.tolist() == large.take(1, position).tolist()
    some = np.random.default_rng(1).integers(9000, size=3)
    every = large.locate(1, range(9000))
    assert every[some].tolist() == large.locate(1, some).tolist()
    assert every[samples].tolist() == np.repeat(np.arange(num), np.diff(offsets)).tolist()


def test_large_bins_are_drawn_few_at_a_time() -> None:
    """What a loop holds does not grow with its bins: the first draw is of one, the last of 64."""
    plan = ip.Plan(ip.Grouped(np.zeros(2**19, np.int64), 2**10), world_size=1, batch_size=1)
    drawn: list[Any] = [batch.base for batch in plan.batches(0, rank=0)]
    assert 2**10 == len(drawn[0])
    assert 2**16 == max(map(len, drawn))
    first = next(plan.batches(0, rank=0, units=True))
    assert 2**10 == len(first.samples.base)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ORDERS, ids=names)
def test_templates_are_shared_and_never_saved(order: Any) -> None:
    """Orders of one column share one, whatever their seeds; it is no part of what an order is."""
    fields = fields_of(order)
    one, other = type(order)(**fields), type(order)(**{**fields, "seed": 77})
    dict_before, pickled = one.to_dict(), len(pickle.dumps(one))
    assert one.take(0, 0).tolist() != one.take(1, 0).tolist()
    assert one._template is other._template is order._template
    assert (dict_before, pickled) == (one.to_dict(), len(pickle.dumps(one)))
    again = loads(pickle.dumps(one))
    assert again == one
    assert "_template" not in vars(again)
    assert units(one, 1) == units(again, 1)
    alone = type(order)(**{**fields, next(iter(fields)): [5, 10, 5, 15], "seed": 1})
    assert alone._template is not one._template
    for name, value in fields.items():  # whatever else differs, bins may be cut elsewhere
        if name not in ("seed", next(iter(fields))) and isinstance(value, int):
            other = type(order)(**{**fields, name: value + (4 if name == "max_samples" else 1)})
            assert other._template is not one._template
    held = len(TABLES)
    del alone
    gc.collect()
    assert len(TABLES) < held


@pytest.mark.parametrize("kind", [np.int16, np.int64, np.uint32, list], ids=lambda k: k.__name__)
def test_equal_lengths_are_one_order(kind: Any, tmp_path: Path) -> None:
    """Whatever they came in, in memory or in a file that is mapped and pickles to its path."""
    expected = ORDERS[1]
    given_ = list(LENGTHS) if kind is list else np.array(LENGTHS, kind)
    fields = {**fields_of(expected), "lengths": given_}
    order = ip.TokenBudget(**fields)
    assert (expected, expected.fingerprint) == (order, order.fingerprint)
    assert units(expected, 2) == units(order, 2)
    np.save(tmp_path / "a.npy", given_)
    filed = ip.TokenBudget(**{**fields, "lengths": tmp_path / "a.npy"})
    again = loads(pickle.dumps(filed))
    assert expected == filed == again
    assert len(pickle.dumps(filed)) < 1000
    assert units(expected, 2) == units(again, 2)
    assert again.locate(2, range(300)).tolist() == expected.locate(2, range(300)).tolist()


@pytest.mark.parametrize("order", ORDERS, ids=names)
def test_a_column_that_changes_in_its_file(order: Any, tmp_path: Path) -> None:
    """Who asks for what the column says is told; of a file that is gone it stays mapped."""
    name, *others = fields_of(order)
    path = tmp_path / "a.npy"
    np.save(path, getattr(order, name).array)
    fields = {each: fields_of(order)[each] for each in others}
    made = type(order)(path, **fields)
    taken, found = made.take(1, 0).tolist(), order.locate(1, range(300)).tolist()
    assert found == made.locate(1, range(300)).tolist()
    asked = [
        lambda: made.locate(1, 5),
        lambda: ip.Plan(made, global_batch_size=1).step_total(getattr(made, name), 0, step=0),
        *([lambda: made.group_of(5)] if name == "groups" else []),
    ]
    before = path.stat().st_mtime_ns
    column = np.load(path, mmap_mode="r+")
    column[:] = column[::-1].copy()
    column.flush()
    os.utime(path, ns=(before + 1, before + 1))  # clocks of files may be coarse
    for ask in asked:
        with pytest.raises(ip.IndexPlanError, match="got one that has changed"):
            ask()
    assert taken == made.take(1, 0).tolist()  # bins were cut before it changed
    np.save(path, getattr(order, name).array)
    again = type(order)(path, **fields)
    again.take(1, 0)
    path.unlink()
    assert found == again.locate(1, range(300)).tolist()


@pytest.mark.parametrize("order", ORDERS, ids=names)
def test_plan_directories(order: Any, tmp_path: Path) -> None:
    """A directory keeps the column, and answers for epochs stored and not stored."""
    plan = ip.Plan(order, world_size=3, batch_size=(2, 2))
    ip.save(plan, tmp_path / "a.plan", epochs=range(1), units_per_chunk=11)
    loaded = ip.load(tmp_path / "a.plan")
    assert plan == loaded
    assert ip.verify(loaded).ok
    for epoch in range(2):
        assert units(order, epoch) == units(loaded.order, epoch)
    assert 1 == len(list((tmp_path / "a.plan" / "columns").iterdir()))
    again = ip.Plan.from_json(plan.to_json(), columns=tmp_path / "a.plan" / "columns")
    assert units(order, 1) == units(again.order, 1)


def test_sizes_of_groups_are_written_in_one_way() -> None:
    """A number, a mapping, a row or pairs: equal orders are equal."""
    groups = [2, 0, 2, 3]
    one = ip.Grouped(groups, {0: 4, 2: 8, 3: 1, 9: 7})  # of group 9 there is no sample
    assert one == ip.Grouped(groups, [4, 5, 8, 1])
    assert one == ip.Grouped(groups, [(3, 1), (2, 8), (0, 4)])
    assert one == ip.Grouped(groups, np.array([4, 5, 8, 1]))
    assert [[0, 4], [2, 8], [3, 1]] == one.to_dict()["batch_size"]
    assert ip.Grouped(groups, 4) == ip.Grouped(groups, {0: 4, 2: 4, 3: 4})
    assert ip.Grouped(groups, 4) == ip.Grouped(groups, np.array(4))
    assert json.loads(json.dumps(one.to_dict())) == one.to_dict()


def test_groups_are_named() -> None:
    """Groups, and their shares of the samples, which are what is drawn, whatever bins they have."""
    order = ip.Grouped([7, 3, 7, 7, 3, 9, 3], {3: 2, 7: 1, 9: 5})
    assert ("3", "7", "9") == order.group_names
    assert [1, 0, 2] == order.group_of([0, 4, 5]).tolist()
    assert [3 / 7, 3 / 7, 1 / 7] == order.group_shares(0, 2, 3).tolist()
    drawn = ip.draws(ip.Plan(order, world_size=1, batch_size=2))
    assert [3, 3, 1] == drawn.drawn.tolist()
    assert np.allclose([3, 3, 1], drawn.aimed)


def test_what_is_worked_out_waits() -> None:
    """An order, a plan of it and a cursor say what they are before any bin is cut."""
    held = len(TABLES)
    order = ip.LengthGrouped([3, 1, 4, 1, 5, 9, 2], 2, seed=5)
    assert order.to_dict()["lengths"]["length"] == 7
    assert held == len(TABLES)


def test_orders_from_text(tmp_path: Path) -> None:
    """The command line names the file of the column, and the other fields."""
    from indexplan.cli.written import order_as_written

    np.save(tmp_path / "a.npy", LENGTHS)
    path = repr(str(tmp_path / "a.npy"))
    text = f"LengthGrouped({path}, batch_size=4, num_buckets=9, seed=3)"
    assert ORDERS[0] == order_as_written(text)
    text = f"TokenBudget({path}, 200, max_samples=12, multiple_of=4, num_buckets=9, seed=3)"
    assert ORDERS[1] == order_as_written(text)
    assert ip.Grouped(LENGTHS, 4) == order_as_written(f"Grouped({path}, 4)")
    sizes = {1: 4, 2: 3}
    assert ip.Grouped([1, 2, 1], sizes) == order_as_written(f"Grouped([1, 2, 1], {sizes})")
    text = f"Packed({path}, 200, max_samples=7, min_stratum=6, seed=3)"
    assert ORDERS[3] == order_as_written(text)
