"""Sources that join a mixture during a run: what was read stays, and new samples follow."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.base import Int64
from tests.golden.lines import crc32
from tests.orders.test_mixture import PLAIN, mixtures, source
from tests.support import mixing
from tests.support.strategies import cursors, fresh_plans, partitions

GOLDEN = json.loads(Path(__file__).parents[1].joinpath("golden/mixture_grown.json").read_text())
TWO = ip.Mixture({"a": ip.Shuffle(100), "b": ip.Shuffle(50, seed=1)}, {"a": 2, "b": 1}, seed=4)
NEW = {"c": ip.Shuffle(30, seed=2)}
ALL = {"a": 1, "b": 1, "c": 2}
PLAN = ip.Plan(TWO, world_size=4, batch_size=3)
CURSOR = PLAN.cursor(1, step=5)
GROWN = TWO.with_phase(CURSOR, ALL, sources=NEW)


@pytest.mark.parametrize(
    "case", GOLDEN["cases"], ids=lambda case: f"{case['name']}-{case['epoch']}"
)
def test_known_answers(case: dict[str, Any]) -> None:
    """They are the plain oracle's, from `tests.golden.make`, joined one phase after the other."""
    sources = {str(i): ip.Shuffle(n, seed=seed) for i, (n, seed) in enumerate(case["sources"])}
    names = list(sources)
    (_, shares), *later = case["phases"]
    num = len(shares)
    order = ip.Mixture(
        {name: sources[name] for name in names[:num]},
        dict(zip(names, shares, strict=False)),
        epoch_size=case["epoch_size"],
        seed=int(case["seed"]),
    )
    for place, shares in later:
        new = {name: sources[name] for name in names[num : len(shares)]}
        order = order.with_phase(place, dict(zip(names, shares, strict=False)), sources=new or None)
        num = len(shares)
    row = order.take(case["epoch"], 0, case["num_units"])
    assert (case["first"], case["last"]) == (row[:8].tolist(), row[-8:].tolist())
    assert case["crc32_of_all_as_little_endian_int64"] == crc32(row)


@given(fresh_plans(mixtures(PLAIN)), st.data())
def test_a_run_goes_on_with_more_sources(plan: ip.Plan, data: st.DataObject) -> None:
    """Any sources, from any place on: the oracle's units, and all before it is as it was."""
    cursor = data.draw(cursors(plan), label="cursor")
    old: Any = plan.order
    place = cursor.epoch * old.epoch_size + cursor.position
    later = place + data.draw(st.integers(0, 30), label="later")
    kinds = data.draw(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=2), label="new")
    new = {f"new {i}": source(3 + 7 * i, kind, 90 + i) for i, kind in enumerate(kinds)}
    names = [*old.names, *new]
    weights = {name: data.draw(st.integers(0, 5), label=name) for name in names} | {names[-1]: 1}
    order = old.with_phase(later, weights, sources=new, planned="drop")
    assert [name for name, _ in order.sources] == names
    none = (0,) * len(new)
    before = [(at, (*shares, *none)) for at, shares in old.weights if at < later]
    assert order.weights[:-1] == tuple(before)
    fields = data.draw(partitions(order, plan.sub_epochs), label="partition")
    rest = ip.Plan(order, sub_epochs=plan.sub_epochs, **fields).resume(cursor)
    assert ip.verify(rest, [cursor.epoch]).ok
    for epoch in (cursor.epoch, cursor.epoch + 1):
        row = order.take(epoch, 0, order.epoch_size)
        assert [each for unit in mixing.row_of(order, epoch) for each in unit] == row.tolist()
        same = max(0, min(later - epoch * old.epoch_size, old.epoch_size))
        assert np.array_equal(old.take(epoch, 0, same), row[:same])
    if place > later - 5 and place > 0:
        early = old.with_phase(place - 1, weights, sources=new, planned="drop")
        with pytest.raises(ip.IndexPlanError, match="since which the weights are others"):
            ip.Plan(early, sub_epochs=plan.sub_epochs, **fields).resume(cursor)


