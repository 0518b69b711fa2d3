"""What pages state of two or three recipes holds of them together, or they are refused in words."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from tests.laws.promises import ORDERS, Run, read
from tests.laws.recipes import IN_UNITS, IN_WHOLE_UNITS, RECIPES, names_of
from tests.support.examples import examples

REFUSED = (  # the rules by which compositions are refused; anything else is a fault
    "left with a unit in each epoch",
    "not excluded already",
    ", that of the samples that were excluded earlier",
    "whose samples are what it reads",
    "the same number of units in every epoch",
    "all of which cut samples, or none",
    "a seed that no mixture inside it has",
)


def check(order: ip.Order, name: str, outer: list[str], run: Run) -> None:
    """Hold a run against what is stated of its order, and of all those inside."""
    if not run:  # of the order inside, no epoch was read to its end
        return
    if not outer:
        assert ORDERS[name].holds(order, run), (name, order)
        return
    recipe = RECIPES[outer[-1]]
    assert recipe.holds(order, run), (outer, order)
    inner = dict(order.sources)["a"] if isinstance(order, ip.Mixture) else order.order  # type: ignore[attr-defined]
    if recipe.inside is not None:
        check(inner, name, outer[:-1], recipe.inside(order, run))
    elif len(outer) == 1:
        whole = getattr(order, "cut", "") == "unit"
        holds = (IN_WHOLE_UNITS if whole else IN_UNITS).get(inner.algorithm)
        units = [names_of(unit) for units in run for unit in units]
        assert holds is None or all(holds(inner, unit) for unit in units), (outer, order)


@pytest.mark.parametrize("outer", RECIPES)
@examples(150)
@given(data=st.data())
def test_recipes_hold_together(outer: str, data: st.DataObject) -> None:
    """Each in all epochs, through resumes; what a recipe reads of the order inside, too."""
    name = data.draw(st.sampled_from(list(ORDERS)))
    stack = [*data.draw(st.lists(st.sampled_from(list(RECIPES)), max_size=1)), outer]
    order = ORDERS[name].make(data.draw)
    try:
        for each in stack:
            order = RECIPES[each].around(data.draw, order)
        run = read(data.draw, order)
    except ip.IndexPlanError as error:
        if not any(rule in error.rule for rule in REFUSED):
            raise
        assume(False)
    check(order, name, stack, run)
