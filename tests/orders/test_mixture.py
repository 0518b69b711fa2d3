"""Mixtures: sources in order without gaps, in phases of weights that may change on the way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.base import Int64
from indexplan.orders.registry import register
from tests.orders.test_protocol import Later, units
from tests.support import mixing
from tests.support.bins import Bins, Drawn
from tests.support.strategies import cursors, fresh_plans, partitions, seeds

WEIGHTS = st.sampled_from([0, 1, 1, 2, 3, 7, 0.5, 0.1, 0.25, 1 / 7, 0.123456789, 1e-9, 2**60 - 1])


def source(n: int, kind: str, seed: int) -> ip.Order:
    """Return an order of n samples, or of n kept ones."""
    if kind == "blocks":
        return ip.BlockShuffle(n, 3, seed=seed)
    if kind == "epochs":
        return ip.Epochs(ip.Shuffle(n, seed=seed), n // 2 + 1)
    if kind == "subset":
        return ip.Subset(ip.Shuffle(n, seed=seed), range(1, n + 1), n + 2)
    if kind == "part" and n > 1:
        return ip.Split(n, {"a": 1, "b": 1}, seed=seed)["b"]
    if kind == "drawn":
        return Drawn(n, seed)
    return Bins(n) if kind == "bins" else ip.Shuffle(n, seed=seed)


PLAIN = ("shuffle", "blocks", "epochs", "subset", "part", "drawn")


@st.composite
def mixtures(draw: st.DrawFn, kinds: tuple[str, ...] = (*PLAIN, "bins")) -> ip.Mixture:
    """Draw a mixture of small sources, in phases of weights that begin anywhere."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    names = [f"s{i}" for i in range(len(sizes))]
    chosen = [draw(st.sampled_from(kinds)) for _ in names]
    sources = {
        name: source(size + 20 * i, kind, i)  # of other sizes, so that none are equal
        for i, (name, size, kind) in enumerate(zip(names, sizes, chosen, strict=True))
    }
    places = sorted({0, *draw(st.lists(st.integers(1, 130), max_size=2))})
    rows = st.lists(WEIGHTS, min_size=len(names), max_size=len(names)).filter(any)
    phases = [(place, dict(zip(names, draw(rows), strict=True))) for place in places]
    size = draw(st.none() | st.integers(1, 60))
    return ip.Mixture(sources, phases, epoch_size=size, seed=draw(seeds))


def read(mixture: ip.Mixture, start: int, stop: int) -> tuple[list[int], list[int]]:
    """Return the sources, and the numbers of their units, at places of the run."""
    phases = mixture._phases
    sources, numbers = phases.deal(start, np.array([0]), np.array([stop - start]))
    return sources.tolist(), numbers.tolist()


