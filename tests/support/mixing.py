"""What a mixture reads, in plain Python, as docs/specification.md says: too simple to be wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from math import gcd
from typing import Any

from tests.support.oracles import key_words, philox, shuffle_forward

MIXTURE = 6  # purpose of key words
FULL = 2**32

Phases = Sequence[tuple[int, Sequence[int]]]
Tree = tuple[Any, ...]  # (share, source), or (share, minority, majority)
Words = Callable[[int], Sequence[int]]  # the four words of a pair of units
Coins = tuple[tuple[int, ...], int, int]  # the key, the number of the phase, the block


def key_of(seed: int) -> tuple[int, ...]:
    """Return the key of a mixture's coins."""
    return tuple(key_words(seed, MIXTURE, 0, 2))


def of_a_block(shares: Sequence[int]) -> tuple[int, ...]:
    """Return shares in as many whole periods as 65,536 slots hold, and in one at least."""
    return tuple(share * max(1, 65536 // sum(shares)) for share in shares)


def huffman(leaves: list[Tree]) -> Tree:
    """Join the two smallest again and again; of equal ones those that come first."""
    trees = list(leaves)
    while len(trees) > 1:
        first, second = sorted(trees, key=lambda tree: tree[0])[:2]
        left = [tree for tree in trees if tree is not first and tree is not second]
        trees = [*left, (first[0] + second[0], first, second)]
    return trees[0]


def reaches(tree: Tree, path: tuple[tuple[int, int], ...] = ()) -> Iterator[int]:
    """Yield how far each source may be from its share, in 2**-32."""
    if len(tree) == 2:
        yield sum(own * tree[0] // share for own, share in path)
        return
    share, minority, majority = tree
    own = ((share - gcd(share, minority[0])) << 32) // share
    for child in (minority, majority):
        yield from reaches(child, (*path, (own, child[0])))


@cache
def tree_of(shares: tuple[int, ...]) -> Tree:
    """Return the tree of a block's shares: of all candidates the first with the least reach."""
    leaves: list[Tree] = [(share, source) for source, share in enumerate(shares) if share]
    small = sorted(leaves)
    candidates = [huffman(leaves)]
    for alone in range(1, min(15, len(leaves) - 2) + 1):
        both = huffman(small[:alone]), huffman(small[alone:])
        both = both if both[0][0] <= both[1][0] else both[::-1]
        candidates.append((both[0][0] + both[1][0], *both))
    return min(candidates, key=lambda tree: max(reaches(tree)))


@cache
def numbers_of(shares: tuple[int, ...]) -> dict[int, int]:
    """Return the number of each joined node, by its id: from the root on, the minority first."""
    numbers: dict[int, int] = {}
    queue = [tree_of(shares)]
    for node in queue:  # which grows
        if len(node) == 3:
            numbers[id(node)] = len(numbers)
            queue += node[1:]
    return numbers


def slot_of(c: int, slots: int, minor: int, words: Words) -> int:
    """Return the slot of unit c of a node's minority, which has `minor` of the slots."""
    w0, w1, w2, _ = words(c // 2)
    if c % 2 == 0:
        return (c * slots + (w0 * slots >> 32)) // minor
    first, last = c * slots // minor, ((c + 1) * slots - 1) // minor
    a, b = c * slots % minor, (c + 1) * slots % minor
    may_low = a > 0 and slot_of(c - 1, slots, minor, words) != first
    may_high = b > 0 and slot_of(c + 1, slots, minor, words) != last
    if may_low and w1 * (slots - a) < (minor - a) * FULL:
        return first
    if may_high and (FULL - 1 - w1) * (slots - minor + b) < b * FULL:
        return last
    free = range(first + (a > 0), last + (b == 0))
    return free[w2 * len(free) >> 32]


@lru_cache(maxsize=2**17)
def words_of(coins: Coins, node: int, pair: int) -> list[int]:
    """Return the words of a pair of units of a node."""
    key, phase, block = coins
    return philox((block % FULL, block >> 32, pair, node << 12 | phase), key)


def at_node(coins: Coins, tree: Tree, shares: tuple[int, ...]) -> Words:
    """Return the words of a node, by pair of units."""
    return partial(words_of, coins, numbers_of(shares)[id(tree)])


def whole_block(shares: tuple[int, ...], coins: Coins) -> list[int]:
    """Return the sources of all slots of a block."""
    row = [-1] * sum(shares)
    left = [(tree_of(shares), list(range(len(row))))]
    for tree, mine in left:  # which grows
        if len(tree) == 2:
            for slot in mine:
                row[slot] = tree[1]
            continue
        words = at_node(coins, tree, shares)
        dealt = [slot_of(c, tree[0], tree[1][0], words) for c in range(tree[1][0])]
        minority = {mine[slot] for slot in dealt}
        assert len(minority) == len(dealt)
        left.append((tree[1], sorted(minority)))
        left.append((tree[2], [slot for slot in mine if slot not in minority]))
    return row


def before(n: int, slots: int, minor: int, words: Words) -> int:
    """Return how many units of a node's minority are dealt slots before slot n."""
    near = n * minor // slots  # a window is at most one slot longer than slots / minor
    units = range(max(0, near - 3), min(minor, near + 4))
    return units.start + sum(slot_of(c, slots, minor, words) < n for c in units)


def counts_in(shares: tuple[int, ...], coins: Coins, r: int) -> list[int]:
    """Return how many of a block's first r slots each source has."""
    counts = [0] * len(shares)
    left = [(tree_of(shares), r)]
    for tree, n in left:  # which grows
        if len(tree) == 2:
            counts[tree[1]] = n
            continue
        of_minor = before(n, tree[0], tree[1][0], at_node(coins, tree, shares))
        left += [(tree[1], of_minor), (tree[2], n - of_minor)]
    return counts


@lru_cache(maxsize=2**12)
def in_phase(shares: tuple[int, ...], key: tuple[int, ...], phase: int, place: int) -> list[int]:
    """Return how many units of each source come before a place of a phase."""
    each = of_a_block(shares)
    block, r = divmod(place, sum(each))
    some = counts_in(each, (key, phase, block), r)
    return [block * share + count for share, count in zip(each, some, strict=True)]


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


def shuffles_of(
    sources: Sequence[tuple[int, int]], phases: Phases, epoch_size: int, seed: int, epoch: int
) -> list[int]:
    """Return an epoch of a mixture of shuffles (n, seed), whose earlier phases have fewer."""
    every = [(place, [*shares, *[0] * (len(sources) - len(shares))]) for place, shares in phases]
    row = []
    for place in range(epoch * epoch_size, (epoch + 1) * epoch_size):
        j, number = unit(every, key_of(seed), place)
        n, of = sources[j]
        begin = sum(n for n, _ in sources[:j])
        row.append(begin + shuffle_forward(n, of, number // n, number % n))
    return row


def row_of(mixture: Any, epoch: int) -> list[list[int]]:
    """Return the samples of each unit of an epoch."""
    sources = [source for _, source in mixture.sources]
    ends = [sum(source.num_samples for source in sources[:j]) for j in range(len(sources))]
    row = []
    for place in range(epoch * mixture.epoch_size, (epoch + 1) * mixture.epoch_size):
        j, number = unit(mixture.weights, key_of(mixture.seed), place)
        where = divmod(number, sources[j].num_units(0))
        row.append([ends[j] + sample for sample in sources[j].take(*where).tolist()])
    return row
