"""Weighted draws: the kernels are the design's words, counts are even, sums exact, bits frozen."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import thresholds, weighted
from tests.golden.lines import cases
from tests.support import oracles
from tests.support.reweighted import reweighted
from tests.support.weighted_oracle import Weighted

EPOCHS = st.sampled_from([0, 1, 2, 7, 2**31, 2**32 - 1])
WEIGHTS = st.one_of(
    st.floats(0, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 3.0, 1e-10, 5e-324, 1.7e308]),
)


@st.composite
def specs(draw: st.DrawFn, most: int = 40) -> dict[str, Any]:
    """Draw the arguments of an order."""
    rows = st.one_of(
        st.lists(WEIGHTS, min_size=1, max_size=most),
        st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=most),
        st.integers(1, most).map(lambda n: [0.3] * n),
        st.integers(1, most).map(lambda n: [1 / (i + 1) for i in range(n)]),
        st.integers(1, most).map(lambda n: [1.0] + [1e-12] * (n - 1)),
    )
    weights = draw(rows.filter(any))
    num_positive = sum(weight > 0 for weight in weights)
    size = draw(st.integers(1, 3 * most))
    cap = st.none() | st.integers(0, 5).map(lambda more: -(-size // num_positive) + more)
    seed = draw(st.integers(0, 3) | st.integers(0, 2**128 - 1))
    return {"weights": weights, "epoch_size": size, "seed": seed, "max_repeats": draw(cap)}


def table(order: ip.Weighted, epoch: int = 0) -> list[int]:
    """Return the thresholds of an order, as Python integers."""
    found: list[int] = order._table(epoch).thresholds.tolist()
    return found


@given(specs(), EPOCHS)
def test_draws_are_the_oracles(spec: dict[str, Any], epoch: int) -> None:
    """Every threshold and every read is the oracle's, taken whole, in cuts and one by one."""
    order, oracle = ip.Weighted(**spec), Weighted(**spec)
    assert oracle.thresholds == table(order)
    row = oracle.epoch(epoch)
    num = len(row)
    assert num == order.num_units(epoch) == spec["epoch_size"]
    assert row == order.take(epoch, 0, num).tolist() == order.take(epoch, range(num)).tolist()
    ends = sorted({0, num // 3, num // 2, num})
    assert row == order.take(epoch, ends[:-1], ends[1:]).tolist()
    assert row[::-1] == order.take(epoch, range(num)[::-1]).tolist()


@given(specs())
def test_what_is_expected_is_the_share_of_the_weight(spec: dict[str, Any]) -> None:
    """Up to rounding, E is min(m, s * w) with one s for all, which without a cap is M / W."""
    oracle = Weighted(**spec)
    n, size, most = oracle.n, spec["epoch_size"], spec["max_repeats"]
    weights = [Fraction(weight) for weight in spec["weights"]]
    capped: set[int] = set()
    while True:
        rest = sum(weight for i, weight in enumerate(weights) if i not in capped)
        factor = (size - (most or 0) * len(capped)) / rest
        more = {i for i in range(n) if i not in capped and most and factor * weights[i] > most}
        if not more:
            break
        capped |= more
    # rounding up adds less than 1 to each of the integers, whose sum is at least 2**60 - n; what
    # is left of it where caps leave little is not much
    left = Fraction(rest) / sum(weights)
    for i, weight in enumerate(weights):
        expected = most if i in capped else factor * weight
        error = size * (1 + n) / (2**59 * left) + Fraction(1, 2**oracle.bits)
        assert abs(oracle.expected(i) - expected) <= error


@given(specs(), st.integers(-60, 60), EPOCHS)
def test_scaling_by_powers_of_two_changes_nothing(
    spec: dict[str, Any], power: int, epoch: int
) -> None:
    """Neither thresholds nor draws, as long as no weight leaves the range of floats."""
    scaled = [weight * 2.0**power for weight in spec["weights"]]
    if max(scaled) == math.inf or [weight * 2.0**-power for weight in scaled] != spec["weights"]:
        return
    order, other = ip.Weighted(**spec), ip.Weighted(**{**spec, "weights": scaled})
    assert table(order) == table(other)
    assert order.take(epoch, 0).tolist() == other.take(epoch, 0).tolist()


@pytest.mark.parametrize(
    "spec",
    [
        {"weights": [1 / (i + 1) for i in range(60)], "epoch_size": 47, "seed": 1},
        {"weights": [1, 2, 0, 5, 1, 1, 1], "epoch_size": 10, "seed": 2},
        {"weights": [1.0] * 50, "epoch_size": 20, "seed": 3, "max_repeats": 1},
        {"weights": [1 / (i + 1) for i in range(60)], "epoch_size": 100, "max_repeats": 4},
        {"weights": [3.0, *[0.1] * 99], "epoch_size": 1000, "seed": 5},
    ],
)
def test_counts_over_many_epochs(spec: dict[str, Any]) -> None:
    """After any number of epochs up to 1,024, a sample's reads are within 4 of what is expected."""
    order, oracle = ip.Weighted(**spec), Weighted(**{"max_repeats": None, "seed": 0, **spec})
    samples = np.arange(oracle.n)
    expected = np.array([float(oracle.expected(i)) for i in range(oracle.n)])
    total, worst = np.zeros(oracle.n), 0.0
    for epoch in range(1024):
        total += order.count(epoch, samples)
        worst = max(worst, np.abs(total - (epoch + 1) * expected).max())
    assert 1 < worst < 4


def test_a_giant_beside_many_small_ones() -> None:
    """Thresholds of thousands of samples that lie in one cell of the guide are found."""
    n, giant = 5000, 1234
    weights = [1e-11] * n
    weights[giant] = 1.0
    spec = {"weights": weights, "epoch_size": 2**40, "seed": 4}
    order, oracle = ip.Weighted(**spec), Weighted(**spec)
    assert oracle.thresholds == table(order)
    small = [sample for sample in range(n) if sample != giant]
    positions, offsets = order.locate_all(3, small)
    assert len(positions) > 5 * 10**4
    every = positions[:: len(positions) // 300]
    assert [oracle.read(3, at) for at in every.tolist()] == order.take(3, every).tolist()
    assert np.array_equal(np.repeat(small, np.diff(offsets)), order.take(3, positions))
    some = np.random.default_rng(0).integers(2**40, size=300)
    assert [oracle.read(3, at) for at in some.tolist()] == order.take(3, some).tolist()


@pytest.mark.parametrize("weights", [[1.0] * 4, [1.0, 2.0, 0.0, 1.0, 4.0], [0.1, 0.2, 0.3]])
@pytest.mark.parametrize("size", [2**60, 2**61 - 1])
def test_huge_epochs(weights: list[float], size: int) -> None:
    """Slots of two numbers, so that some begin right at a threshold: they are the next sample's."""
    order, oracle = ip.Weighted(weights, size, seed=2), Weighted(weights, size, 2)
    assert oracle.bits == 1
    assert oracle.thresholds == table(order)
    num_met = 0
    for epoch in range(2):
        assert size == sum(order.count(epoch, range(oracle.n)).tolist())
        words = oracles.key_words(2, 4, epoch, 2 * oracles.rounds_of(size), oracle.n)
        for threshold in oracle.thresholds[:-1]:
            near = range(max(0, threshold // 2 - 1), min(size, threshold // 2 + 2))
            for slot in near:
                num_met += slot * 2 + oracle.offset(epoch) == threshold
                position = oracles.backward(size, words, slot)
                assert [oracle.read(epoch, position)] == order.take(epoch, position).tolist()
        row = order.take(epoch, 0, 200).tolist()
        first = [row.index(i) if weights[i] else -1 for i in range(oracle.n)]
        assert first == order.locate(epoch, range(oracle.n)).tolist()
    assert num_met >= len(weights) - weights.count(0.0)


@pytest.mark.parametrize("coarse", [0, 1, 3])
def test_a_guide_of_fewer_bits(coarse: int) -> None:
    """From 2**32 samples on, the guide leaves out the lowest bits; the draws are the same."""
    order = ip.Weighted([1 / (i % 100 + 1) for i in range(700)], epoch_size=900, seed=3)
    found = order._table(0)
    guide = np.empty(len(found.guide), np.uint32)
    thresholds.fill_guide(found.thresholds, found.shift, coarse, guide)
    row_words, bits, first, step = order._row
    offset, words = (first + 5 * step) % 2**bits, order._words(5)
    out = np.empty(900, np.int64)
    ends = np.array([0]), np.array([900])
    weighted.draw_runs(
        900,
        bits,
        offset,
        found.shift,
        coarse,
        words,
        row_words,
        found.thresholds,
        guide,
        *ends,
        out,
    )
    assert order.take(5, 0, 900).tolist() == out.tolist()


def weights_of(case: dict[str, Any]) -> list[float]:
    """Return the weights of a known answer."""
    ((kind, value),) = case["weights"].items()
    if kind == "harmonic":
        return [1 / (i + 1) for i in range(value)]
    if kind == "digits":
        return [float(digit) for digit in value]
    return [weight for weight, count in value for _ in range(count)]


@pytest.mark.parametrize("case", cases("weighted_v1"), ids=lambda case: str(case["epoch_size"]))
def test_known_answers(case: dict[str, Any]) -> None:
    """Bits that never change."""
    weights = weights_of(case)
    order = ip.Weighted(weights, case["epoch_size"], case["seed"], case["max_repeats"])
    data = np.array(table(order), "<i8").tobytes()
    assert case["thresholds_sha256"] == hashlib.sha256(data).hexdigest()
    for known in case["epochs"]:
        counts = order.count(known["epoch"], range(len(known["counts_of_first"])))
        assert known["counts_of_first"] == counts.tolist()
        assert known["indices"] == order.take(known["epoch"], known["positions"]).tolist()


def test_known_fingerprints() -> None:
    """The dict forms of an order, which never change either."""
    order = ip.Weighted([1, 0, 2, 5], epoch_size=16, seed=3)
    later = reweighted(order, 7, [1, 1, 1, 1])
    assert [0, 7] == [epoch for epoch, _ in later.to_dict()["weights"]]
    assert ["f8854403ae8b0295", "1ba3b40ffd62939f"] == [
        order.fingerprint[:16],
        later.fingerprint[:16],
    ]


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


def test_what_an_epoch_holds_together() -> None:
    """The share of a label that alternates is as random as that of a sample of so many."""
    n, size, seeds = 1000, 500, 200
    orders = [ip.Weighted([1.0] * n, size, seed=seed) for seed in range(seeds)]
    shares = [float(np.mean(order.take(0, 0, size) % 2)) for order in orders]
    deviation = math.sqrt(0.25 / size * (1 - size / n) * n / (n - 1))  # without replacement
    assert abs(np.mean(shares) - 0.5) < 4 * deviation / math.sqrt(seeds)
    assert 0.8 < np.std(shares) / deviation < 1.25


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
