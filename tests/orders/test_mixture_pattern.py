"""Shares and the pattern of a mixture: the oracle's at every place, and its laws.

Chances are a law of one node, and are asked of the oracle, which the kernels equal at every place;
counts are asked of the kernels.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from math import gcd
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
from tests.golden.lines import cases
from tests.support import mixing
from tests.support.mixing import WHOLE, Dealer, shares_of
from tests.support.strategies import seeds

PLACES = st.integers(0, 2**17) | st.integers(2**40, 2**62) | st.integers(2**63 - 9, 2**63 - 1)
PHASES = st.integers(0, 2**12 - 1)


FEW, MANY = (2, 2, 3, 4, 5, 9, 30), (140, 500, 3000)
SIZES = 1, 4, 37, 4095, 4096, 4097, 90_000, 1_000_003, 12_400_000

# From a random source and the number of sources, the weight of one.
KINDS: dict[str, Callable[[random.Random, int], Any]] = {
    "small integers": lambda drawn, _: drawn.randint(0, 9),
    "decimals": lambda drawn, _: round(drawn.random(), drawn.choice([1, 2, 4, 6])),
    "floats": lambda drawn, _: drawn.random() ** drawn.choice([1, 4]),
    "ratios": lambda drawn, _: drawn.randint(1, 7) / drawn.choice([3, 7, 9]),
    "sizes": lambda drawn, _: drawn.choice(SIZES),
    "nine orders": lambda drawn, _: int(10 ** (9 * drawn.random())),
    "far apart": lambda drawn, _: drawn.choice([1, 1e-12, 0.5, 1e-300, 1 / 7]),
    "near the most": lambda drawn, k: WHOLE // k - drawn.randint(1, 1000),
    "past the most": lambda drawn, k: drawn.randint(WHOLE // k, 5 * WHOLE),
    "in powers": lambda drawn, k: 2 ** drawn.randint(0, 60 - k.bit_length()),
}


@st.composite
def weights(draw: st.DrawFn, nums: tuple[int, ...] = FEW) -> list[Any]:
    """Draw as many weights of one kind; with zeros, if it has any."""
    kind, k = draw(st.sampled_from(sorted(KINDS))), draw(st.sampled_from(nums))
    drawn = random.Random(draw(st.integers(0, 2**32)))  # noqa: S311  lists of thousands take long
    found = [KINDS[kind](drawn, k) for _ in range(k)]
    return found if any(found) else [*found[1:], 1]


def drawn_shares(nums: tuple[int, ...] = FEW) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw the shares of as many weights, as the oracle computes them."""
    return weights(nums).map(lambda each: shares_of([*map(written, each)]))


def written(weight: Any) -> Any:
    """Return a weight as it is written."""
    return repr(weight) if isinstance(weight, float) else weight


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


@pytest.mark.parametrize("case", cases("mixture_v1"), ids=lambda case: str(case["weights"])[:40])
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


@given(drawn_shares(), PHASES, PLACES, seeds)
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


@given(drawn_shares((*FEW, *MANY)), PLACES, st.integers(1, 40_000), st.data())
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


@given(drawn_shares((*FEW, 140)) | st.lists(st.integers(1, 3), min_size=13, max_size=60))
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


