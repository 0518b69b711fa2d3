"""What docstrings and pages say of an order holds in epochs 0 to 5, and after resumes elsewhere."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from tests.laws.promises import ORDERS, Run, read
from tests.laws.recipes import IN_UNITS, IN_WHOLE_UNITS, RECIPES, names_of
from tests.support.examples import examples


@pytest.mark.parametrize("name", ORDERS)
@examples(30)
@given(data=st.data())
def test_what_is_stated_holds_in_every_epoch(name: str, data: st.DataObject) -> None:
    """In epochs 0 to 5, each of which is stopped and resumed on other ranks."""
    order = ORDERS[name].make(data.draw)
    assert ORDERS[name].holds(order, read(data.draw, order)), order


@pytest.mark.parametrize(
    "inside",
    [
        ip.Shuffle(120),
        ip.Shuffle(121),
        ip.Epochs(ip.Shuffle(120), 41),
        ip.Without(ip.Shuffle(121), [3, 50]),
        ip.Mixture({"a": ip.Epochs(ip.Shuffle(121), 121)}, {"a": 1}),
    ],
)
def test_copies_share_a_step(inside: ip.Order) -> None:
    """Under "drop", as subsets.md says, in all epochs and after a resume on fewer ranks."""
    order = ip.Repeat(inside, copies=3, span=24)
    plan = ip.Plan(order, world_size=4, global_batch_size=24, remainder="drop")
    resumed = plan.replace(world_size=3).resume(plan.cursor(1, step=5))
    for each, ranks in ((plan, 4), (resumed, 3)):
        for epoch in range(each.start.epoch, 6):
            for step in each.steps(epoch):
                parts = [each.batch(epoch, step=step, rank=rank) for rank in range(ranks)]
                assert {3} == set(Counter(np.concatenate(parts).tolist()).values())
                assert all(len({*part.tolist()}) == len(part) for part in parts)  # of other ranks


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
