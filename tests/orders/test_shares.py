"""Weights of many phases are rounded at once, to what each is rounded to alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexplan.orders import shares
from indexplan.orders.shares import phases_of, rounded
from tests.support.examples import examples

floats = st.floats(0, 1, allow_subnormal=True)
of_ratios = st.builds(lambda a, b: a / b, st.integers(0, 70_000), st.integers(1, 70_000))
decimals = st.builds(round, floats, st.integers(1, 17))
wide = st.builds(lambda a, b: a * 10.0**b, floats, st.integers(-300, 300))
anything = st.one_of(floats, of_ratios, decimals, wide, st.integers(0, 9), st.just(1 / 3))


@st.composite
def scaled(draw: st.DrawFn, k: int) -> list[float]:
    """Draw integers times a float: another way to write small shares."""
    by = draw(st.floats(1e-3, 1e3))
    return [each * by for each in draw(st.lists(st.integers(1, 3000), min_size=k, max_size=k))]


@st.composite
def tables(draw: st.DrawFn) -> list[list[Any]]:
    """Draw a few rows of weights for as many sources, one of each row above 0."""
    k = draw(st.integers(1, 6))
    row = st.one_of(*(st.lists(kind, min_size=k, max_size=k) for kind in (anything, floats)))
    rows = draw(st.lists(st.one_of(row, scaled(k)), min_size=2, max_size=6))
    return [[*row[:-1], row[-1] or 0.3] for row in rows]


@examples(300)
@given(tables())
def test_phases_are_rounded_together_as_alone(rows: list[list[Any]]) -> None:
    """Alone, weights are exact as they are written, by integers of any length."""
    names = [str(i) for i in range(len(rows[0]))]
    weights = [dict(zip(names, row, strict=True)) for row in rows]
    together = phases_of(list(enumerate(weights)), names, None)
    alone = [phases_of(each, names, None)[0][1] for each in weights]
    assert alone == [found for _, found in together]


def test_most_rows_are_rounded_at_once() -> None:
    """Arbitrary floats are sure; ratios of small integers, ties and zeros are left to integers."""
    arbitrary = [[0.123456789 + i / 7, 0.987654321, 1 / (i + 3.3)] for i in range(100)]
    assert all(rounded(arbitrary))
    unsure: list[list[Any]] = [[2 / 3, 1 / 3], [0.1, 0.1], [0.3, 0.0], [1e-9, 0.7], [1, 2], []]
    assert [None] * len(unsure) == [found for row in unsure for found in rounded([row])]


def test_a_ratio_is_not_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at ratios, thirds as floats would become other shares than 2 and 1."""
    monkeypatch.setattr(shares, "_may_be_ratio", lambda _: False)
    with pytest.raises(AssertionError):
        test_phases_are_rounded_together_as_alone.hypothesis.inner_test([[2 / 3, 1 / 3]] * 2)
