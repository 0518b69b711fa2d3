"""`diff` says what walking both runs step by step finds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, reject
from hypothesis import strategies as st

import indexplan as ip
from indexplan.reports import lockstep
from tests.support.bins import Bins
from tests.support.model import run_of, walk
from tests.support.planned import planned
from tests.support.strategies import EPOCHS, cursors, fresh_plans, orders, partitions, plans

PLAN = ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16)
SIZES = ("batch_size", "global_batch_size")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[ip.Plan, ip.Plan]:
    """Draw two plans of one order, of one partition but for a field or two."""
    a = draw(plans())
    sub_epochs = draw(st.sampled_from([a.sub_epochs, a.sub_epochs, 1, 2]))
    new = draw(partitions(a.order, sub_epochs))
    names = ["world_size", "remainder", *(["size"] if sub_epochs == a.sub_epochs else [])]
    changed = draw(st.sets(st.sampled_from(names), max_size=2)) | ({"size"} - {*names})
    fields = {name: getattr(a, name) for name in (*SIZES, "world_size", "remainder")}
    fields |= {name: new[name] for name in ("world_size", "remainder") if name in changed}
    if "size" in changed:
        fields |= {name: new.get(name) for name in SIZES}
    b = planned(a.order, sub_epochs=sub_epochs, **fields)
    if b.sub_epochs == a.sub_epochs and draw(st.booleans()):
        b = b.resume(draw(cursors(a)))
    return a, b


def rows(plan: ip.Plan, epoch: int, begin: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the steps of an epoch that start at or past a position.

    Of each its name, what it reads (the samples of each slot, and whether they are padding), and by
    whom: the slots of each rank, and how these are cut into inner batches.
    """
    for there in walk(run_of(plan), epoch + 1):
        for step in there.steps if there.epoch == epoch else ():
            if step.slots[0].position >= begin:
                read = [
                    (slot.padded, plan.order.take(slot.epoch, slot.position).tolist())
                    for slot in step.slots
                ]
                shares = step.ranks, plan._layout.phases[step.phase].inner_counts
                yield (epoch, there.sub_epoch, step.number), read, shares


def differences(a: ip.Plan, b: ip.Plan) -> dict[str, Any]:
    """The first differing steps, found one by one."""
    first: dict[str, Any] = {}
    started, position = max((plan.start.epoch, plan.start.position) for plan in (a, b))
    for epoch in range(started, max(EPOCHS, started + 1)):
        begin = position if epoch == started else 0
        for one, other in zip_longest(rows(a, epoch, begin), rows(b, epoch, begin)):
            where = (one or other)[0]
            alike = one is not None and other is not None and one[1] == other[1]
            if not alike or one[2] != other[2]:
                first.setdefault("ranks_from", where)
            if not alike:
                first.setdefault("steps_from", where)
                break
    return first


OLD = {"world_size": 3, "batch_size": 4}
READ_ON = tuple(
    ip.Plan(ip.Shuffle(2, seed=seed), world_size=1, batch_size=4, remainder="carry")
    for seed in (0, 3)
)
SAME = ip.Plan(ip.Sequential(20), world_size=3, global_batch_size=10)
CARRIED = (
    ip.Plan(ip.Sequential(3), world_size=1, batch_size=5, sub_epochs=3, remainder="carry"),
    ip.Plan(ip.Sequential(3), world_size=1, batch_size=1).resume(
        ip.Plan(ip.Sequential(3), world_size=1, batch_size=1).cursor(1, step=0)
    ),
)

LONGER = ip.Plan(ip.Sequential(97), world_size=3, batch_size=3)
PAST = (LONGER.replace(order=ip.Sequential(60)), LONGER.resume(LONGER.cursor(0, step=9)))


@st.composite
def other_orders(draw: st.DrawFn) -> tuple[ip.Plan, ip.Plan]:
    """Draw two plans whose orders differ: at once, or only from some place on."""
    order = draw(orders())
    num, sub_epochs = order.num_samples, draw(st.integers(1, 5))
    kind = draw(st.sampled_from(["seed", "without", "swapped", "bins", "longer"]))
    other: ip.Order = ip.Shuffle(num, seed=draw(st.integers(0, 3)))
    if kind == "without":
        cursor = draw(cursors(ip.Plan(order, world_size=2, batch_size=draw(st.integers(1, 5)))))
        samples = draw(st.sets(st.integers(0, num - 1), min_size=1))
        assume(len(samples) < num)
        other = ip.Without(order, sorted(samples), since=cursor)
        sub_epochs = 1  # the model knows none that keep the units they had
        assume(len(samples) + cursor.position < num)  # so that each epoch has something left
    elif kind == "bins":
        order, other = Bins(num), ip.Subset(Bins(num), draw(st.permutations(range(num))), num)
    elif kind == "longer":
        other = ip.Sequential(num + draw(st.integers(1, 9)))
    elif kind == "swapped":
        first, second = draw(st.lists(st.integers(0, num - 1), min_size=2, max_size=2))
        row = np.arange(num)
        row[[first, second]] = second, first
        order, other = ip.Sequential(num), ip.Subset(ip.Sequential(num), row, num)
    fields: dict[str, Any] = draw(partitions(other, sub_epochs))  # no "carry" where units vary
    fields["sub_epochs"] = sub_epochs
    try:
        a, b = (planned(each, **fields) for each in (order, other))
    except ip.IndexPlanError:  # phases that rise in the epochs of the other alone
        reject()
    if kind == "longer" and draw(st.booleans()):
        b = b.resume(draw(cursors(b)))  # perhaps past the end of the other
    return (a, b) if draw(st.booleans()) else (b, a)


