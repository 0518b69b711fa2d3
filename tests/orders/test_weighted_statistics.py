"""Weighted draws are fair: over seeds, in what an epoch holds together, at neighbours, on ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.weighted_oracle import Weighted as Oracle


@pytest.mark.parametrize("epoch", [0, 7])
@pytest.mark.parametrize("cap", [None, 3])
def test_counts_are_what_is_expected_over_seeds(epoch: int, cap: int | None) -> None:
    """Of a sample that an epoch reads floor(E) or ceil(E) times, the mean over seeds is E."""
    weights = 1 / np.arange(1, 121)
    shares = weights * 150 / weights.sum()
    if cap:
        while shares.max() > cap * (1 + 1e-12):  # cap, and share what is too much
            capped = shares >= cap
            shares[capped] = cap
            left = 150 - cap * capped.sum()
            shares[~capped] = weights[~capped] * left / weights[~capped].sum()
    seeds = 600
    orders = (ip.Weighted(weights, 150, seed=seed, max_repeats=cap) for seed in range(seeds))
    mean = sum(order.count(epoch, range(120)) for order in orders) / seeds
    part = shares % 1
    some = (part > 1e-6) & (part < 1 - 1e-6)
    z = ((mean - shares) / np.sqrt(np.maximum(part * (1 - part), 1e-12) / seeds))[some]
    assert some.sum() > 80
    assert np.abs(z).max() < 4.5
    assert 0.75 < math.sqrt(np.mean(z**2)) < 1.25
    assert np.allclose(mean[~some], shares[~some])


def are_mixed(shares: list[float], n: int, size: int) -> bool:
    """Return whether epochs' shares of a label that half of n samples have vary as by chance."""
    deviation = math.sqrt(0.25 / size * (1 - size / n) * n / (n - 1))  # without replacement
    near = abs(np.mean(shares) - 0.5) < 4 * deviation / math.sqrt(len(shares))
    return bool(near and 0.8 < np.std(shares) / deviation < 1.25)


def test_what_an_epoch_holds_together() -> None:
    """The share of a label that alternates is as random as that of a sample of so many."""
    n, size, seeds = 1000, 500, 200
    shares = [
        float(np.mean(ip.Weighted([1.0] * n, size, seed=seed).take(0, 0, size) % 2))
        for seed in range(seeds)
    ]
    assert are_mixed(shares, n, size)


class WithoutRow(Oracle):
    """weighted-v1 but for its keyed row: slots are dealt in the dataset's own order."""

    def __init__(self, *fields: Any) -> None:
        super().__init__(*fields)
        self.row = list(range(self.n))


@pytest.mark.parametrize(("kind", "right"), [(Oracle, True), (WithoutRow, False)])
def test_without_the_row_an_epoch_would_hold_one_label(kind: type[Oracle], right: bool) -> None:
    """Of every other sample all have one label, so the test above would fail."""
    n, size, seeds = 100, 50, 60
    shares = []
    for seed in range(seeds):
        oracle = kind([1.0] * n, size, seed)
        shares.append(float(np.mean([oracle.slot(0, slot) % 2 for slot in range(size)])))
    assert right == are_mixed(shares, n, size)
    assert right or {0.0, 1.0} == set(shares)


def test_neighbours() -> None:
    """A sample follows itself as often as in a shuffle of all reads."""
    size, seeds = 64, 300
    equal = sum(
        int(np.sum(np.diff(ip.Weighted([1.0] * 8, size, seed=seed).take(0, 0, size)) == 0))
        for seed in range(seeds)
    )
    expected = seeds * (size - 1) * 7 / 63
    assert abs(equal - expected) < 4 * math.sqrt(expected)


def test_ranks_share_alike() -> None:
    """No rank has more of the heavy samples than others, over some epochs."""
    weights = np.where(np.arange(1000) % 10 == 0, 9.0, 1.0)
    plan = ip.Plan(ip.Weighted(weights, 4000, seed=3), world_size=8, batch_size=25)
    heavy = np.zeros(8)
    for epoch in range(10):
        for rank in range(8):
            heavy[rank] += np.sum(plan.indices(epoch, rank=rank) % 10 == 0)
    assert heavy.sum() == pytest.approx(20_000, abs=20)
    deviation = math.sqrt(40_000 / 8 * 0.25 * 7 / 8)
    assert np.abs(heavy - heavy.sum() / 8).max() < 4 * deviation


@given(st.lists(st.floats(1e-300, 1e-25), min_size=1, max_size=30), st.integers(0, 9))
def test_no_sample_is_lost(small: list[float], seed: int) -> None:
    """However small it is, a positive weight has a share."""
    order = ip.Weighted([1.0, *small, 0.0], 2**40, seed=seed)
    shares = np.diff(order._table(0).thresholds.astype(np.int64))
    assert 1 == np.count_nonzero(shares == 0)
    assert shares.sum() == 2**40 << 62 - 41


def test_small_weights_beside_a_giant() -> None:
    """They are read as often as they should be."""
    order = ip.Weighted([1.0, *[1e-10] * 10**5], 10**9, seed=3)
    counts = order.count(0, range(1, 10**5 + 1))
    assert 9999 == pytest.approx(counts.sum(), abs=2)
