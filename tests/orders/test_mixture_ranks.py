"""No rank gets more of a source than chance gives, and the test of it tells wrong patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from indexplan.orders.base import Int64
from tests.support import rank_counts
from tests.support.mixing import Dealer, Phase, Words
from tests.support.rank_counts import Case, Deal

IN_STEP = Case((25, 26, 49), 4, 1, 0), Case((10, 3, 72, 15), 8, 1, 0)


def even(shares: Sequence[int]) -> list[int]:
    """Return a row within 1 of the shares at every place: of those behind, the one due first."""
    dealt, row = [0] * len(shares), []
    for t in range(sum(shares)):
        behind = [j for j, s in enumerate(shares) if dealt[j] * sum(shares) < s * (t + 1)]
        row.append(min(behind, key=lambda j: (Fraction(dealt[j] + 1, shares[j]), j)))
        dealt[row[-1]] += 1
    return row


def turns_of(shares: Sequence[int]) -> list[list[int]]:
    """Return the rotations of the even row, both ways, that are within 1 at every place too."""
    row = even(shares)
    both = [each[start:] + each[:start] for each in (row, row[::-1]) for start in range(len(row))]
    aims = np.outer(np.arange(1, len(row) + 1), shares)
    counts = [np.cumsum(np.eye(len(shares), dtype=int)[each], axis=0) * len(row) for each in both]
    return [each for each, n in zip(both, counts, strict=True) if abs(n - aims).max() < len(row)]


def without_turns(case: Case) -> Deal:
    row = np.array(even(case.shares))
    return lambda place, num: row[np.arange(place, place + num) % len(row)]


def with_turns(case: Case) -> Deal:
    """Return what the library dealt before: each period begins at a drawn turn of the even row."""
    rows, size = np.array(turns_of(case.shares)), sum(case.shares)
    drawn = np.random.default_rng(1).integers(len(rows), size=2**16)

    def deal(place: int, num: int) -> Int64:
        period, slot = np.divmod(np.arange(place, place + num), size)
        sources: Int64 = rows[drawn[period % len(drawn)], slot]
        return sources

    return deal


def restarted(case: Case) -> Deal:
    """Return a clock that restarts each period, so that all periods have the coins of the first."""
    row = rank_counts.dealt(case, 0)(0, sum(case.shares))
    return lambda place, num: row[np.arange(place, place + num) % len(row)]


class OneCoin(Dealer):
    """All pairs of units draw what the first pair draws."""

    def __init__(self, p: int, q: int, words: Words, bits: int | None = None) -> None:
        super().__init__(p, q, lambda _: words(0), bits)


def one_coin(case: Case) -> Deal:
    """Return the pattern of units that all draw the same, which repeats after two periods."""
    oracle = Phase(case.shares, (0, 1), 0, OneCoin)
    counts = np.array([oracle.count(place) for place in range(2 * sum(case.shares) + 1)])
    row = np.diff(counts, axis=0).argmax(axis=1)
    return lambda place, num: row[np.arange(place, place + num) % len(row)]


def drawn(case: Case) -> Deal:
    """Return independent draws."""
    rng, odds = np.random.default_rng(2), np.array(case.shares) / sum(case.shares)
    return lambda _, num: rng.choice(len(odds), size=num, p=odds)


def test_no_rank_is_favoured() -> None:
    """Over drawn weights and ranks, counts by source and rank are as of independent draws."""
    chi_square = freedom = 0.0
    for number, case in enumerate([*IN_STEP, *rank_counts.cases(298, 0)]):
        found = rank_counts.looked_at(case, rank_counts.dealt(case, number), 2**16)
        assert not found.favours, (case, found)
        chi_square, freedom = chi_square + found.chi_square, freedom + found.freedom
    assert 0.8 < chi_square / freedom < 1.02


@pytest.mark.parametrize("case", IN_STEP, ids=str)
def test_patterns_in_step_with_the_ranks_would_fail(case: Case) -> None:
    """The even row, with turns and without, as the library once dealt them."""
    places = 20 * 2**16
    assert not rank_counts.looked_at(case, rank_counts.dealt(case, 5), places).favours
    assert not rank_counts.looked_at(case, drawn(case), places).favours
    for wrong in (with_turns, without_turns):
        assert rank_counts.looked_at(case, wrong(case), 2**16).z_of_counts > 20


@pytest.mark.parametrize("wrong", [restarted, one_coin])
def test_equal_coins_would_fail(wrong: Callable[[Case], Deal]) -> None:
    """A clock that restarts each period, and one coin for all units, whose period is the ranks'."""
    case = Case((7, 9), 16, 1, 0)
    assert not rank_counts.looked_at(case, rank_counts.dealt(case, 0), 60 * 2**16).favours
    assert rank_counts.looked_at(case, wrong(case), 60 * 2**16).favours
