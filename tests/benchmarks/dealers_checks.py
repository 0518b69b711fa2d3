"""Dealers deal the right samples, and wrong ones are found; nothing is timed here."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.contenders.dealers import DEALERS, MIXTURES, Case, Entry, given, ours, shares_of
from benchmarks.measure import orders

pytestmark = pytest.mark.benchmarks

CASES = list(dict.fromkeys(map(orders.small, orders.CASES)))
NEEDS = {case.need: case for case in CASES}
PRESENT = [
    pytest.param(dealer, case, id=f"{dealer.name}, {case.need}, {case.num}")
    for dealer in DEALERS
    if not dealer.standing()["missing"]
    for case in CASES
    if case.need in dealer.needs
]


@pytest.mark.parametrize(("dealer", "case"), PRESENT)
def test_dealer_deals_what_it_is_asked_for(dealer: Entry, case: Case) -> None:
    """Draws are of the right samples, shares are right, and a resume goes on."""
    found = orders.trial(dealer, case)
    assert ({"deviation", "rank_bias"} <= set(found)) == (case.need in MIXTURES)


def dealt(need: str) -> tuple[Any, Any, Any]:
    """Return what ours deals, with what it was given."""
    data = given(NEEDS[need])
    dealer = ours()(NEEDS[need], data)
    return dealer.epoch(2**62), data, dealer


def drawn_evenly(indices: Any, case: Case) -> Any:
    return np.arange(len(indices)) % case.n


def twice_more(indices: Any, case: Case) -> Any:  # noqa: ARG001 (as the others)
    return np.where(np.isin(np.arange(len(indices)), (5, 6)), indices[4], indices)


def rolled(indices: Any, case: Case) -> Any:  # noqa: ARG001 (as the others)
    return np.roll(indices, 1)


def neighbours(indices: Any, case: Case) -> Any:
    return np.where(np.arange(len(indices)) == 7, (indices + 1) % case.n, indices)


def rare_left_out(indices: Any, case: Case) -> Any:  # noqa: ARG001 (as the others)
    return np.where(indices == indices.max(), 0, indices)


def all_the_same(indices: Any, case: Case) -> Any:  # noqa: ARG001 (as the others)
    return np.full_like(indices, 1)


@pytest.mark.parametrize(
    ("need", "spoil"),
    [
        ("weights", drawn_evenly),
        ("weights", rare_left_out),
        ("repeat factors", drawn_evenly),
        ("repeat factors", all_the_same),
        ("equal classes", drawn_evenly),
        ("class batches", twice_more),
        ("class batches", rolled),
        ("class batches", neighbours),
        ("repeats", all_the_same),
        ("mixture", twice_more),
        ("mixture", all_the_same),
        ("first exhausted", twice_more),
        ("all exhausted", rare_left_out),
    ],
)
def test_wrong_draws_are_found(need: str, spoil: Any) -> None:
    """A check fails for draws that are even, repeated, shifted or left out."""
    indices, data, dealer = dealt(need)
    orders.check(DEALERS[0], NEEDS[need], data, dealer, indices)
    with pytest.raises(AssertionError):
        orders.check(DEALERS[0], NEEDS[need], data, dealer, spoil(indices, NEEDS[need]))


def test_wrong_resume_is_found() -> None:
    """A dealer that goes on one step late fails its trial."""

    class Late(ours()):  # type: ignore[misc]
        def batches(self, step: int) -> Iterator[Any]:
            return super().batches(step + (step > 0))

    late: Any = SimpleNamespace(load=lambda: Late, seeks=True, ours=True, limit=2**62)
    with pytest.raises(AssertionError):
        orders.trial(late, NEEDS["weights"])
    late.load = ours
    orders.trial(late, NEEDS["weights"])


def test_shares_are_exact_for_all() -> None:
    """No dealer rounds them, and a warm-up has others."""
    for case in orders.CASES:
        if case.need not in MIXTURES:
            continue
        shares, few = shares_of(case), shares_of(orders.small(case))
        assert shares.tolist() != few.tolist()
        assert (shares.sum(), shares.min()) == ((10, 1) if case.num == 3 else (2**16, 100))


def test_worst_deviation() -> None:
    """The count of either source is off by 1 after two reads of one, and by 1/2 in turn."""
    assert orders.worst_deviation(np.array([0, 0, 1, 1]), np.array([1, 1])) == 1
    assert orders.worst_deviation(np.array([0, 1, 0, 1]), np.array([3, 3])) == 0.5


def test_rank_bias() -> None:
    """Sources in turn are each read by one of two ranks alone; drawn ones by both."""
    assert orders.rank_bias(np.arange(10_000) % 2, 2) > 20
    assert orders.rank_bias(np.random.default_rng(0).integers(3, size=10_000), 3) < 4
