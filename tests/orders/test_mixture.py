"""Mixtures: sources in order without gaps, in phases of weights that may change on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import Drawn
from tests.support.nested import MIXTURES
from tests.support.strategies import fresh_plans


def test_known_samples() -> None:
    """Bits that never change, with what the sources read."""
    sources = {"a": ip.Sequential(10), "b": ip.Sequential(5)}
    mixture = ip.Mixture(sources, {"a": 0.6, "b": 0.4}, seed=5)
    assert (3, 2) == mixture.shares
    assert [
        [0, 1, 10, 11, 2, 3, 12, 4, 13, 5, 14, 6, 10, 7, 8],
        [11, 9, 0, 12, 1, 2, 13, 14, 3, 4, 5, 10, 6, 7, 11],
    ] == [mixture.take(epoch, 0, 15).tolist() for epoch in range(2)]
    assert "de5f21c96574fb61" == mixture.fingerprint[:16]
    assert {
        "algorithm": "mixture-v1",
        "sources": [["a", sources["a"].to_dict()], ["b", sources["b"].to_dict()]],
        "phases": [[0, [3, 2]]],
        "epoch_size": 15,
        "seed": 5,
    } == mixture.to_dict()


@given(fresh_plans(MIXTURES), st.data())
def test_phases_that_are_planned_for_later(plan: ip.Plan, data: st.DataObject) -> None:
    """They are kept or left out as it is said; and where it is not, nothing changes."""
    order: Any = plan.order
    place = data.draw(st.integers(0, 140), label="place")
    weights = {name: data.draw(st.integers(1, 5), label=name) for name in order.names}
    later = tuple(phase for phase in order.weights if phase[0] > place)
    new = ip.Mixture(order.sources, weights, seed=order.seed).weights[0][1]
    before = tuple(phase for phase in order.weights if phase[0] < place)
    for planned, expected in {"keep": later, "drop": ()}.items():
        changed = order.with_phase(place, weights, planned=planned)
        assert (*before, (place, new), *expected) == changed.weights
    if not later:
        assert changed == order.with_phase(place, weights)
        return
    with pytest.raises(ip.IndexPlanError, match=f"planned from unit {later[0][0]} on; got None"):
        order.with_phase(place, weights)


def test_what_it_continues() -> None:
    """Shares are weights; other sources are another run."""
    sources = {"a": ip.Shuffle(10), "b": ip.Shuffle(5)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 1}, epoch_size=7, seed=9)
    assert mixture == ip.Mixture(sources, mixture.weights, epoch_size=7, seed=9)  # from shares
    saved = mixture.to_dict()
    assert mixture.continues(saved, 1, 4)
    assert not mixture.continues({**saved, "sources": [["c", {}], ["b", {}]]}, 0, 0)


@given(MIXTURES, st.booleans())
def test_stops_in_whatever_phase(mixture: ip.Mixture, first: bool) -> None:
    """A walk along the run finds the end of the first source, or of the last one, there."""
    sizes = [source.num_units(0) for _, source in mixture.sources]
    sources, _ = mixture._phases.deal(0, np.array([0]), np.array([2000]))
    places = [np.flatnonzero(sources == j) for j in range(len(sizes))]
    ends = [
        int(row[n - 1 + first])
        for row, n in zip(places, sizes, strict=True)
        if n <= len(row) - first
    ]
    expected = None
    if ends and (first or len(ends) == len(sizes)):
        expected = min(ends) if first else max(ends) + 1
    stop = "first_exhausted" if first else "all_exhausted"
    try:
        found = ip.Mixture(
            mixture.sources, mixture.weights, epoch_size=stop, seed=mixture.seed
        ).epoch_size
    except ip.IndexPlanError:
        assert expected is None
        return
    assert found == expected if found < 2000 else expected is None


def test_what_it_says_of_its_reads() -> None:
    """Once where epochs are whole ones of all sources, at most once where they divide them."""
    a, b = ip.Shuffle(30, seed=1), ip.Shuffle(10, seed=2)

    def reads(size: int | None, *phases: Any, b: ip.Order = b) -> str:
        weights = [(place, dict(zip("ab", row, strict=True))) for place, row in phases]
        return ip.Mixture({"a": a, "b": b}, weights, epoch_size=size).traits.reads

    assert "once" == reads(None, (0, (3, 1)))
    assert "any" == reads(None, (0, (1, 1)))
    assert "any" == reads(80, (0, (3, 1)))
    assert "at most once" == reads(20, (0, (3, 1)))
    assert "at most once" == reads(20, (0, (1, 1)))
    assert "at most once" == reads(20, (0, (3, 1)), (40, (1, 1)))
    assert "any" == reads(20, (0, (3, 1)), (20, (1, 1)))  # then b is read from its middle on
    assert "any" == reads(20, (0, (3, 1)), (30, (1, 1)))
    assert "any" == reads(None, (0, (3, 1)), b=Drawn(10))


def test_groups_are_the_sources() -> None:
    """Samples belong to their source; the shares of an interval are those of its phases."""
    sources = {"a": ip.Shuffle(10), "b": ip.Shuffle(5)}
    phases = [(0, {"a": 1, "b": 1}), (6, {"a": 3, "b": 1}), (8, {"a": 0, "b": 1})]
    mixture = ip.Mixture(sources, phases, epoch_size=5)
    assert ("a", "b") == mixture.group_names == mixture.names
    assert [[0, 1], [1, 0]] == mixture.group_of([[0, 10], [14, 9]]).tolist()
    names, samples = mixture.split([[0, 10], [14, 9]])
    assert ([[0, 1], [1, 0]], [[0, 0], [4, 9]]) == (names.tolist(), samples.tolist())
    assert [0.5, 0.5] == mixture.group_shares(0, 0, 5).tolist()
    # places 5, 6 and 7, 8 and 9
    assert np.allclose([(0.5 + 1.5) / 5, (0.5 + 0.5 + 2) / 5], mixture.group_shares(1, 0, 5))
    assert [0.75, 0.25] == mixture.group_shares(1, 1, 3).tolist()
    assert [0, 1] == mixture.group_shares(7, 0, 5).tolist()
    part = ip.Subset(mixture, range(3, 18), 20)
    assert [-1, 0, 0, 1, -1] == part.group_of([2, 3, 12, 13, 19]).tolist()


def test_large_pieces_are_cut() -> None:
    """What is sorted at a time has a bound, and is written where it belongs."""
    sources = {name: ip.Shuffle(10**6 + i, seed=i) for i, name in enumerate("abcde")}
    mixture = ip.Mixture(sources, dict.fromkeys("abcde", 1), seed=1)
    starts = np.array([2 * 10**6, 5, 10**6, 100, 0])
    stops = starts + np.array([200_000, 0, 1, 150_000, 3])
    whole = mixture.take(0, starts, stops)
    parts = [mixture.take(0, int(a), int(b)) for a, b in zip(starts, stops, strict=True)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_huge_runs() -> None:
    """Places up to 2**63 are exact; past that, and past the last epoch of a source, are none."""
    sources = {"a": ip.Shuffle(2**40, seed=1), "b": ip.Shuffle(2**41, seed=2)}
    mixture = ip.Mixture(sources, {"a": 0.3, "b": 0.7}, epoch_size=2**36)
    epoch = 2**27 - 3
    rows = mixture.take(epoch, [0, 2**36 - 1])
    assert [0, 2**36 - 1] == mixture.locate(epoch, rows).tolist()
    with pytest.raises(ip.IndexPlanError, match="epoch must be below 134217727, as the run"):
        mixture.take(2**27 - 1, 0)
    tiny = ip.Mixture({"a": ip.Shuffle(2), "b": ip.Shuffle(3)}, {"a": 1, "b": 1}, epoch_size=2**33)
    assert 4 == len(tiny.take(1, 0, 4))
    with pytest.raises(ip.IndexPlanError, match="the epochs of the source 'a' must be below"):
        tiny.take(2, 0, 4)
    with pytest.raises(ip.IndexPlanError, match="the epochs of the source 'a' must be below"):
        tiny.count(2, 0)
    assert 2**32 // 3 <= tiny.count(1, 4) <= 2**32 // 3 + 1


def test_an_epoch_that_cannot_be_read_whole_is_refused_beforehand(tmp_path: Path) -> None:
    """Its first units could be read; so it is in layers and in mixtures around it."""
    parts = {"a": ip.Shuffle(2), "b": ip.Shuffle(3)}
    inner = ip.Mixture(parts, {"a": 1, "b": 1}, epoch_size=15, seed=1)
    last = 2**34 // 15  # its source a is read in all epochs before unit 2**34
    orders = {inner: last, ip.Epochs(inner, 15): last, ip.Epochs(inner, 30): last // 2}
    for source in (inner, ip.Subset(inner, range(5), 9), ip.Epochs(inner, 15)):
        sources = {"inner": source, "other": ip.Shuffle(10**6)}
        orders[ip.Mixture(sources, {"inner": 1, "other": 1}, epoch_size=30)] = last
    for order, epoch in orders.items():
        assert order.num_units(0) == order.num_units(epoch - 1)
        plan = ip.Plan(order, world_size=2, batch_size=3)
        for ask in (
            lambda plan=plan, epoch=epoch: ip.save(plan, tmp_path / "plan", epochs=[epoch]),
            lambda order=order, epoch=epoch: order.take(epoch, 0),
            lambda order=order, epoch=epoch: order.num_units(epoch),
        ):
            with pytest.raises(ip.IndexPlanError, match="epochs of the source 'a' must be below"):
                ask()
        assert not (tmp_path / "plan").exists()


def test_phases_are_worked_out_as_far_as_they_are_read() -> None:
    """Whatever is asked for first, each answer is that of a new mixture."""
    sources = {name: ip.Shuffle(50 + i, seed=i) for i, name in enumerate("abc")}
    phases = [(7 * i, {"a": 1, "b": i % 5, "c": 10 - i % 3}) for i in range(30)]
    order, located = (ip.Mixture(sources, phases, epoch_size=40, seed=1) for _ in range(2))
    for epoch, known in ((0, 6), (3, 23), (1, 23), (7, 30), (2, 30)):
        alone = ip.Mixture(sources, phases, epoch_size=40, seed=1)
        row = order.take(epoch, 0, 40)
        assert alone.take(epoch, 0, 40).tolist() == row.tolist()
        assert known == len(order._phases._bases)
        positions, _ = located.locate_all(epoch, np.arange(order.num_samples))
        assert np.argsort(row, kind="stable").tolist() == positions.tolist()
        assert known <= len(located._phases._bases) <= known + 1


@given(st.integers(1, 40), st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_places_that_are_near_read_as_each_alone(k: int, steps: list[int]) -> None:
    """As one of several ranks asks for them, whether they are dealt together or one by one."""
    sources = {str(j): ip.Shuffle(99 + j) for j in range(k)}
    order = ip.Mixture(sources, {str(j): j + 1 for j in range(k)}, epoch_size=20_000)
    places = 1 + np.cumsum(steps)
    together = order.take(0, places, places + 1).tolist()
    assert together == [order.take(0, place, place + 1).item() for place in places.tolist()]


TWO = ip.Mixture({"a": ip.Shuffle(100), "b": ip.Shuffle(50, seed=1)}, {"a": 2, "b": 1}, seed=4)
NEW = {"c": ip.Shuffle(30, seed=2)}
ALL = {"a": 1, "b": 1, "c": 2}
PLAN = ip.Plan(TWO, world_size=4, batch_size=3)
CURSOR = PLAN.cursor(1, step=5)
GROWN = TWO.with_phase(CURSOR, ALL, sources=NEW)


def test_a_cursor_is_a_place() -> None:
    """A cursor names the unit of the run at which its run stands."""
    place = TWO.epoch_size + CURSOR.position
    assert GROWN == TWO.with_phase(place, ALL, sources=list(NEW.items()))
    assert GROWN == TWO.with_phase(np.int64(place), ALL, sources=NEW)  # type: ignore[arg-type]
    assert ((0, (2, 1, 0)), (place, (1, 1, 2))) == GROWN.weights
    assert (150, 180, ("a", "b", "c")) == (GROWN.epoch_size, GROWN.num_samples, GROWN.names)
    by_hand = ip.Mixture(GROWN.sources, GROWN.weights, epoch_size=150, seed=4)
    assert by_hand == GROWN


def test_a_stored_plan_grows(tmp_path: Path) -> None:
    """A plan directory continues a run of fewer sources, and its order is a place to grow from."""
    ip.save(PLAN, tmp_path / "two.plan", epochs=[0, 1])
    stored: Any = ip.load(tmp_path / "two.plan").order
    assert stored.source.with_phase(CURSOR, ALL, sources=NEW) == GROWN
    ip.save(PLAN.replace(order=GROWN), tmp_path / "grown.plan", epochs=[1, 2])
    loaded = ip.load(tmp_path / "grown.plan").replace(world_size=3)
    expected = PLAN.replace(order=GROWN, world_size=3).resume(CURSOR)
    assert np.array_equal(loaded.resume(CURSOR).indices(1, rank=2), expected.indices(1, rank=2))
    with pytest.raises(ip.IndexPlanError, match="at or before unit 210 of the run"):
        loaded.resume(PLAN.cursor(1, step=6))


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