@given(pairs() | other_orders())
@example((ip.Plan(ip.Sequential(11), **OLD, remainder="pad"),) * 2)
@example(
    tuple(ip.Plan(ip.Sequential(11), **OLD, remainder=each) for each in ("pad", "carry"))
)  # the same places, but the first ends in the same epoch
@example((SAME, SAME.replace(remainder="carry")))  # the same places, but other ranks from epoch 1
@example(READ_ON)  # of which only epoch 3 differs, where the step of epoch 2 reads on
@example(CARRIED)  # whose only step of epoch 1 starts in its last sub-epoch
@example(PAST)  # of which only the second has steps of epoch 0 from where it starts
def test_diff_finds_what_walking_finds(pair: tuple[ip.Plan, ip.Plan]) -> None:
    """The first step whose units, or their ranks, differ, over the first epochs."""
    a, b = pair
    started = max(plan.start.epoch for plan in (a, b))
    found = ip.diff(a, b, range(max(EPOCHS, started + 1)))
    expected = differences(a, b)
    for name in ("steps_from", "ranks_from"):
        assert expected.get(name) == getattr(found, name), name
    assert found.same == (a.order == b.order and not expected)


@given(fresh_plans())
def test_a_plan_does_not_differ_from_itself(plan: ip.Plan) -> None:
    """Nor from itself resumed: what is compared is what both have."""
    assert ip.diff(plan, plan).same
    assert ip.diff(plan, plan.resume(plan.start)).same


@pytest.mark.parametrize(
    ("other", "lines"),
    [
        (
            PLAN.replace(world_size=4, global_batch_size=128),
            [
                "steps            the same units in the same sequence",
                "ranks            different since epoch 0, sub-epoch 0, step 0",
                "  world_size     4 instead of 8",
            ],
        ),
        (
            PLAN.replace(batch_size=[ip.Phase(0, 16), ip.Phase((1, 0), (2, 8), {"lr": 1})]),
            [
                "steps            the same units in the same sequence",
                "ranks            different since epoch 1, sub-epoch 0, step 0",
            ],
        ),
    ],
)
def test_words(other: ip.Plan, lines: list[str]) -> None:
    """What people read."""
    said = str(ip.diff(PLAN, other)).split("\n")
    for line in lines:
        assert line in said
    assert list(ip.diff(PLAN, other).to_dict()["words"]) == said


def test_differences_that_no_step_reads() -> None:
    """Units that "drop" leaves out of a sub-epoch hide no difference in a later one."""
    row = np.arange(10_000)
    row[[3500, 3600]], row[[7500, 7600]] = [3600, 3500], [7600, 7500]
    fields: dict[str, Any] = {"world_size": 1, "batch_size": 3000, "remainder": "drop"}
    orders = ip.Sequential(10_000), ip.Subset(ip.Sequential(10_000), row, 10_000)
    a, b = (ip.Plan(order, sub_epochs=2, **fields) for order in orders)
    assert (0, 1, 0) == ip.diff(a, b, [0]).steps_from


@pytest.mark.slow
def test_any_number_of_sub_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are laid out alike are compared once: 1e9 of them are no more work than 40."""
    monkeypatch.setattr(lockstep, "MOST_DRAWN", 2**18)
    for remainder in ("carry", "spread", "pad", "drop"):
        for num, size in ((16 * 10**9 + 5, 4), (15 * 10**9 + 5, 4)):  # all steps equal, or not
            order = ip.Shuffle(num)
            fields: dict[str, Any] = {"sub_epochs": 10**9, "remainder": remainder}
            a = ip.Plan(order, world_size=2, global_batch_size=size, **fields)
            assert ip.diff(a, a).same
            b = a.replace(global_batch_size=[ip.Phase(0, size), ip.Phase((1, 10**8), 2 * size)])
            assert (1, 10**8, 0) == ip.diff(a, b).steps_from
            assert (0, 0, 0) == ip.diff(a, a.replace(world_size=4)).ranks_from
    since = a.cursor(1, 5 * 10**8, step=0)
    found = ip.diff(a, a.replace(order=ip.Without(order, [1], since=since)))
    assert not found.same
    if found.steps_from is None:  # as the sample may be read very far from there
        assert "; then too much would have to be compared" in str(found)
    else:
        assert found.steps_from >= (1, 5 * 10**8, 0)


def test_how_far_orders_are_drawn() -> None:
    """What one continues the other with is drawn; of all else, so much, which is said."""
    order = ip.Sequential(2**26)
    plan = ip.Plan(order, world_size=1, batch_size=2**10)
    later = ip.Without(order, [2**26 - 2], since=plan.cursor(0, step=2**16 - 5))
    assert (0, 0, 2**16 - 1) == ip.diff(plan, plan.replace(order=later)).steps_from
    alike = ip.diff(plan, plan.replace(order=ip.Epochs(order, 2**26)), [0])
    assert alike.steps_from is None
    assert not alike.same
    assert "; then too much would have to be compared" in str(alike)


def test_what_is_compared_by_default() -> None:
    """Where plans can begin to differ: their start, and around every phase, however late."""
    late = PLAN.replace(batch_size=[ip.Phase(0, 16), ip.Phase((500, 0), 20)])
    found = ip.diff(PLAN, late)
    assert (500, 0, 0) == found.steps_from
    assert (0, 1, 2, 499, 500, 501) == found.epochs
    assert "compared         epochs 0, 1, 2, 499, 500, 501" in found.words
    resumed = PLAN.resume(PLAN.cursor(5, step=3))
    other = PLAN.replace(world_size=7).resume(PLAN.cursor(5, step=3))
    assert (5, 0, 3) == ip.diff(resumed, other).steps_from
    with pytest.raises(ip.IndexPlanError, match="at least one epoch from 5 on, "):
        ip.diff(resumed, other, range(3))
