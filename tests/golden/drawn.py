"""Drawn plans over every order, in layers, under all remainders, and what they answer.

These are the library's own answers, for changes that must not change any: they say that two
versions agree, and the other known answers say that they are right. Hypothesis draws other plans
in each of its versions, so the file holds the plans too.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import indexplan as ip
from tests.golden.lines import lines
from tests.laws.promises import ORDERS
from tests.laws.recipes import RECIPES
from tests.support.every_order import every_order
from tests.support.frozen import answers, columns_of
from tests.support.strategies import balances, plans

NUM_PLANS = 300
OF_EACH = 11  # of each promise


def since(draw: Any, inner: ip.Order) -> ip.Order:
    """Draw samples that are left out from some place on, in two groups."""
    plan = ip.Plan(inner, global_batch_size=draw(st.integers(1, 5)))
    for epoch in (0, 1):
        some = draw(st.sets(st.integers(0, inner.num_samples - 1), min_size=1, max_size=2))
        step = draw(st.integers(0, plan.steps(epoch).stop))
        inner = ip.Without(inner, sorted(some), since=plan.cursor(epoch, step=step))
        plan = plan.replace(order=inner)
    return inner


def grown(draw: Any, inner: ip.Order) -> ip.Order:
    """Draw a mixture with the order that gets a source, and other weights, during its run."""
    mixture = ip.Mixture({"a": inner, "b": ip.Sequential(5)}, {"a": 2, "b": 1}, epoch_size=40)
    weights = {"a": 1, "b": draw(st.integers(0, 2)), "c": draw(st.integers(1, 3))}
    sources = {"c": ip.LocalShuffle(9, window=4, seed=2**80)}
    return mixture.with_phase(draw(st.integers(1, 90)), weights, sources=sources)


AROUND: dict[str, Any] = {
    **{name: recipe.around for name, recipe in RECIPES.items()},
    "since": since,
    "grown": grown,
}


def layered(name: str, draw: Any) -> ip.Plan:
    """Draw a plan over an order that is promised something, in up to two layers."""
    order = ORDERS[name].make(draw)
    for around in draw(st.lists(st.sampled_from(sorted(AROUND)), max_size=2)):
        order = AROUND[around](draw, order)
    return over(order, draw)


def over(order: ip.Order, draw: Any) -> ip.Plan:
    """Draw a plan over an order: fresh or resumed, under any remainder, with balance or without."""
    plan: ip.Plan = draw(plans(st.just(order)))
    if draw(st.integers(0, 4)) == 0:
        plan = plan.replace(balance=draw(balances(order.num_samples)))
    return plan


def of(make: Any, number: int, most: int) -> list[ip.Plan]:
    """Return plans that can be made, the last that are drawn: the first are the simplest."""
    found: dict[str, ip.Plan] = {}

    @seed(number)
    @settings(
        max_examples=4 * most,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(st.data())
    def look(data: st.DataObject) -> None:
        try:
            plan = make(data.draw)
            answers(plan)
        except ip.IndexPlanError:  # such as layers that do not fit each other
            return
        found[plan.fingerprint] = plan

    look()
    return list(found.values())[-most:]


def whole(order: ip.Order, draw: Any) -> ip.Plan:
    """Draw a plan over an order for global batches, of whole ones or of equal parts."""
    size = order.ip_global_batch
    sizes = [part for part in range(1, size + 1) if size % part == 0]
    return ip.Plan(
        order,
        world_size=draw(st.integers(1, 5)),
        global_batch_size=draw(st.sampled_from(sizes)),
        remainder=draw(st.sampled_from(["spread", "drop", "pad", "carry"])),
    )


def for_global_batches() -> list[ip.Plan]:
    """Return 12 plans over each kind of order for global batches, which came later."""
    orders = [
        *(every_order()[name] for name in ("batched-v1", "distinct-v1", "flat-v1")),
        ip.Flat(ip.Grouped([i % 3 for i in range(50)], 4, seed=3)),
        ip.Flat(ip.ClassBatches([i % 5 for i in range(60)], 2, 3, seed=2)),
    ]
    makes = [partial(over if each.ip_global_batch == 1 else whole, each) for each in orders]
    return [plan for at, make in enumerate(makes) for plan in of(make, 1000 + at, 12)]


def drawn_plans() -> str:
    """Return the plans and their answers: first over each kind of order, then over what is drawn.

    What is longest is left out.
    """
    makes = [
        *(partial(over, order) for order in every_order().values()),
        *(partial(layered, name) for name in ORDERS for _ in range(OF_EACH)),
    ]
    found = [plan for at, make in enumerate(makes) for plan in of(make, at, 1)]
    cases = [
        {"plan": json.loads(plan.to_json()), "columns": columns_of(plan), "answers": answers(plan)}
        for plan in {plan.fingerprint: plan for plan in found}.values()
    ]
    shortest = sorted(range(len(cases)), key=lambda at: len(json.dumps(cases[at])))
    kept = [cases[at] for at in sorted(shortest[:NUM_PLANS])]
    assert NUM_PLANS == len(kept)
    kept += [
        {"plan": json.loads(plan.to_json()), "columns": columns_of(plan), "answers": answers(plan)}
        for plan in for_global_batches()
    ]
    origin = "the library itself: answers that no change may change, from tests.support.frozen"
    return lines({"origin": origin}, "cases", kept)