@given(mixtures(), st.sampled_from([0, 1, 2, 7]))
def test_it_reads_what_the_words_say(mixture: ip.Mixture, epoch: int) -> None:
    """Every unit of an epoch is the oracle's, taken whole, in cuts and one by one."""
    row = mixing.row_of(mixture, epoch)
    assert row == units(mixture, epoch)
    num = len(row)
    ends = sorted({0, num, num // 3, num // 2})
    flat = [sample for unit in row for sample in unit]
    assert flat == mixture.take(epoch, ends[:-1], ends[1:]).tolist()
    backwards = list(range(num))[::-1]
    assert [s for at in backwards for s in row[at]] == mixture.take(epoch, backwards).tolist()
    samples = list(range(mixture.num_samples))
    most = max(map(flat.count, samples))
    every = min(map(flat.count, samples))
    assert {"once": most == every == 1, "at most once": most == 1}.get(mixture.traits.reads, True)


@given(mixtures(), st.integers(0, 2**40), st.integers(1, 60))
def test_places_far_off_and_back(mixture: ip.Mixture, place: int, num: int) -> None:
    """Wherever it is, a place reads the oracle's unit, and is found again by it."""
    expected = [
        mixing.unit(mixture.weights, mixing.key_of(mixture.seed), place + i) for i in range(num)
    ]
    sources, numbers = read(mixture, place, place + num)
    assert expected == list(zip(sources, numbers, strict=True))
    phases = mixture._phases
    found = [int(phases.find(j, np.array([number]))[0]) for j, number in expected]
    assert list(range(place, place + num)) == found


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


@given(fresh_plans(mixtures(PLAIN)), st.data())
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


@given(fresh_plans(mixtures(PLAIN)), st.data())
def test_weights_may_change_at_a_resume(plan: ip.Plan, data: st.DataObject) -> None:
    """What was read stays as it was, and over both parts of the run sources have no gap."""
    cursor = data.draw(cursors(plan), label="cursor")
    order: Any = plan.order
    place = cursor.epoch * order.epoch_size + cursor.position
    later = place + data.draw(st.integers(0, 30), label="later")
    weights = {name: data.draw(st.integers(1, 5), label=name) for name in order.names}
    changed = order.with_phase(later, weights, planned="drop")
    fields = data.draw(partitions(changed, plan.sub_epochs), label="partition")
    rest = ip.Plan(changed, sub_epochs=plan.sub_epochs, **fields).resume(cursor)
    assert ip.verify(rest, [cursor.epoch]).ok
    assert read(order, 0, later) == read(changed, 0, later)
    sources, numbers = read(changed, 0, later + 100)
    for j in range(len(order.names)):
        mine = [number for of, number in zip(sources, numbers, strict=True) if of == j]
        assert list(range(len(mine))) == mine
    if place > 0 and len(order.names) > 1:
        other = dict.fromkeys(order.names, 1) | {order.names[0]: 1000}
        early = order.with_phase(place - 1, other, planned="drop")
        with pytest.raises(ip.IndexPlanError, match="since which the weights are others"):
            ip.Plan(early, sub_epochs=plan.sub_epochs, **fields).resume(cursor)


def test_a_later_phase_takes_the_place_of_others() -> None:
    """`with_phase` keeps what begins before, and nothing else."""
    sources = {"a": ip.Shuffle(10), "b": ip.Shuffle(5)}
    phases = [(0, {"a": 1, "b": 1}), (10, {"a": 2, "b": 1}), (20, {"a": 3, "b": 1})]
    mixture = ip.Mixture(sources, phases, epoch_size=7, seed=9)
    changed = mixture.with_phase(10, {"a": 0, "b": 1}, planned="drop")
    assert ((0, (1, 1)), (10, (0, 1))) == changed.weights
    assert (7, 9, (0, 1)) == (changed.epoch_size, changed.seed, changed.shares)
    assert ((0, (4, 1)),) == mixture.with_phase(0, {"a": 0.8, "b": 0.2}, planned="drop").weights
    assert (13, 7) == mixture.with_phase(10, {"a": 13, "b": 7}, planned="drop").shares
    saved = mixture.to_dict()
    assert changed.continues(saved, 1, 3)  # at place 10
    assert not changed.continues(saved, 1, 4)
    assert not changed.continues({**saved, "seed": 1}, 1, 3)
    assert not changed.continues({"algorithm": "shuffle-v1"}, 1, 3)
    assert not changed.continues({**saved, "sources": [["c", {}], ["b", {}]]}, 0, 0)
    again = ip.Mixture(sources, mixture.weights, epoch_size=7, seed=9)  # shares as they are
    assert again == mixture


def test_sources_may_change_where_nothing_was_read() -> None:
    """A source is asked from where on it may differ: from its own epoch and position."""

    def mixed(since: int) -> ip.Mixture:
        sources = {"a": Later(20, since=since), "b": ip.Shuffle(5)}
        return ip.Mixture(sources, {"a": 1, "b": 1}, epoch_size=10)

    saved = mixed(1).to_dict()
    assert mixed(2).continues(saved, 7, 9)  # 39 or 40 units of 20 are read, in epoch 1 of a
    assert not mixed(2).continues(saved, 8, 0)
    assert not mixed(1).continues(saved | {"epoch_size": 11}, 0, 0)


@given(mixtures(), st.booleans())
def test_stops_in_whatever_phase(mixture: ip.Mixture, first: bool) -> None:
    """A walk along the run finds the end of the first source, or of the last one, there."""
    sizes = [source.num_units(0) for _, source in mixture.sources]
    sources = np.array(read(mixture, 0, 2000)[0])
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


@register
@dataclass(frozen=True, eq=False)
class Backwards(ip.Shuffle):
    """A shuffle of somebody's own, made of ours."""

    algorithm = "mixed-backwards-v1"

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        out[:] = self.num_samples - 1 - out


@register
@dataclass(frozen=True, eq=False)
class Second(ip.Sequential):
    """Another order in every second epoch, made of ours."""

    algorithm = "second-v1"

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        super().fill(epoch, starts, stops, out)
        if epoch % 2:
            out[:] = self.num_samples - 1 - out


def test_sources_that_are_read_many_epochs_at_a_time() -> None:
    """Sources of a few samples, and a class that inherits how a shuffle is read, read their own."""
    sources = {
        "one": ip.Shuffle(1),
        "few": ip.Shuffle(3, seed=2**128 - 1),
        "b": Backwards(40),
        "in order": ip.Sequential(2),
        "leaning": Second(3),
    }
    mixture = ip.Mixture(sources, dict(zip(sources, (5, 4, 1, 3, 3), strict=True)), epoch_size=1000)
    which, samples = mixture.split(mixture.take(3, 0, 1000))
    for j, order in enumerate(sources.values()):
        mine, n = samples[which == j], order.num_samples
        first = int(mixture._phases.count(3000)[j])  # which the oracle checks above
        stream = [order.take(*divmod(first + i, n))[0] for i in range(len(mine))]
        assert stream == mine.tolist()


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


def test_nothing_is_written_of_an_epoch_that_cannot_be_read_whole(tmp_path: Path) -> None:
    """Its first units could be; in an Epochs too."""
    sources = {"a": ip.Shuffle(2), "b": ip.Shuffle(3)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 1}, epoch_size=15)
    last = 2**34 // 15  # a is read in all its epochs before unit 2**34
    assert 15 == mixture.num_units(last - 1) == ip.Epochs(mixture, 15).num_units(last - 1)
    for order in (mixture, ip.Epochs(mixture, 15), ip.Epochs(mixture, 30)):
        epoch = last * 15 // order.num_units(0)
        plan = ip.Plan(order, world_size=2, batch_size=3)
        with pytest.raises(ip.IndexPlanError, match="the epochs of the source 'a' must be below"):
            ip.save(plan, tmp_path / "plan", epochs=[epoch])
        assert not (tmp_path / "plan").exists()


def test_phases_are_worked_out_as_far_as_they_are_read() -> None:
    """Whatever is asked for first, each answer is that of a new mixture."""
    sources = {name: ip.Shuffle(50 + i, seed=i) for i, name in enumerate("abc")}
    phases = [(7 * i, {"a": 1, "b": i % 5, "c": 10 - i % 3}) for i in range(30)]
    order = ip.Mixture(sources, phases, epoch_size=40, seed=1)
    located = ip.Mixture(sources, phases, epoch_size=40, seed=1)
    for epoch, known in ((0, 6), (3, 23), (1, 23), (7, 30), (2, 30)):
        alone = ip.Mixture(sources, phases, epoch_size=40, seed=1)
        row = order.take(epoch, 0, 40)
        assert alone.take(epoch, 0, 40).tolist() == row.tolist()
        assert known == len(order._phases._bases)
        positions, offsets = located.locate_all(epoch, np.arange(order.num_samples))
        expected = [np.flatnonzero(row == index).tolist() for index in range(order.num_samples)]
        assert sum(expected, []) == positions.tolist()
        assert [0, *np.cumsum([len(each) for each in expected])] == offsets.tolist()
        assert known <= len(located._phases._bases) <= known + 1


def test_a_mixture_inside_another_ends_beforehand_too(tmp_path: Path) -> None:
    """So does one around it: what needs an unreadable epoch is refused before its first unit."""
    parts = {"a": ip.Shuffle(2), "b": ip.Shuffle(3)}
    inner = ip.Mixture(parts, {"a": 1, "b": 1}, epoch_size=15, seed=1)
    last = 2**34 // 15  # the first epoch of it that cannot be read whole
    for source in (inner, ip.Subset(inner, range(5), 9), ip.Epochs(inner, 15)):
        weights = {"inner": 1, "other": 1}
        outer = ip.Mixture({"inner": source, "other": ip.Shuffle(10**6)}, weights, epoch_size=30)
        assert 30 == outer.num_units(last - 1)
        plan = ip.Plan(outer, world_size=2, batch_size=3)
        for ask in (
            lambda plan=plan: ip.save(plan, tmp_path / "plan", epochs=[last]),
            lambda outer=outer: outer.take(last, 0),
            lambda outer=outer: outer.num_units(last),
        ):
            with pytest.raises(
                ip.IndexPlanError, match="the epochs of the source 'a' must be below"
            ):
                ask()
        assert not (tmp_path / "plan").exists()


@given(st.integers(1, 40), st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_places_that_are_near_read_as_each_alone(k: int, steps: list[int]) -> None:
    """As one of several ranks asks for them, whether they are dealt together or one by one."""
    sources = {str(j): ip.Shuffle(99 + j) for j in range(k)}
    order = ip.Mixture(sources, {str(j): j + 1 for j in range(k)}, epoch_size=20_000)
    places = 1 + np.cumsum(steps)
    together = order.take(0, places, places + 1).tolist()
    assert together == [order.take(0, place, place + 1).item() for place in places.tolist()]
