"""Bins by length and by group: the oracle, the laws of their contents, bounds, known answers."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders import packed
from indexplan.orders.strata import _edges, _sorted
from indexplan.stores.tables import TABLES
from tests.support import packed_oracle, strata_oracle
from tests.support.lengths import lengths
from tests.support.units import units_of


@given(
    st.lists(st.tuples(st.integers(1, 60) | st.integers(1, 2**40), st.integers(1, 40)), min_size=1),
    st.integers(1, 12),
)
def test_edges_are_the_oracles(counts: list[tuple[int, int]], num_buckets: int) -> None:
    """Buckets should end where the design says, of lengths that many samples have."""
    row = [length for length, count in counts for _ in range(count)]
    _, keys, places = _sorted(max(row) - np.array(row), max(row) - min(row))
    assert strata_oracle.edges(row, num_buckets) == _edges(keys, places, num_buckets)


ROW = [1 + i % 5 for i in range(400)]


@pytest.mark.parametrize(
    "order_of",
    [
        lambda seed: ip.LengthGrouped(ROW, 4, num_buckets=5, seed=seed),
        lambda seed: ip.TokenBudget(ROW, 20, num_buckets=5, seed=seed),
        lambda seed: ip.Packed(ROW, 12, seed=seed),
        lambda seed: ip.Grouped(ROW, 4, seed=seed),
    ],
)
def test_other_seeds_and_epochs_mix_anew(order_of: Callable[[int], ip.Order]) -> None:
    """L9: few pairs of samples share a bin again, and few bins are dealt where they were."""

    def pairs(bins: list[list[int]]) -> set[tuple[int, int]]:
        return {(a, b) for unit in bins for a in unit for b in unit if a < b}

    first = units_of(order_of(1), 0)
    for other in (units_of(order_of(1), 1), units_of(order_of(2), 0)):
        assert len(pairs(first) & pairs(other)) < 0.2 * len(pairs(first))
        kept = [set(one) & set(two) for one, two in zip(first, other, strict=False)]
        assert sum(map(bool, kept)) < len(kept) / 2
        # bins, and not only their samples, are shuffled
        held = [[[ROW[sample] for sample in unit] for unit in bins] for bins in (first, other)]
        assert held[0] != held[1]


def padding(order: Any) -> float:
    """Return how much of a padded epoch is padding."""
    row, bins = order.lengths.array, units_of(order, 0)
    return 1 - row.sum() / sum(int(row[unit].max()) * len(unit) for unit in bins)


def test_padding_is_little_and_the_same_in_any_unit() -> None:
    """Lengths in tokens and in millionths of them give like bins."""
    rng = np.random.default_rng(0)
    row = rng.lognormal(5, 1, 8000).astype(np.int64) + 1
    tokens = padding(ip.LengthGrouped(row, 8, num_buckets=16))
    finer = row * 10**6 + rng.integers(10**6, size=8000)  # nearly all of them different
    millionths = padding(ip.LengthGrouped(finer, 8, num_buckets=16))
    assert abs(tokens - millionths) < 0.01
    assert tokens < 0.11  # buckets of equal counts have 1.5 times as much


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
    longer, name = np.tile(LENGTHS, 30), fields(order)[0].name
    large: Any = replace(order, **{name: longer % 7 * 5 if name == "groups" else longer})
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
def test_templates_are_shared(order: Any) -> None:
    """Orders of one column share one, whatever their seeds, while one of them lives."""
    first, *others = (each.name for each in fields(order))
    one, other = replace(order), replace(order, seed=77)
    assert one._template is other._template is order._template
    alone = replace(order, **{first: [5, 10, 5, 15], "seed": 1})
    assert alone._template is not one._template
    for name in others:  # whatever else differs, bins may be cut elsewhere
        if name != "seed" and isinstance(value := getattr(order, name), int):
            other = replace(order, **{name: value + (4 if name == "max_samples" else 1)})
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


RNG = np.random.default_rng(0)
CHATS = np.clip(np.round(RNG.lognormal(5.4, 1, 20_000)), 1, 4096).astype(np.int64)


@given(lengths(40), st.integers(1, 7), st.integers(1, 9) | st.none(), st.integers(0, 100))
def test_any_tail_is_the_oracles(
    row: list[int], factor: int, samples: int | None, tail: int
) -> None:
    """How many tokens fill what others leave decides the bins, whichever of them is the best."""
    before = packed.TAILS
    packed.TAILS = packed_oracle.TAILS = (tail,)
    try:
        order = ip.Packed(row, max(row) * factor, max_samples=samples, min_stratum=2)
        made = packed_oracle.template(row, max(row) * factor, samples, 2)
        assert strata_oracle.dealt(*made, 0, 0) == units_of(order, 0)
    finally:
        packed.TAILS = packed_oracle.TAILS = before


def test_which_tail_is_taken() -> None:
    """Of those with hardly more bins than the fewest, that with the least squares; then the first.

    Each number stands for a pattern: so many bins of so many samples.
    """

    def kept(*made: list[tuple[int, int]]) -> int:
        tried: list[int] = []

        def pack(tail: int) -> Any:
            tried.append(tail)
            groups = np.zeros((9, 4), np.int64)
            for row, (count, size) in enumerate(made[packed.TAILS.index(tail) % len(made)]):
                groups[row, 1], groups[row, 3] = size, count
            return np.array([tail]), groups

        (tail,) = packed._best(pack)[0].tolist()
        assert tried.count(tail) <= 2
        return packed.TAILS.index(tail)

    most = packed.ENOUGH
    even, uneven, more = [(most, 5)], [(most - 1, 5), (1, 6)], [(most + 1, 4)]
    assert kept(even) == 0
    assert kept(uneven, even) == 1
    assert kept(uneven, uneven, even, more) == 3
    assert kept([(most + 2, 1)], even, uneven) == 1
    assert kept([(most + 2, 1)], [(most + 1, 3)], [(2, 500), (most - 2, 1)]) == 1
    assert kept([(most - 1, 5)], [(most, 3)]) == 0
    assert kept([(2, 2**31 - 1)], [(2, 2**31 - 2)]) == 1
    assert kept(*[uneven] * (len(packed.TAILS) - 1), even) == len(packed.TAILS) - 1


def test_bins_are_full_and_mixed() -> None:
    """Hardly any place is left, and steps are as alike in their lengths as random samples are."""
    order = ip.Packed(CHATS, 4096, seed=1)
    bins = units_of(order, 0)
    assert CHATS.sum() / (4096 * len(bins)) > 0.998
    batches = [np.concatenate(bins[i : i + 16]) for i in range(0, len(bins) - 15, 16)]
    spread = np.var([CHATS[batch].mean() for batch in batches])
    alone = np.mean([CHATS.var() / len(batch) for batch in batches])  # of random ones
    assert spread < alone
