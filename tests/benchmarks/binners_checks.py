"""Binners make right bins, and wrong ones are found; nothing is timed here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.contenders import standing
from benchmarks.contenders.binners import (
    BATCH,
    BINNERS,
    DRAWN,
    NEEDS,
    Case,
    Int64,
    given,
    joined,
    ours,
)
from benchmarks.measure import bins
from benchmarks.measure.lengths import real
from benchmarks.render.pages import OF_BINNERS, SHOWN

pytestmark = pytest.mark.benchmarks

CASES = {case.need: case for case in bins.CASES}


def test_binners_are_there() -> None:
    """Every rival is installed, and every need has a case, one of ours, and words."""
    assert [row["missing"] for row in standing(BINNERS)] == [""] * len(BINNERS)
    assert set(CASES) == set(NEEDS) == set(SHOWN)
    needs = {need for binner in BINNERS if binner.ours for need in binner.needs}
    assert needs == set(NEEDS)
    assert {column for shown in SHOWN.values() for column in shown} == set(OF_BINNERS)


@pytest.mark.parametrize(
    ("name", "need"), [(binner.name, need) for binner in BINNERS for need in binner.needs]
)
def test_binner_makes_what_it_is_asked_for(name: str, need: str) -> None:
    """Every sample is in one bin, bounds are kept, and all that the page shows is measured."""
    found = bins.answer(name, CASES[need]._asdict(), 2000)
    assert found.keys() >= set(SHOWN[need])


def test_lengths() -> None:
    """As many as are asked for, within the limit, in no order."""
    for case in bins.CASES:
        lengths = given(case, 3000)
        left = 3000 % (case.ranks * case.per_rank or 1)
        assert len(lengths) == min(case.n or len(real(case.kind)), 3000) - left
        assert lengths.min() > 0
        assert (np.diff(lengths) < 0).any()
        assert case.need != "packing" or lengths.max() <= case.limit
    assert {case.kind for case in bins.CASES} > set(DRAWN)


def once_more(samples: Int64, offsets: Int64) -> tuple[Int64, Int64]:
    return np.where(np.arange(len(samples)) == 5, samples[4], samples), offsets


def left_out(samples: Int64, offsets: Int64) -> tuple[Int64, Int64]:
    return samples[: offsets[-2]], offsets[:-1]


def empty(samples: Int64, offsets: Int64) -> tuple[Int64, Int64]:
    return samples, np.insert(offsets, 3, offsets[3])


@pytest.mark.parametrize("spoil", [once_more, left_out, empty])
def test_wrong_bins_are_found(spoil: Any) -> None:
    """A sample that comes twice or not at all, or a bin without any, fails."""
    dealt = ours()(CASES["batches"], given(CASES["batches"], 2000)).epoch(0)
    bins.bins_of(dealt)
    with pytest.raises(AssertionError):
        bins.bins_of(spoil(*dealt))


@pytest.mark.parametrize("need", ["packing", "batches", "budget"])
def test_bins_above_their_bound_are_found(need: str) -> None:
    """Two bins in one are too much."""
    case = CASES[need]
    size = {"packing": case.limit // 256, "batches": BATCH, "budget": case.limit // 256}[need]
    samples = np.arange(size * 4)
    lengths = 256 - np.random.default_rng(0).integers(100, size=len(samples))
    offsets = np.arange(0, size * 4 + 1, size)
    bins.quality(case, lengths, (samples, offsets), exact=True)
    with pytest.raises(AssertionError):
        bins.quality(case, lengths, (samples, np.delete(offsets, 1)), exact=True)


def test_uneven_ranks_are_found() -> None:
    """Ranks of a step get as many units, each unit once; the dearest is held against the mean."""
    case = CASES["balance"]._replace(ranks=16, per_rank=4)
    costs = np.ones(128, np.int64)
    shares = 64 + np.arange(64).reshape(16, 4)
    assert bins.unevenness(case, costs, shares) == 1
    costs[67] = 65
    assert bins.unevenness(case, costs, shares) == 68 / 8
    for wrong in (np.minimum(shares, 126), shares.reshape(8, 8), shares * 2 - 128):
        with pytest.raises(AssertionError):
            bins.unevenness(case, costs, wrong)


def test_pairs_that_meet_again() -> None:
    """Of 3 in a bin and 2 in another, one moved: 2 of 3 pairs are left, seen by each sample."""
    one, other = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])
    assert bins.again(one, one) == 1
    assert bins.again(one, other) == pytest.approx((0.5 + 0.5 + 0 + 1 + 1) / 5)


def test_numbers_of_bins() -> None:
    """Fill, padding and neighbours by hand; random batches have the variance of random samples."""
    case = Case("packing", "chats", limit=10)
    dealt = joined([[0, 1], [2], [3, 4, 5]])
    lengths = np.array([4, 2, 9, 1, 1, 2])
    found = bins.quality(case, lengths, dealt, exact=True)
    assert found["fill"] == pytest.approx(19 / 30)
    padded = bins.quality(case._replace(need="budget", limit=20), lengths, dealt, exact=True)
    assert padded["padding"] == pytest.approx(1 - 19 / (8 + 9 + 6))
    assert padded["fullest"] == 9 / 20
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 100, 32 * 2000)
    case = CASES["batches"]
    cut = np.arange(0, len(lengths) + 1, 32)
    random = bins.quality(case, lengths, (np.arange(len(lengths)), cut), exact=True)
    assert random["variance"] == pytest.approx(1, abs=0.1)
    alike = bins.quality(case, lengths, (np.argsort(lengths), cut), exact=True)
    assert (alike["variance"], alike["lag"]) == pytest.approx((32, 1), abs=0.1)
