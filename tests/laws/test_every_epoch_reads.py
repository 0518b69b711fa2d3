"""A plan that was made reads something in every epoch; one that would not is refused."""

from __future__ import annotations

import json
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

import indexplan as ip
from tests.histories.listing import PLACE, place_of
from tests.support import model
from tests.support.bins import Shrinking
from tests.support.planned import READS_NOTHING

LOOKED_AT = 7  # epochs; phases and excluded samples begin in the first three
Phases = list[tuple[Any, int]]  # (place or (epoch, sub-epoch), size)


@st.composite
def fields(draw: st.DrawFn) -> dict[str, Any]:
    """Draw what decides the steps under "drop"; sizes are near the lengths of epochs."""
    n, parts = draw(st.integers(1, 40)), draw(st.sampled_from([1, 1, 2, 3, 7]))
    sizes = st.integers(1, n + 3) if parts == 1 else st.integers(1, 2 + -(-n // parts))
    by_place = draw(st.booleans())
    if by_place:
        ats: list[Any] = draw(st.lists(st.integers(1, 3 * n), max_size=3, unique=True))
    else:
        pairs = st.tuples(st.integers(0, 2), st.integers(0, parts - 1)).filter(any)
        ats = draw(st.lists(pairs, max_size=3, unique=True))
    phases = [(at, draw(sizes)) for at in [0 if by_place else (0, 0), *sorted(ats)]]
    excluded = draw(st.integers(0, n - 1)) if parts == 1 and not by_place else 0
    since = draw(st.integers(0, 3))
    return {"n": n, "parts": parts, "phases": phases, "excluded": excluded, "since": since}


def order_of(n: int, excluded: int, since: int) -> ip.Order:
    """Return an order without some samples from the beginning of an epoch on."""
    order = ip.Shuffle(n, seed=n)
    if not excluded:
        return order
    cursor = ip.Plan(order, batch_size=1, world_size=1).cursor(since, step=0)
    return ip.Without(order, range(excluded), since=cursor)


def expected_of(n: int, parts: int, phases: Phases, excluded: int, since: int) -> list[int]:
    """Return how many steps each of the first epochs has, by walking them place by place."""
    run = model.Run(lambda epoch: n - excluded * (epoch >= since), 1, phases, parts, "drop")
    walked = model.walk(run, LOOKED_AT)
    return [
        sum(len(each.steps) for each in walked if each.epoch == epoch) for epoch in range(LOOKED_AT)
    ]


@given(fields())
@example({"n": 20, "parts": 1, "phases": [(0, 6), (12, 30)], "excluded": 0, "since": 0})
@example({"n": 20, "parts": 3, "phases": [((0, 0), 9), ((0, 2), 6)], "excluded": 0, "since": 0})
@example({"n": 20, "parts": 1, "phases": [((0, 0), 6)], "excluded": 15, "since": 2})
def test_a_plan_is_made_if_every_epoch_has_a_step(drawn: dict[str, Any]) -> None:
    """And only then; by counting the steps of seven epochs, of which the last are alike."""
    steps = expected_of(**drawn)
    order = order_of(drawn["n"], drawn["excluded"], drawn["since"])
    size = [ip.Phase(at, size) for at, size in drawn["phases"]]
    made = {"global_batch_size": size, "sub_epochs": drawn["parts"], "remainder": "drop"}
    if not all(steps):
        with pytest.raises(ip.IndexPlanError) as caught:
            ip.Plan(order, **made)
        assert READS_NOTHING == caught.value.rule
        assert f"epoch {steps.index(0)}" == caught.value.what
        with pytest.raises(ip.IndexPlanError, match="must have a full step"):
            ip.Plan(order, **{**made, "remainder": "pad"}).replace(remainder="drop").steps(0, 0)
        return
    plan = ip.Plan(order, **made)
    parts = range(drawn["parts"])
    assert steps == [sum(len(plan.steps(e, p)) for p in parts) for e in range(LOOKED_AT)]
    assert min(plan.account(epoch).num_read for epoch in range(LOOKED_AT)) > 0


@given(fields(), st.data())
def test_what_is_left_of_the_epoch_of_a_resume_may_have_no_step(
    drawn: dict[str, Any], data: st.DataObject
) -> None:
    """All epochs that follow it have one, or the resume is refused; those before don't count."""
    order = order_of(drawn["n"], drawn["excluded"], drawn["since"])
    ones = ip.Plan(order, global_batch_size=1, sub_epochs=drawn["parts"], remainder="drop")
    epoch = data.draw(st.integers(0, 3))
    part = data.draw(st.integers(0, drawn["parts"] - 1))
    cursor = ones.cursor(epoch, part, step=data.draw(st.integers(0, len(ones.steps(epoch, part)))))
    size = [ip.Phase(at, size) for at, size in drawn["phases"]]
    spec = {**json.loads(ones.to_json()), "global_batch_size": [each.to_dict() for each in size]}
    spec["resumed"] = dict(zip(PLACE, place_of(cursor), strict=True))
    steps = expected_of(**drawn)
    first = cursor.epoch if not any(place_of(cursor)[1:]) else cursor.epoch + 1
    changed = ones.replace(global_batch_size=size)  # which nobody asks before the resume
    if all(steps[first:]):
        plan = ip.Plan.from_json(json.dumps(spec), order=order)
        assert plan == changed.resume(cursor)
        assert all(plan.account(each).num_steps for each in range(first, LOOKED_AT))
    else:
        with pytest.raises(ip.IndexPlanError, match="must have a full step"):
            ip.Plan.from_json(json.dumps(spec), order=order)
        with pytest.raises(ip.IndexPlanError, match="must have a full step"):
            changed.resume(cursor).steps(epoch, part)


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 12), st.integers(0, 59))
def test_excluded_samples_leave_each_epoch_a_step(
    n: int, parts: int, size: int, excluded: int
) -> None:
    """Sub-epochs differ in length from epoch to epoch then; a plan that is made has its steps."""
    left = n - min(excluded, n - 1)
    made = {"global_batch_size": size, "sub_epochs": parts, "remainder": "drop"}
    order = order_of(n, n - left, 1)
    if size > -(-left // parts):
        with pytest.raises(ip.IndexPlanError, match="must have a full step"):
            ip.Plan(order, **made)
    else:
        plan = ip.Plan(order, **made)
        assert all(plan.account(epoch).num_steps for epoch in range(25))


@pytest.mark.parametrize("inside", [ip.Weighted([1, 2, 5] * 4), ip.Packed([3, 9, 2, 7] * 9, 12)])
@given(st.integers(0, 3), st.integers(1, 9), st.integers(1, 4), st.integers(1, 30))
def test_epochs_that_follow_a_resume_have_a_step(
    inside: ip.Order, epoch: int, step: int, parts: int, size: int
) -> None:
    """Also of an order whose epochs differ in units, where nobody knows which ones do."""
    ones = ip.Plan(ip.Without(inside, [3]), global_batch_size=1, sub_epochs=parts, remainder="drop")
    part = min(parts - 1, 1)
    cursor = ones.cursor(epoch, part, step=min(step, ones.steps(epoch, part).stop))
    made = ip.Plan(ones.order, global_batch_size=size, sub_epochs=parts)
    try:
        rest = made.replace(remainder="drop").resume(cursor)
    except ip.IndexPlanError:
        return
    after = range(rest.start.epoch + 1, rest.start.epoch + 9)
    assert any(rest.steps(each, part) for each in after for part in range(parts))


def test_an_order_of_ones_own_may_have_one_short_epoch() -> None:
    """Of one that does not name its epochs, two in a row without a step are refused, as known."""
    made = {"global_batch_size": 4, "remainder": "drop"}
    plan = ip.Plan(Shrinking(9), **made)  # of 5, 5, 4, 3, 2, 1, 1 and so on units
    assert [1, 1, 1, 0, 0] == [len(plan.steps(epoch)) for epoch in range(5)]
    with pytest.raises(ip.IndexPlanError, match=r"^epoch 4 must have a full step"):
        plan.resume(plan.cursor(3, step=0))
    with pytest.raises(ip.IndexPlanError, match=r"^epoch 1 must have a full step"):
        ip.Plan(Shrinking(9), **{**made, "global_batch_size": 6})
