"""The pattern of a mixture: a tree of choices with exact odds, near its shares at every place."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import tree
from indexplan.orders import pattern
from indexplan.orders.base import Int64
from indexplan.orders.pattern import Pattern
from indexplan.orders.phases import Phases
from indexplan.orders.shuffle import UInt32
from tests.support import mixing
from tests.support.strategies import seeds

GOLDEN = json.loads(Path(__file__).parents[1].joinpath("golden/mixture_v1.json").read_text())

# of a period; those above 2**16 together are a block of their own
SHARES = (
    st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)
    | st.lists(st.integers(0, 2**13), min_size=1, max_size=6).filter(any)
    | st.lists(st.integers(2**10, 2**15), min_size=2, max_size=30)
)
SMALL = st.lists(st.integers(0, 40), min_size=1, max_size=18).filter(any)
PLACES = st.integers(0, 2**17) | st.integers(2**40, 2**62)


def words(*key: int) -> UInt32:
    return np.array(key, np.uint32)


def key_of(seed: int) -> UInt32:
    """Return the key of a mixture's coins."""
    return ip.Mixture({"a": ip.Shuffle(9)}, {"a": 1}, seed=seed)._phases.key


def dealt(some: Pattern, place: int, num: int) -> tuple[Int64, Int64]:
    """Return the sources and the numbers at places [place, place + num) of a phase."""
    sources, numbers = np.empty(num, np.int32), np.empty(num, np.int64)
    base = np.zeros(len(some._shares), np.int64)
    some.deal(place, base, np.array([0]), np.array([num]), sources, numbers)
    return sources.astype(np.int64), numbers


def counted(some: Pattern, place: int) -> list[int]:
    """Return how many units of each source come before a place."""
    return some.count(np.zeros(len(some._shares), np.int64), place).tolist()


