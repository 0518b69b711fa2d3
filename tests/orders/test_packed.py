"""Packed bins: full, mixed, of the same shapes in all epochs; and samples that are cut."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.orders import packed
from tests.orders.test_protocol import units
from tests.support import packed_oracle
from tests.support.lengths import lengths

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
        assert packed_oracle.epoch_of(*made, 0, 0) == units(order, 0)
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
    bins = units(order, 0)
    assert CHATS.sum() / (4096 * len(bins)) > 0.998
    batches = [np.concatenate(bins[i : i + 16]) for i in range(0, len(bins) - 15, 16)]
    spread = np.var([CHATS[batch].mean() for batch in batches])
    alone = np.mean([CHATS.var() / len(batch) for batch in batches])  # of random ones
    assert spread < alone


def test_many_bins_are_drawn_as_few_are() -> None:
    """More pieces than are drawn together, in one call and in several."""
    order = ip.Packed(np.tile(CHATS, 6), 4096, min_stratum=3, seed=5)
    num = order.num_units(2)
    samples, offsets = order.take(2, 0, num), order.offsets(2, 0, num)
    assert (np.sort(samples) == np.arange(order.num_samples)).all()
    starts = np.arange(0, num, 97)
    cut = [order.take(2, start, min(start + 97, num)) for start in starts.tolist()]
    assert (samples == np.concatenate(cut)).all()
    position = np.repeat(np.arange(num), np.diff(offsets))
    assert (position == order.locate(2, samples)).all()
    assert (position[::1001] == order.locate(2, samples[::1001])).all()
