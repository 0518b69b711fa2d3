"""Weights become integers in exactly the proportions in which they are written."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.orders.shares import phases_of
from tests.support import mixes, mixing


def shares(*weights: Any) -> tuple[int, ...]:
    """Return the shares of a mixture with these weights."""
    names = [str(i) for i in range(len(weights))]
    ((_, found),) = phases_of(dict(zip(names, weights, strict=True)), names)
    return found


@given(mixes.weights((*mixes.FEW, *mixes.MANY)))
def test_shares_are_the_weights(weights: list[Any]) -> None:
    """Exactly, if their sum allows it; else to within what the specification says."""
    found = shares(*weights)
    written = [mixes.written(each) for each in weights]
    assert mixing.shares_of(written) == found
    exact = mixing.integers(written)
    all_exact, all_found = sum(exact), sum(found)
    assert [each > 0 for each in exact] == [each > 0 for each in found]
    for share, each in zip(found, exact, strict=True):
        wanted, got = each * all_found, share * all_exact
        if all_exact < 2**62:
            assert wanted == got
        elif share > 1:
            assert abs(got - wanted) <= wanted * (Fraction(1, share) + Fraction(len(found), 2**61))


def test_numbers_of_all_kinds() -> None:
    """As people write them; what a decimal or a fraction says is what is dealt."""
    assert (7, 2, 1) == shares(0.7, 0.2, 0.1) == shares(70, 20, 10)
    assert (1, 1, 1) == shares(1 / 3, 1 / 3, 1 / 3) == shares(1e300, 1e300, 1e300)
    assert (3, 0, 1) == shares(Fraction(3, 4), 0, np.float64(0.25))
    assert (2, 1) == shares(Fraction(2, 3), Fraction(1, 3))
    assert (2, 1) == shares(2 / 3, 1 / 3)
    assert (1_000_003, 4) == shares(1_000_003, 4) == shares(Decimal("1.000003"), Decimal("4E-6"))
    assert (10**12, 10**3, 1) == shares(1, 1e-9, 1e-12)
    assert (2**53 + 1, 1) == shares(np.int64(2**53 + 1), np.uint8(1))
    assert (0, 1) == shares(-0.0, 5e-324)


def test_what_cannot_be_exact_is_as_near_as_can_be() -> None:
    """A weight above 0 keeps at least one unit in 2**61; the others are rounded down."""
    assert (2**61 - 1, 1) == shares(1, 1e-300)
    assert (2**61 - 1, 2**61) == shares(2**61 - 1, 2**61)  # exact, to the last sum
    third = 2**61 // 3
    assert (third, third, third, 1) == shares(1, 1, 1, Fraction(1, 10**30))
    assert (2**59, 2**59, 2**60 - 1) == shares(2**62, 2**62 + 2, 2**63 - 2)


def test_those_of_a_dict_form_are_in_lowest_terms() -> None:
    """Shares passed to a mixture are divided by what all can be; a dict form has no other ones."""
    sources = {"a": ip.Shuffle(9), "b": ip.Shuffle(8)}
    mixture = ip.Mixture(sources, {"a": 1, "b": 3})
    assert mixture == ip.Mixture(sources, [(0, (2**14, 3 * 2**14))])
    plan = json.loads(ip.Plan(mixture, batch_size=1).to_json())
    assert [[0, [1, 3]]] == plan["order"]["phases"]
    other = {**plan["order"], "phases": [[0, [2**14, 3 * 2**14]]]}
    with pytest.raises(ip.IndexPlanError, match="phases of an order of mixture-v1 must be as"):
        ip.Plan.from_json(json.dumps({**plan, "order": other}))
    assert not mixture.continues(other, 3, 1)
