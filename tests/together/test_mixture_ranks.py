"""No rank gets more of a source than chance gives, over millions of places."""

from __future__ import annotations

from tests.support import rank_counts

PLACES = 3_000_000


def test_no_rank_is_favoured_in_millions_of_places() -> None:
    """What is too little to be seen in 65,536 places would be seen here."""
    chi_square = freedom = 0.0
    for number, case in enumerate(rank_counts.cases(60, 1)):
        found = rank_counts.looked_at(case, rank_counts.dealt(case, number), PLACES)
        assert not found.favours, (case, found)
        chi_square, freedom = chi_square + found.chi_square, freedom + found.freedom
    assert 0.8 < chi_square / freedom < 1.01