RATIOS = [(p, q) for q in range(2, 12) for p in range(1, q // 2 + 1) if gcd(p, q) == 1]


def parts_of(outcome: Callable[[int], int], bits: int) -> list[tuple[int, int]]:
    """Return words with the outcomes of all, and how many have each; it rises with the word."""
    found, start, end = [], 0, 2**bits
    while start < end:
        low, high = start, end  # the last word with the outcome of `start`, by halves
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if outcome(middle) == outcome(start) else (low, middle)
        found.append((start, high - start))
        start = high
    return found


def chances_of(p: int, q: int, c: int, bits: int) -> dict[int, Fraction]:
    """Return with which chance a unit gets each slot, over all words of its node."""
    chances: dict[int, Fraction] = defaultdict(Fraction)
    drawn = {pair: [0, 0, 0] for pair in (c // 2 - 1, c // 2, c // 2 + 1)}

    def slot(of: int, which: int, word: int) -> int:
        drawn[of // 2][which] = word
        return Dealer(p, q, drawn.__getitem__, bits).slot(of)

    full = 2**bits
    if c % 2 == 0:
        for word, num in parts_of(lambda word: slot(c, 0, word), bits):
            chances[slot(c, 0, word)] += Fraction(num, full)
        return chances
    first, last = c * q // p, ((c + 1) * q - 1) // p  # of neighbours only what they take matters

    def of_before(word: int) -> int:
        return max(first - 1, slot(c - 1, 0, word))

    def of_after(word: int) -> int:
        return min(last + 1, slot(c + 1, 0, word))

    for before, num_before in parts_of(of_before, bits):
        for after, num_after in parts_of(of_after, bits):
            drawn[c // 2][0], drawn[c // 2 + 1][0] = before, after
            taken = {slot(c - 1, 0, before), slot(c + 1, 0, after)}
            for coin, num_coins in parts_of(lambda word: slot(c, 1, word), bits):
                drawn[c // 2][1] = coin
                for word, num in parts_of(lambda word: slot(c, 2, word), bits):
                    found = slot(c, 2, word)
                    assert found not in taken
                    chances[found] += Fraction(num_before * num_after * num_coins * num, full**4)
                drawn[c // 2][2] = 0
    return chances


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("p", "q"), [*RATIOS, (13, 27), (1, 40), (3, 100)])
def test_chances(p: int, q: int, bits: int) -> None:
    """Law 4: over all words of either length, each slot is the minority's with chance p / q."""
    total: dict[int, Fraction] = defaultdict(Fraction)
    for c in range(p + 1):  # the last one is of the next period, but may share a slot
        for slot, chance in chances_of(p, q, c, bits).items():
            total[slot] += chance
    for slot in range(q):
        assert abs(total[slot] - Fraction(p, q)) <= Fraction(8, 2**bits)


def checked_at_every_place(phases: Phases, number: int, start: int, num: int) -> None:
    """Law 2 at all places of a run in a phase, which begins at `start` places of the phase."""
    begin, shares = phases.phases[number]
    whole, reach = sum(shares), phases.pattern(number).reach
    assert reach < 3.36 * 2**32
    kinds = len(shares) - shares.count(0)
    assert reach <= {1: 0, 2: 1, 3: 2}.get(kinds, 4) * 2**32
    sources, numbers = phases.deal(begin + start, np.array([0]), np.array([num]))
    base, first = phases.count(begin).tolist(), phases.count(begin + start).tolist()
    # a source's count is furthest below its share just before it is read, and furthest above after
    ends = [
        (start + num, j, n + c)
        for j, (n, c) in enumerate(
            zip(first, np.bincount(sources, minlength=len(shares)).tolist(), strict=True)
        )
    ]
    reads = zip(range(start, start + num), sources.tolist(), numbers.tolist(), strict=True)
    edges = [each for t, j, n in reads for each in ((t, j, n), (t + 1, j, n + 1))]
    for t, j, n in [*edges, *ends]:
        assert 2**32 * abs((n - base[j]) * whole - shares[j] * t) <= reach * whole


@given(
    st.lists(drawn_shares((3, *MANY)), min_size=1, max_size=1)
    | st.lists(drawn_shares((3,)), min_size=2, max_size=3)
    | st.lists(drawn_shares((9,)), min_size=2, max_size=3),
    st.integers(0, 2**61),
    st.integers(0, 2**32 - 1),
)
def test_counts(rows: list[tuple[int, ...]], start: int, seed: int) -> None:
    """Laws 2 and 3: near its share at every place of each phase, and exact at multiples."""
    places = [0, 10_001, 2**62][: len(rows)]
    phases = Phases(tuple(zip(places, rows, strict=True)), np.array([seed, 1], np.uint32))
    for number, shares in enumerate(rows):
        last = number == len(rows) - 1
        length = (2**63 - 1 if last else places[number + 1]) - places[number]
        for first in (0, min(start, length - 2000)):
            checked_at_every_place(phases, number, first, 2000)
        most = length // sum(shares)
        base = phases.count(places[number])
        for times in {min(1, most), most // 3, most}:
            count = phases.count(places[number] + times * sum(shares)) - base
            assert [times * share for share in shares] == count.tolist()


def shares(*weights: Any) -> tuple[int, ...]:
    """Return the shares of a mixture with these weights."""
    names = [str(i) for i in range(len(weights))]
    ((_, found),) = phases_of(dict(zip(names, weights, strict=True)), names)
    return found


@given(weights((*FEW, *MANY)))
def test_shares_are_the_weights(weights: list[Any]) -> None:
    """Exactly, if their sum allows it; else to within what the specification says."""
    found = shares(*weights)
    exactly = [written(each) for each in weights]
    assert mixing.shares_of(exactly) == found
    exact = mixing.integers(exactly)
    all_exact, all_found = sum(exact), sum(found)
    assert [each > 0 for each in exact] == [each > 0 for each in found]
    for share, each in zip(found, exact, strict=True):
        wanted, got = each * all_found, share * all_exact
        if all_exact < 2**62:
            assert wanted == got
        elif share > 1:
            assert abs(got - wanted) <= wanted * (Fraction(1, share) + Fraction(len(found), 2**61))


def test_numbers_of_all_kinds() -> None:
    """As people write them; what a decimal or a fraction says is what is dealt."""
    assert (7, 2, 1) == shares(0.7, 0.2, 0.1) == shares(70, 20, 10)
    assert (1, 1, 1) == shares(1 / 3, 1 / 3, 1 / 3) == shares(1e300, 1e300, 1e300)
    assert (3, 0, 1) == shares(Fraction(3, 4), 0, np.float64(0.25))
    assert (2, 1) == shares(Fraction(2, 3), Fraction(1, 3))
    assert (2, 1) == shares(2 / 3, 1 / 3)
    assert (1_000_003, 4) == shares(1_000_003, 4) == shares(Decimal("1.000003"), Decimal("4E-6"))
    assert (10**12, 10**3, 1) == shares(1, 1e-9, 1e-12)
    assert (2**53 + 1, 1) == shares(np.int64(2**53 + 1), np.uint8(1))
    assert (0, 1) == shares(-0.0, 5e-324)


def test_those_of_a_dict_form_are_in_lowest_terms() -> None:
    """Shares passed to a mixture are divided by what all can be; a dict form has no other ones."""
    sources = {"a": ip.Shuffle(9), "b": ip.Shuffle(8)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 3})
    assert mixture == ip.Mixture(sources, [(0, (2**14, 3 * 2**14))])
    plan = json.loads(ip.Plan(mixture, batch_size=1).to_json())
    assert [[0, [1, 3]]] == plan["order"]["phases"]
    other = {**plan["order"], "phases": [[0, [2**14, 3 * 2**14]]]}
    with pytest.raises(ip.IndexPlanError, match="phases of an order of mixture-v1 must be as"):
        ip.Plan.from_json(json.dumps({**plan, "order": other}))
    assert not mixture.continues(other, 3, 1)
