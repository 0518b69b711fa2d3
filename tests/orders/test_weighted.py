"""Weighted draws: the kernels are the design's words, counts are even, sums exact, bits frozen."""

from __future__ import annotations

import hashlib
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.kernels import thresholds, weighted
from tests.support import oracles
from tests.support.reweighted import reweighted
from tests.support.weighted_oracle import Weighted

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "weighted_v1.json").read_text())

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


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: str(case["epoch_size"]))
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


# numbers of epochs after which a count deviates most, for one f or another; all were looked at
WORST = (3, 11, 13, 25, 49, 243, 465, 501, 611, 779, 837, 883, 947, 1015, 1019)


def test_no_weights_at_all_deviate_further() -> None:
    """A count is within 4 of what is expected, or within 10.1 from 2**42 draws an epoch on.

    Whatever its slots, it is how often v lies in an interval of the circle of 2**f integers.
    """
    furthest = {}
    for f in range(1, 62):
        step = (0x9E3779B97F4A7C15 >> (64 - f)) | 1
        offsets = np.array([epoch * step % 2**f for epoch in range(1024)], np.uint64)
        for num_epochs in WORST:
            at, first, times = np.unique(
                np.sort(offsets[:num_epochs]), return_index=True, return_counts=True
            )
            expected = num_epochs / 2**f
            before = first - at.astype(float) * expected
            after = first + times - (at.astype(float) + 1) * expected
            deviation = max(after.max(), 0) - min(before.min(), 0)
            furthest[f] = max(furthest.get(f, 0), deviation)
    assert 4 > max(furthest[f] for f in range(62 - 42, 62))
    assert 4 < furthest[62 - 43]  # the bound on M is no lower than it has to be
    assert 10 < max(furthest.values()) < 10.1
