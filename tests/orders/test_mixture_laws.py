"""The laws of a mixture, and that each of them tells planted mistakes.

Windows and chances are laws of one node, and are asked of the oracle, which the kernels equal at
every place (test_mixture_pattern.py); counts are asked of the kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders.phases import Phases
from tests.support import mixes, mixing
from tests.support.mixing import Dealer, bits_of

RATIOS = [(p, q) for q in range(2, 12) for p in range(1, q // 2 + 1) if gcd(p, q) == 1]


@st.composite
def ratios(draw: st.DrawFn) -> tuple[int, int]:
    """Draw the parts that minorities get of nodes, in lowest terms."""
    q = draw(st.integers(2, 60) | st.integers(2, 2**62 - 1) | st.sampled_from([4096, 2**61]))
    p = draw(st.integers(1, q // 2) | st.integers(1, min(q // 2, 50)))
    return p // gcd(p, q), q // gcd(p, q)


def dealer(p: int, q: int, seed: int = 0, kind: type[Dealer] = Dealer) -> Dealer:
    """Return a node of the oracle."""
    return kind(p, q, mixing.words_of((seed, 9), 3, 5, bits_of(p, q)))


def check_windows(node: Dealer, first: int, num: int) -> None:
    """Each unit has a slot of its window, and no other has it."""
    p, q, units = node.p, node.q, range(first, first + num)
    assert node.window_ticks >= 2 * node.slot_ticks >= 4
    slots = [node.slot(c) for c in units]
    assert len(set(slots)) == num
    for c, slot in zip(units, slots, strict=True):
        assert c * q // p <= slot <= ((c + 1) * q - 1) // p


@given(ratios(), st.integers(0, 2**40) | st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_windows(ratio: tuple[int, int], first: int, seed: int) -> None:
    """Law 1, of nodes of any ratio, at the start and far off."""
    check_windows(dealer(*ratio, seed), first, 60)


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


def chances_of(p: int, q: int, c: int, bits: int, kind: type[Dealer]) -> dict[int, Fraction]:
    """Return with which chance a unit gets each slot, over all words of its node."""
    chances: dict[int, Fraction] = defaultdict(Fraction)
    drawn = {pair: [0, 0, 0] for pair in (c // 2 - 1, c // 2, c // 2 + 1)}

    def slot(of: int, which: int, word: int) -> int:
        drawn[of // 2][which] = word
        return kind(p, q, drawn.__getitem__, bits).slot(of)

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


def check_chances(p: int, q: int, bits: int, kind: type[Dealer] = Dealer) -> None:
    """Over all words, every slot of a period is the minority's with chance p / q, nearly."""
    total: dict[int, Fraction] = defaultdict(Fraction)
    for c in range(p + 1):  # the last one is of the next period, but may share a slot
        for slot, chance in chances_of(p, q, c, bits, kind).items():
            total[slot] += chance
    for slot in range(q):
        assert abs(total[slot] - Fraction(p, q)) <= Fraction(8, 2**bits)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("p", "q"), [*RATIOS, (13, 27), (1, 40), (3, 100)])
def test_chances(p: int, q: int, bits: int) -> None:
    """Law 4: over all words that a node can draw, of either length."""
    check_chances(p, q, bits)


def check_exact(node: Dealer, times: int) -> None:
    """After so many times q slots, the minority had so many times p."""
    assert times * node.p == node.before(times * node.q)


@given(ratios(), st.integers(0, 2**60), st.integers(0, 2**32 - 1))
def test_nodes_are_exact(ratio: tuple[int, int], times: int, seed: int) -> None:
    """Law 3, of nodes of any ratio, however far off."""
    check_exact(dealer(*ratio, seed), times % (2**63 // ratio[1]))


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
    st.lists(mixes.shares((3, *mixes.MANY)), min_size=1, max_size=1)
    | st.lists(mixes.shares((3,)), min_size=2, max_size=3)
    | st.lists(mixes.shares((9,)), min_size=2, max_size=3),
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


class Unasked(Dealer):
    """An odd unit asks neither the unit before it nor the one after it."""

    def free(self, c: int, slot: int) -> bool:
        return True


class UnaskedAfter(Dealer):
    """An odd unit does not ask the unit after it."""

    def free(self, c: int, slot: int) -> bool:
        return slot != self.edge(c + 1) // self.slot_ticks or super().free(c, slot)


class RoundedUp(Dealer):
    """Windows begin at whole slots."""

    def edge(self, c: int) -> int:
        return -(-c * self.q // self.p) * self.slot_ticks


class WithoutRest(Dealer):
    """Each window begins whole ticks after the one before."""

    def edge(self, c: int) -> int:
        return c * self.window_ticks


class OfItsWidth(Dealer):
    """An odd unit's coin is weighed as if it always got a slot that its neighbours leave."""

    def odd(self, c: int) -> int:
        self.window_ticks, ticks = 2 * self.window_ticks, self.window_ticks
        try:
            return super().odd(c)
        finally:
            self.window_ticks = ticks


@pytest.mark.parametrize(
    ("kind", "law"),
    [
        (Unasked, lambda kind: check_windows(dealer(3, 7, kind=kind), 0, 60)),
        (UnaskedAfter, lambda kind: check_windows(dealer(3, 7, kind=kind), 0, 60)),
        (RoundedUp, lambda kind: check_chances(2, 5, 32, kind)),
        (OfItsWidth, lambda kind: check_chances(3, 7, 32, kind)),
        (WithoutRest, lambda kind: check_exact(dealer(3, 7, kind=kind), 2**40)),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_planted_mistakes_break_a_law(
    kind: type[Dealer], law: Callable[[type[Dealer]], None]
) -> None:
    """What is right in its place passes, and each mistake does not."""
    law(Dealer)
    with pytest.raises(AssertionError):
        law(kind)


def test_sizes_of_a_large_mix_are_exact() -> None:
    """A source of four samples next to a million is read as often as its size says."""
    sizes = {"big": 1_000_003, "small": 4, "other": 12_400_000}
    sources = {name: ip.Shuffle(n, seed=i) for i, (name, n) in enumerate(sizes.items())}
    mixture = ip.Mixture(sources, sizes)
    assert mixture.traits.reads == "once"
    small = range(1_000_003, 1_000_007)
    assert [1] * 4 == mixture.count(0, small).tolist() == mixture.count(10**6, small).tolist()