def test_a_cursor_is_a_place() -> None:
    """A cursor names the unit of the run at which its run stands; one of another order none."""
    place = TWO.epoch_size + CURSOR.position
    assert GROWN == TWO.with_phase(place, ALL, sources=list(NEW.items()))
    assert GROWN == TWO.with_phase(np.int64(place), ALL, sources=NEW)  # type: ignore[arg-type]
    assert ((0, (2, 1, 0)), (place, (1, 1, 2))) == GROWN.weights
    assert (150, 180, ("a", "b", "c")) == (GROWN.epoch_size, GROWN.num_samples, GROWN.names)
    by_hand = ip.Mixture(GROWN.sources, GROWN.weights, epoch_size=150, seed=4)
    assert by_hand == GROWN
    other = ip.Plan(ip.Shuffle(150), world_size=1, batch_size=2).cursor(0, step=1)
    with pytest.raises(ip.IndexPlanError, match="place must be a cursor of the order that is read"):
        TWO.with_phase(other, ALL, sources=NEW)


@pytest.mark.parametrize("remainder", ["spread", "drop", "pad", "carry"])
def test_what_a_plan_says(remainder: Any) -> None:
    """It counts, draws, finds and explains new samples, and none of them before they joined."""
    plan = PLAN.replace(order=GROWN, remainder=remainder)
    account = plan.account(1)
    assert 150 == account.num_units == account.num_read + account.num_dropped
    counts = [plan.order.count(epoch, range(150, 180)).sum() for epoch in (0, 1, 2)]
    assert counts[0] == 0
    assert counts[1] == round((150 - CURSOR.position) / 2)
    assert counts[2] == 75
    drawn = [ip.draws(plan, epoch) for epoch in (0, 2)]
    assert [("a", "b", "c")] * 2 == [each.names for each in drawn]
    assert [0, 0] == [drawn[0].drawn[2], drawn[0].aimed[2]]
    assert abs(drawn[1].drawn[2] - drawn[1].aimed[2]) < 2
    (before, *after) = ip.explain(plan, 160, epochs=[0, 2])
    assert "not in this epoch: no unit of its order holds the sample" == before.words
    assert {"c"} == {each.group for each in (before, *after)}
    where = plan.locate(160, 2)
    assert plan.batch(where.epoch, step=where.step, rank=where.rank)[where.slot] == 160
    again = ip.Plan.from_json(plan.to_json())
    assert again == plan
    assert pickle.loads(pickle.dumps(plan.order)) == plan.order  # noqa: S301 (our own)


def test_files(tmp_path: Path) -> None:
    """A stored plan continues a run of fewer sources, and its order is a place to grow from."""
    ip.save(PLAN, tmp_path / "two.plan", epochs=[0, 1])
    stored = ip.load(tmp_path / "two.plan")
    source: Any = stored.order
    assert source.source.with_phase(CURSOR, ALL, sources=NEW) == GROWN
    ip.save(PLAN.replace(order=GROWN), tmp_path / "grown.plan", epochs=[1, 2])
    loaded = ip.load(tmp_path / "grown.plan")
    assert ip.verify(loaded).ok
    rest = loaded.replace(world_size=3).resume(CURSOR)
    expected = PLAN.replace(order=GROWN, world_size=3).resume(CURSOR)
    for step in rest.steps(1):
        for rank in range(3):
            one, other = (plan.batch(1, step=step, rank=rank) for plan in (rest, expected))
            assert np.array_equal(one, other)
    with pytest.raises(ip.IndexPlanError, match="at or before unit 210 of the run"):
        loaded.resume(PLAN.cursor(1, step=6))
    parted = ip.diff(stored, loaded).steps_from
    assert parted is not None
    assert parted >= (1, 0, CURSOR.step)


def test_a_stored_order_joins(tmp_path: Path) -> None:
    """It is read from its files, and is in JSON what was stored."""
    ip.save(PLAN, tmp_path / "two.plan", epochs=[0, 1])
    one = ip.Mixture({"a": ip.Shuffle(9)}, {"a": 1}, epoch_size=159, seed=1)
    stored, computed = (
        one.with_phase(20, {"a": 1, "more": 1}, sources={"more": order})
        for order in (ip.load(tmp_path / "two.plan").order, TWO)
    )
    assert computed == stored
    assert stored.continues(one.to_dict(), 0, 20)
    assert np.array_equal(computed.take(2, 0, 159), stored.take(2, 0, 159))


