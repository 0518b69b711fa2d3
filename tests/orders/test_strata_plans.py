"""Orders of bins by length and by group: how they are drawn, their columns, and what they share."""

from __future__ import annotations

import gc
import json
import pickle
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.stores.tables import TABLES
from tests.orders.test_protocol import units
from tests.support.lengths import fields_of

loads = pickle.loads  # of our own

LENGTHS = [1 + i * i * 37 % 90 for i in range(300)]
ORDERS = [
    ip.LengthGrouped(LENGTHS, 4, num_buckets=9, seed=3),
    ip.TokenBudget(LENGTHS, 200, max_samples=12, multiple_of=4, num_buckets=9, seed=3),
    ip.Grouped([length % 7 * 5 for length in LENGTHS], {5 * i: 1 + i for i in range(9)}, seed=3),
    ip.Packed(LENGTHS, 200, max_samples=7, min_stratum=6, seed=3),
]
names = [order.algorithm for order in ORDERS]


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
