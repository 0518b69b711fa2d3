"""No rank gets more of a source than chance gives, over millions of places."""

from __future__ import annotations

from tests.support import rank_counts

PLACES = 3_000_000
IN_STEP = rank_counts.Case((25, 26, 49), 4, 1, 0), rank_counts.Case((10, 3, 72, 15), 8, 1, 0)


def test_no_rank_is_favoured_in_millions_of_places() -> None:
    """What is too little to be seen in 65,536 places would be seen here."""
    chi_square = freedom = 0.0
    for number, case in enumerate([*rank_counts.cases(60, 1), *IN_STEP]):
        found = rank_counts.looked_at(case, rank_counts.dealt(case, number), PLACES)
        assert not found.favours, (case, found)
        chi_square, freedom = chi_square + found.chi_square, freedom + found.freedom
    assert 0.8 < chi_square / freedom < 1.01
