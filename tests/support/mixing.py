"""What a mixture reads, in plain Python, as docs/specification.md says: too simple to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm
from typing import Any

from tests.support.oracles import key_words, philox

MIXTURE = 6  # purpose of key words
FULL = 2**32
WHOLE = 2**62

Phases = Sequence[tuple[int, Sequence[int]]]
Tree = tuple[Any, ...]  # (share, source), or (share, minority, majority)
Words = Callable[[int], Sequence[int]]  # the three words of a pair of units


def key_of(seed: int) -> tuple[int, ...]:
    """Return the key of a mixture's coins."""
    return tuple(key_words(seed, MIXTURE, 0, 2))


def lowest(shares: Sequence[int]) -> tuple[int, ...]:
    """Return shares divided by what all of them can be divided by."""
    common = gcd(*shares)
    return tuple(share // common for share in shares)


def integers(weights: Sequence[Any]) -> tuple[int, ...]:
    """Return fractions, or texts of numbers, as the smallest integers in proportion."""
    exact = [Fraction(weight) for weight in weights]
    scale = lcm(*(each.denominator for each in exact))
    return lowest([int(each * scale) for each in exact])


def shares_of(weights: Sequence[Any]) -> tuple[int, ...]:
    """Return the shares of weights."""
    shares = integers(weights)
    whole = sum(shares)
    if whole < WHOLE:
        return shares
    return lowest([0 if each == 0 else max(1, each * 2**61 // whole) for each in shares])


def huffman(leaves: list[Tree]) -> Tree:
    """Join the two smallest again and again; of equal ones those that come first."""
    trees = list(leaves)
    while len(trees) > 1:
        first, second = sorted(trees, key=lambda tree: tree[0])[:2]
        left = [tree for tree in trees if tree is not first and tree is not second]
        trees = [*left, (first[0] + second[0], first, second)]
    return trees[0]


def reaches(tree: Tree, above: int = 0) -> Iterator[int]:
    """Yield how far each source may be from its share, in 2**-32; `above`: the tree itself."""
    if len(tree) == 2:
        yield above
        return
    share, minority, majority = tree
    q = share // gcd(share, minority[0])
    own = FULL - FULL // q if share < FULL else FULL
    for child in (minority, majority):
        yield from reaches(child, own - (-above * child[0] // share))


def tree_of(shares: Sequence[int]) -> Tree:
    """Return the tree of shares: of all candidates the first with the least reach."""
    leaves: list[Tree] = [(share, source) for source, share in enumerate(shares) if share]
    small = sorted(leaves)
    candidates = [huffman(leaves)]
    for alone in range(1, min(15, len(leaves) - 2) + 1):
        both = huffman(small[:alone]), huffman(small[alone:])
        both = both if both[0][0] <= both[1][0] else both[::-1]
        candidates.append((both[0][0] + both[1][0], *both))
    return min(candidates, key=lambda tree: max(reaches(tree)))


class Dealer:
    """Which slots of a node are its minority's: p of every q."""

    def __init__(self, p: int, q: int, words: Words, bits: int | None = None) -> None:
        self.p, self.q, self.words = p, q, words
        window = (q // p).bit_length() - 1
        self.bits: int = bits or bits_of(p, q)
        self.slot_ticks: int = 2 ** (self.bits - 2 - window)
        self.window_ticks = q * self.slot_ticks // p
        self._known: dict[int, int] = {}

    def edge(self, c: int) -> int:
        """Return the tick at which the window of unit c begins."""
        return c * self.q * self.slot_ticks // self.p

    def slot(self, c: int) -> int:
        """Return the slot of unit c of the minority."""
        if c not in self._known:
            self._known[c] = self.odd(c) if c % 2 else self.even(c)
        return self._known[c]

    def even(self, c: int) -> int:
        """Return the slot of a random tick of the window."""
        width = self.edge(c + 1) - self.edge(c)
        tick = self.edge(c) + (self.words(c // 2)[0] * width >> self.bits)
        return tick // self.slot_ticks

    def odd(self, c: int) -> int:
        """Return a slot that the units before and after have left."""
        full, slot, window = 1 << self.bits, self.slot_ticks, self.window_ticks
        _, w1, w2 = self.words(c // 2)
        lowest, a = divmod(self.edge(c), slot)
        highest, e = (self.edge(c + 1) - 1) // slot, self.edge(c + 1) % slot
        if a > 0 and self.slot(c - 1) != lowest and w1 * (window - a) < (slot - a) * full:
            return lowest
        others = (full - 1 - w1) * (window - slot + e)
        if e > 0 and self.slot(c + 1) != highest and others < e * full:
            return highest
        inner = range(lowest + (a > 0), highest + (e == 0))
        return inner.start + w2 * (inner.stop - inner.start) // full

    def before(self, n: int) -> int:
        """Return how many units of the minority are dealt slots before slot n."""
        near = n * self.p // self.q  # a window is at most one slot longer than q / p
        units = range(max(0, near - 3), near + 4)
        return units.start + sum(self.slot(c) < n for c in units)


def bits_of(p: int, q: int) -> int:
    """Return how long the words of a node are."""
    return 32 if q // p < 2**12 else 64


def words_of(key: Sequence[int], phase: int, node: int, bits: int) -> Words:
    """Return the words of a node, by pair of units."""

    def words(pair: int) -> list[int]:
        low, high, tag = pair % FULL, pair // FULL, node << 12 | phase
        first = philox((low, high, 0, tag), key)[:3]
        if bits == 32:
            return first
        second = philox((low, high, 1, tag), key)[:3]
        return [w * FULL + u for w, u in zip(first, second, strict=True)]

    return words


class Phase:
    """A phase of weights, whose places and numbers of units count from its start."""

    def __init__(self, shares: Sequence[int], key: Sequence[int], number: int) -> None:
        self.shares = lowest(shares)
        self.tree = tree_of(self.shares)
        self.within = max(reaches(self.tree))
        self.dealers: dict[int, Dealer] = {}
        self.nodes: list[Tree] = []
        queue = [self.tree]
        for tree in queue:  # which grows: breadth first, the minority first
            if len(tree) == 3:
                common = gcd(tree[0], tree[1][0])
                p, q = tree[1][0] // common, tree[0] // common
                words = words_of(key, number, len(self.nodes), bits_of(p, q))
                self.dealers[id(tree)] = Dealer(p, q, words)
                self.nodes.append(tree)
                queue += tree[1:]

    def count(self, place: int) -> list[int]:
        """Return how many units of each source come before a place."""
        counts = [0] * len(self.shares)
        left = [(self.tree, place)]
        for tree, n in left:  # which grows
            if len(tree) == 2:
                counts[tree[1]] = n
                continue
            minor = self.dealers[id(tree)].before(n)
            left += [(tree[1], minor), (tree[2], n - minor)]
        return counts


phase_of = lru_cache(maxsize=64)(Phase)


@lru_cache(maxsize=2**12)
def in_phase(shares: tuple[int, ...], key: tuple[int, ...], number: int, place: int) -> list[int]:
    """Return how many units of each source come before a place of a phase."""
    return phase_of(shares, key, number).count(place)


def counts(phases: Phases, key: tuple[int, ...], place: int) -> list[int]:
    """Return how many units of each source come before a place."""
    total = [0] * len(phases[0][1])
    for number, (begin, shares) in enumerate(phases):
        end = phases[number + 1][0] if number + 1 < len(phases) else place
        if begin < place:
            some = in_phase(tuple(shares), key, number, min(end, place) - begin)
            total = [all_ + more for all_, more in zip(total, some, strict=True)]
    return total


def unit(phases: Phases, key: tuple[int, ...], place: int) -> tuple[int, int]:
    """Return the source that is read at a place, and the number of its unit."""
    first, then = counts(phases, key, place), counts(phases, key, place + 1)
    (source,) = (j for j, (x, y) in enumerate(zip(first, then, strict=True)) if x != y)
    return source, first[source]