@pytest.mark.parametrize(
    "case", GOLDEN["one_phase"] + GOLDEN["seeded"], ids=lambda case: str(case["shares"])[:40]
)
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change: whole blocks, and places as far off as a run may get."""
    key = words(*case["key"])
    if "seed" in case:
        assert case["key"] == key_of(int(case["seed"])).tolist()
    some = Pattern(tuple(case["shares"]), case["phase"], key)
    assert case["block"] == some._shares.sum()
    assert case["within_2_32"] == some.reach
    for block, digest in case["block_sha256_u2"].items():
        sources, _ = dealt(some, int(block) * case["block"], case["block"])
        assert digest == hashlib.sha256(sources.astype("<u2").tobytes()).hexdigest()
    first = case.get("first", [])
    assert first == dealt(some, 0, len(first))[0].tolist()
    for place, answer in zip(case.get("places", []), case.get("answers", []), strict=True):
        ((source,), (number,)) = dealt(some, place, 1)
        assert answer == [source, number]
        assert [place] == some.find(int(source), 0, np.array([number])).tolist()
    if "places" in case:
        assert case["count_before_last_place"] == counted(some, case["places"][-1])


@pytest.mark.parametrize("case", GOLDEN["phases"], ids=lambda case: str(case["phases"])[:40])
def test_known_answers_in_phases(case: dict[str, Any]) -> None:
    """Bits that never change, where each phase takes over from the one before."""
    phases = Phases(
        tuple((place, tuple(shares)) for place, shares in case["phases"]), words(*case["key"])
    )
    places = np.array(case["places"])
    sources, numbers = phases.deal(0, places, places + 1)
    assert case["answers"] == [list(each) for each in zip(sources, numbers, strict=True)]
    assert case["bases"] == [phases.count(place).tolist() for place, _ in case["phases"]]
    for place, (source, number) in zip(case["places"], case["answers"], strict=True):
        assert place == phases.place_of(source, number)


@given(SMALL, st.integers(0, 2**12 - 1), st.integers(0, 2**62), seeds)
def test_a_block_is_the_oracles(shares: list[int], phase: int, block: int, seed: int) -> None:
    """Every slot of small blocks, whose nodes are of all kinds: of even and odd units, with one."""
    each, key = tuple(shares), key_of(seed)
    block //= sum(shares)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pattern, "BLOCK", 1)  # a block is one period
        some = Pattern(each, phase, key)
    expected = mixing.whole_block(each, (tuple(key.tolist()), phase, block))
    assert expected == dealt(some, block * sum(each), sum(each))[0].tolist()
    assert some.reach == max(mixing.reaches(mixing.tree_of(each)))


@given(SHARES, st.integers(0, 2**12 - 1), PLACES, seeds)
def test_a_place_is_the_oracles(shares: list[int], phase: int, place: int, seed: int) -> None:
    """So are counts before places of large blocks."""
    key = key_of(seed)
    some = Pattern(tuple(shares), phase, key)
    expected = mixing.in_phase(tuple(shares), tuple(key.tolist()), phase, place)
    assert expected == counted(some, place)


@given(SHARES, PLACES, st.integers(1, 40_000), st.data())
def test_all_ways_agree(shares: list[int], place: int, num: int, data: st.DataObject) -> None:
    """A run is its slots one by one, counts are those of what is dealt, and finding is inverse."""
    some = Pattern(tuple(shares), 0, words(1, 2))
    sources, numbers = dealt(some, place, num)
    k = len(shares)
    first = np.array(counted(some, place))
    assert (first + np.bincount(sources, minlength=k)).tolist() == counted(some, place + num)
    for j in range(k):
        mine = numbers[sources == j]
        assert np.array_equal(mine, first[j] + np.arange(len(mine)))
    for at in data.draw(st.lists(st.integers(0, num - 1), max_size=6), label="at"):
        stop = min(num, at + data.draw(st.integers(1, 300), label="size"))
        here, there = dealt(some, place + at, stop - at)
        assert np.array_equal(here, sources[at:stop])
        assert np.array_equal(there, numbers[at:stop])
    for j in np.unique(sources).tolist():
        mine = np.flatnonzero(sources == j)[:50]
        assert (place + mine).tolist() == some.find(j, 0, numbers[mine]).tolist()


@given(SHARES, seeds)
def test_counts_stay_within_reach(shares: list[int], seed: int) -> None:
    """No source is further from its share than `reach` anywhere, and exact after each period."""
    some = Pattern(tuple(shares), 0, key_of(seed))
    within, period = some.reach / 2**32 + 1e-7, sum(shares)
    assert within < 3.36 + 1e-7
    kinds = len(shares) - shares.count(0)
    assert within < {1: 1e-6, 2: 1, 3: 2}.get(kinds, 4) + 1e-7
    for block in (0, 2**30):
        sources, _ = dealt(some, block * int(some._shares.sum()), 2**16)
        places = np.arange(1, len(sources) + 1)
        for j, share in enumerate(shares):
            off = np.cumsum(sources == j) - places * (share / period)
            assert abs(off).max() <= within
            assert abs(off[period - 1 :: period]).max(initial=0) < 1e-6


def grid(num: int) -> list[int]:
    """Return words that cover [0, 2**32) evenly, each in the middle of its part."""
    return [(2 * i + 1) * 2**31 // num for i in range(num)]


def odds_of(c: int, slots: int, minor: int) -> dict[int, Fraction]:
    """Return with which probability a unit is dealt each slot, over all words."""
    odds: dict[int, Fraction] = defaultdict(Fraction)
    if c % 2 == 0:
        for w0 in grid(slots):
            drawn = {c // 2: (w0, 0, 0, 0)}
            odds[mixing.slot_of(c, slots, minor, drawn.__getitem__)] += Fraction(1, slots)
        return odds
    a, b = c * slots % minor, (c + 1) * slots % minor
    coins = grid(math.lcm(slots - a, slots - minor + b))
    parts = grid(math.lcm(*range(1, slots // minor + 2)))
    for before in grid(slots):
        for after in grid(slots) if b else [0]:
            for w1 in coins:
                for w2 in parts:
                    drawn = {c // 2: (before, w1, w2, 0), c // 2 + 1: (after, 0, 0, 0)}
                    slot = mixing.slot_of(c, slots, minor, drawn.__getitem__)
                    others = [c - 1, c + 1] if b else [c - 1]
                    for other in others:
                        assert slot != mixing.slot_of(other, slots, minor, drawn.__getitem__)
                    num = slots * (slots if b else 1) * len(coins) * len(parts)
                    odds[slot] += Fraction(1, num)
    return odds


@pytest.mark.parametrize(
    ("slots", "minor"), [(2, 1), (4, 2), (5, 2), (6, 2), (7, 2), (7, 3), (8, 3), (9, 3), (9, 4)]
)
def test_every_slot_has_exact_odds(slots: int, minor: int) -> None:
    """Over all coins of a node, each slot is the minority's with probability m / S, exactly."""
    total: dict[int, Fraction] = defaultdict(Fraction)
    for c in range(minor):
        for slot, chance in odds_of(c, slots, minor).items():
            total[slot] += chance
            window = range(c * slots // minor, ((c + 1) * slots - 1) // minor + 1)
            shared = min((c + 1) * slots, (slot + 1) * minor) - max(c * slots, slot * minor)
            assert slot in window
            assert chance == Fraction(shared, slots)  # its tickets, of those of the unit
    assert dict.fromkeys(range(slots), Fraction(minor, slots)) == dict(total)


@given(SHARES | st.lists(st.integers(1, 3), min_size=13, max_size=60))
def test_trees_are_the_oracles(shares: list[int]) -> None:
    """Of all candidates the one with the least reach, numbered breadth first."""
    each = mixing.of_a_block(shares)
    some = Pattern(tuple(shares), 0, words(1, 2))
    assert list(each) == some._shares.tolist()
    expected = []
    queue = [mixing.tree_of(each)]
    for node in queue:  # which grows
        if len(node) == 3:
            queue += node[1:]
    number = mixing.numbers_of(each)
    for node in (node for node in queue if len(node) == 3):
        children = [number[id(c)] if len(c) == 3 else ~c[1] for c in node[1:]]
        expected.append([node[0], node[1][0], *children])
    nodes = some._nodes[:, [tree.SLOTS, tree.MINOR, tree.FIRST, tree.SECOND]]
    assert expected == nodes.tolist()
    for slots, minor, factor, shift in some._nodes[:, [0, 1, tree.FACTOR, tree.SHIFT]].tolist():
        for y in (minor - 1, minor, 7 * slots, 2**tree.NUMERATOR - 1):
            assert y // minor == y * factor >> shift


def test_within() -> None:
    """It is known of a mixture, in its last phase of weights."""
    sources = {name: ip.Shuffle(50 + i, seed=i) for i, name in enumerate("abc")}
    assert 0 == ip.Mixture(sources, {"a": 1, "b": 0, "c": 0}).within
    assert 0.5 == ip.Mixture(sources, {"a": 1, "b": 1, "c": 0}).within
    assert 0.875 == ip.Mixture(sources, {"a": 7, "b": 1, "c": 0}).within
    changed = ip.Mixture(sources, {"a": 7, "b": 1, "c": 0}).with_phase(9, dict.fromkeys("abc", 1))
    assert 0.8333 == round(changed.within, 4)


def test_the_longest_period_and_the_most_sources() -> None:
    """Shares of 2**20 slots, and 65,536 sources, whose nodes have numbers of 16 bits."""
    shares = (2**20 - 3, 1, 2)
    some = Pattern(shares, 4095, words(2**32 - 1, 7))
    sources, _ = dealt(some, 2**20, 2**20)
    assert list(shares) == np.bincount(sources).tolist()
    rare = np.flatnonzero(sources)[:1]
    first = int(sources[rare[0]])  # its share is what a block before this one dealt of it
    assert (2**20 + rare).tolist() == some.find(first, 0, np.array([shares[first]])).tolist()
    many = Pattern((1,) * 2**16, 0, words(3, 4))
    sources, numbers = dealt(many, 3 * 2**16, 2**16)
    assert np.array_equal(np.arange(2**16), np.sort(sources))
    assert {3} == set(numbers.tolist())
    assert 3 * 2**16 + 5 == many.find(int(sources[5]), 0, np.array([3]))[0]
