"""The pattern of a mixture: the oracle's at every place, in runs, by counts and by finding."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import tree
from indexplan.orders.base import Int64
from indexplan.orders.phases import Pattern, Phases
from indexplan.orders.shares import phases_of
from indexplan.orders.shuffle import UInt32
from tests.support import mixes, mixing
from tests.support.strategies import seeds

GOLDEN = json.loads(Path(__file__).parents[1].joinpath("golden/mixture_v1.json").read_text())
PLACES = st.integers(0, 2**17) | st.integers(2**40, 2**62) | st.integers(2**63 - 9, 2**63 - 1)
PHASES = st.integers(0, 2**12 - 1)


def words(*key: int) -> UInt32:
    return np.array(key, np.uint32)


def key_of(seed: int) -> UInt32:
    """Return the key of a mixture's coins."""
    return ip.Mixture({"a": ip.Shuffle(9)}, {"a": 1}, seed=seed)._phases.key


def dealt(some: Pattern, k: int, place: int, num: int) -> tuple[Int64, Int64]:
    """Return the sources and the numbers at places [place, place + num) of a phase."""
    sources, numbers = np.empty(num, np.int32), np.empty(num, np.int64)
    some.deal(place, np.zeros(k, np.int64), np.array([0]), np.array([num]), sources, numbers)
    return sources.astype(np.int64), numbers


def counted(some: Pattern, k: int, place: int) -> list[int]:
    """Return how many units of each source come before a place."""
    return some.count(np.zeros(k, np.int64), place).tolist()


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: str(case["weights"])[:40])
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change: shares, key, and places as far off as a run may get."""
    names = [str(j) for j in range(len(case["shares"][0][1]))]
    given_ = [(at, dict(zip(names, map(Decimal, row), strict=True))) for at, row in case["weights"]]
    phases = Phases(phases_of(given_, names), key_of(case["seed"]))
    assert case["key"] == phases.key.tolist()
    assert case["shares"] == [[place, [*each]] for place, each in phases.phases]
    places = np.array(case["places"])
    sources, numbers = phases.deal(0, places, places + 1)
    assert (case["sources"], case["numbers"]) == (sources.tolist(), numbers.tolist())
    assert case["counts"] == phases.count(case["count_at"]).tolist()
    for source, number, place in case["find"]:
        assert [place] == phases.find(source, np.array([number])).tolist()
        assert place == phases.place_of(source, number)
    within = [phases.pattern(i).reach for i in range(len(phases.phases))]
    assert [2**32 * Fraction(each) for each in case["within"]] == within


@given(mixes.shares(), PHASES, PLACES, seeds)
def test_a_place_is_the_oracles(shares: tuple[int, ...], phase: int, place: int, seed: int) -> None:
    """Its source and unit, the counts before it, the way back, and how far all may be off."""
    key, k = key_of(seed), len(shares)
    some, oracle = Pattern(shares, phase, key), mixing.Phase(shares, key.tolist(), phase)
    assert oracle.within == some.reach
    before = oracle.count(place)
    assert before == counted(some, k, place)
    if place < 2**63 - 1:
        ((source,), (number,)) = dealt(some, k, place, 1)
        expected = [n + (j == source) for j, n in enumerate(before)]
        assert expected == oracle.count(place + 1)
        assert before[source] == number
        assert [place] == some.find(int(source), 0, np.array([number])).tolist()


@given(mixes.shares((*mixes.FEW, *mixes.MANY)), PLACES, st.integers(1, 40_000), st.data())
def test_all_ways_agree(shares: tuple[int, ...], place: int, num: int, data: st.DataObject) -> None:
    """A run is its slots one by one, counts are those of what is dealt, and finding is inverse."""
    some, k = Pattern(shares, 0, words(1, 2)), len(shares)
    num = min(num, 2**63 - 1 - place) or 1
    place = min(place, 2**63 - 1 - num)
    sources, numbers = dealt(some, k, place, num)
    first = np.array(counted(some, k, place))
    assert (first + np.bincount(sources, minlength=k)).tolist() == counted(some, k, place + num)
    for j in np.unique(sources).tolist()[:40]:
        mine = np.flatnonzero(sources == j)
        assert np.array_equal(numbers[mine], first[j] + np.arange(len(mine)))
        assert (place + mine)[:50].tolist() == some.find(j, 0, numbers[mine][:50]).tolist()
    for at in data.draw(st.lists(st.integers(0, num - 1), max_size=6), label="at"):
        stop = min(num, at + data.draw(st.integers(1, 300), label="size"))
        here, there = dealt(some, k, place + at, stop - at)
        assert np.array_equal(here, sources[at:stop])
        assert np.array_equal(there, numbers[at:stop])


@given(mixes.shares((*mixes.FEW, 140)) | st.lists(st.integers(1, 3), min_size=13, max_size=60))
def test_trees_are_the_oracles(shares: tuple[int, ...] | list[int]) -> None:
    """Of all candidates the one with the least reach, numbered breadth first."""
    shares = mixing.lowest(shares)
    some, oracle = Pattern(shares, 0, words(1, 2)), mixing.Phase(shares, (1, 2), 0)
    assert oracle.within == some.reach
    number = {id(node): v for v, node in enumerate(oracle.nodes)}
    expected = []
    for node in oracle.nodes:
        dealer = oracle.dealers[id(node)]
        children = [number[id(c)] if len(c) == 3 else ~c[1] for c in node[1:]]
        ticks = dealer.window_ticks, 2 ** some._nodes[number[id(node)], tree.BITS]
        assert ticks == (some._nodes[number[id(node)], tree.TICKS], dealer.slot_ticks)
        expected.append([dealer.p, dealer.q, *children])
    assert expected == some._nodes[:, [tree.P, tree.Q, tree.FIRST, tree.SECOND]].tolist()


def test_within() -> None:
    """It is known of a mixture, in its last phase of weights."""
    sources = {name: ip.Shuffle(50 + i, seed=i) for i, name in enumerate("abc")}
    assert 0 == ip.Mixture(sources, {"a": 1, "b": 0, "c": 0}).within
    assert 0.5 == ip.Mixture(sources, {"a": 1, "b": 1, "c": 0}).within
    assert 0.875 == ip.Mixture(sources, {"a": 7, "b": 1, "c": 0}).within
    changed = ip.Mixture(sources, {"a": 7, "b": 1, "c": 0}).with_phase(9, dict.fromkeys("abc", 1))
    assert 0.8333 == round(changed.within, 4)


def test_the_rarest_source_and_the_most_sources() -> None:
    """One unit in 2**62 - 1, and 65,536 sources, whose nodes have numbers of 16 bits."""
    most = 2**62 - 1
    some = Pattern((most - 1, 1), 4095, words(2**32 - 1, 7))
    assert [most - 1, 1] == counted(some, 2, most)
    found = some.find(1, 0, np.array([0, 1]))
    assert 0 <= found[0] < most <= found[1] < 2 * most
    for number, place in enumerate(found.tolist()):
        assert [[1], [number]] == [each.tolist() for each in dealt(some, 2, place, 1)]
    many = Pattern((1,) * 2**16, 0, words(3, 4))
    sources, numbers = dealt(many, 2**16, 3 * 2**16, 2**16)
    assert np.array_equal(np.arange(2**16), np.sort(sources))
    assert {3} == set(numbers.tolist())
    assert 3 * 2**16 + 5 == many.find(int(sources[5]), 0, np.array([3]))[0]