def test_layers_around_a_mixture_that_grew() -> None:
    """Layers that keep the numbers of samples go on; others, and mixtures around it, refuse."""
    place = GROWN.weights[-1][0]
    for around in (
        lambda order: ip.Epochs(order, 40),
        lambda order: ip.Repeat(order, copies=2, span=30),
        lambda order: ip.Without(order, [3, 149]),
        lambda order: ip.Without(ip.Epochs(order, 75), [4, 9]),
    ):
        old, new = around(TWO), around(GROWN)
        plan = ip.Plan(old, world_size=1, batch_size=1)
        step = next(
            step for step in range(old.num_units(0), 0, -1) if new.continues(old.to_dict(), 0, step)
        )
        assert step == old.num_units(0)
        epoch = 1 + place // max(1, old.num_units(1))
        late = plan.cursor(epoch + 3, step=0)
        with pytest.raises(ip.IndexPlanError, match="since which the weights are others"):
            ip.Plan(new, world_size=1, batch_size=1).resume(late)
    saved = Turned(TWO).to_dict()
    assert Turned(TWO.with_phase(place, {"a": 1, "b": 3})).continues(saved, 1, 60)
    assert not Turned(GROWN).continues(saved, 1, 60)
    other = {"other": ip.Shuffle(77, seed=9)}
    outer = ip.Mixture({"two": TWO, **other}, {"two": 1, "other": 1})
    grown = ip.Mixture({"two": GROWN, **other}, {"two": 1, "other": 1}, epoch_size=227)
    assert not grown.continues(outer.to_dict(), 0, 9)  # its samples would have other numbers
    with pytest.raises(ip.IndexPlanError, match="of a mixture with the same source 'two'"):
        ip.Plan(grown, batch_size=2).resume(ip.Plan(outer, world_size=1, batch_size=2).start)


@dataclass(frozen=True, eq=False)
class Turned(ip.Layer):
    """Names samples from the last one on: where the order inside gets more, all names change."""

    order: ip.Order

    algorithm = "test-turned-v1"

    def renamed(self, samples: Int64) -> Int64:
        return self.num_samples - 1 - samples

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return self.order.find(epoch, self.num_samples - 1 - indices, most)


def test_what_left_out_orders_grow_to() -> None:
    """`with_phase` of an order that leaves units out is that of the mixture in it."""
    bad = ip.Without(TWO, [3, 149], since=PLAN.cursor(0, step=2))
    plan = PLAN.replace(order=bad)
    cursor = plan.cursor(1, step=4)
    order: Any = plan.order
    grown = order.with_phase(cursor, ALL, sources=NEW)
    mixture = grown.order
    at = grown.reach(1, cursor.position)[1]
    assert ((0, (2, 1, 0)), (150 + at, (1, 1, 2))) == mixture.weights
    assert grown.samples == bad.samples
    rest = ip.Plan(grown, world_size=3, batch_size=5).resume(cursor)
    assert not {3, 149} & set(rest.indices(1, rank=0).tolist())
    for earlier in (PLAN.cursor(0, step=1), PLAN.cursor(0, step=2)):
        assert rest.resume(earlier).start.position == earlier.position
    order = ip.Without(ip.Shuffle(150), [1])
    cursor = PLAN.replace(order=order).cursor(0, step=1)
    with pytest.raises(ip.IndexPlanError, match="the order inside must be a Mixture; got 'shuffle"):
        order.with_phase(cursor, {"a": 1})


def test_a_whole_sub_epoch_that_is_no_longer_left_out() -> None:
    """New weights move what is left out, and a cursor may then name a sub-epoch past its place."""
    one = ip.Mixture({"a": ip.Sequential(8)}, {"a": 1})
    gone = ip.Without(one, [2, 3])
    plan = ip.Plan(gone, world_size=1, batch_size=1, sub_epochs=4)
    cursor = plan.cursor(0, 2, step=0)
    assert (2, 0) == (cursor.sub_epoch, cursor.step)  # as sub-epoch 1 has nothing left
    weights, new = {"a": 0, "b": 1}, {"b": ip.Shuffle(20)}
    grown = gone.with_phase(cursor, weights, sources=new)
    with pytest.raises(ip.IndexPlanError, match="a cursor's sub_epoch must be 1, which holds"):
        plan.replace(order=grown).resume(cursor)
    later = gone.with_phase(
        plan.cursor(0, 2, step=1), {"a": 0, "b": 1}, sources={"b": ip.Shuffle(20)}
    )
    assert 2 == plan.replace(order=later).resume(cursor).start.position
