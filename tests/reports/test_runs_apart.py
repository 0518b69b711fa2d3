"""diff of two ledgers, held against lists of what each rank of both runs read in each step."""

from __future__ import annotations

import random
from itertools import chain, islice, pairwise
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.errors import counted
from indexplan.reports import lockstep
from tests.histories.listing import steps_of
from tests.histories.runs import Run


def listed(ledger: ip.Ledger) -> list[list[list[tuple[Any, ...]]]]:
    """Return, step by step and rank by rank, the units that were read."""
    rows = []
    for step in range(ledger.step):
        at = ledger.at(step)
        where = {"epoch": at.epoch, "sub_epoch": at.sub_epoch, "step": at.step}
        ranks = range(at.plan.world_size or 0)
        rows.append([units(at.plan.units(**where, rank=rank)) for rank in ranks])
    return rows


def dealt(ledger: ip.Ledger) -> list[tuple[Any, Any]]:
    """Return, step by step, what is read, and the balance, where it divides anything."""
    rows = []
    for step, row in enumerate(listed(ledger)):
        at = ledger.at(step)
        parts = at.plan.units(at.epoch, at.sub_epoch, step=at.step, rank=0).inner_counts
        rows.append((row, at.plan.balance if len(row) * prod(parts) > 1 else None))
    return rows


def units(batch: Any) -> list[tuple[Any, ...]]:
    """Return the units of a batch: of each the samples, their parts, and whether it is padding."""
    spans = batch.spans.tolist() if batch.spans is not None else [None] * len(batch.samples)
    both = list(zip(batch.samples.tolist(), map(str, spans), strict=True))
    edges = enumerate(pairwise(batch.offsets.tolist()))
    return [(number >= batch.num_valid, *both[low:high]) for number, (low, high) in edges]


def first(rows: list[Any], beside: list[Any]) -> int | None:
    """Return the first place at which two lists differ."""
    pairs = enumerate(zip(rows, beside, strict=False))
    return next((number for number, (one, other) in pairs if one != other), None)


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 4), st.integers(0, 3))
def test_against_lists(
    tmp_path_factory: pytest.TempPathFactory, seed: int, other_seed: int, alike: int, apart: int
) -> None:
    """Runs part where the lists of their units do, under any changes, cuts and returns.

    They change alike for a while, though their lines are cut at other places.
    """
    folder, cuts = tmp_path_factory.mktemp("runs"), random.Random(other_seed)  # noqa: S311
    one = Run(random.Random(seed), folder, cuts)  # noqa: S311 (draws a test)
    other = Run(random.Random(seed), folder / "other", cuts)  # noqa: S311 (the same)
    for run in (one, other):
        run.live(alike)
        run.read()
    other.drawn.seed(other_seed)
    for run in (one, other):
        run.live(apart)
    found = ip.diff(one.ledger, other.ledger)
    rows, beside = listed(one.ledger), listed(other.ledger)
    together = [[list(chain(*row)) for row in each] for each in (rows, beside)]
    assert found.steps_from == first(*together)
    assert found.ranks_from == first(dealt(one.ledger), dealt(other.ledger))
    assert found.num_steps == (len(rows), len(beside))
    least = min(found.num_steps)
    assert found.num_compared == (least if found.steps_from is None else found.steps_from)
    assert found.same == (found.ranks_from is None)
    assert bool(found.why) == (found.ranks_from is not None)


@given(st.integers(0, 2**32), st.integers(1, 3))
def test_a_plan_is_a_run(tmp_path_factory: pytest.TempPathFactory, seed: int, changes: int) -> None:
    """Next to a ledger, a plan is a run that reads it from where it starts."""
    folder = tmp_path_factory.mktemp("runs")
    one = Run(random.Random(seed), folder)  # noqa: S311 (draws a test)
    plan = one.plan
    one.live(changes)
    one.read()
    other = ip.Ledger(folder / "other.ledger")
    *_, last = (step.named for step in islice(steps_of(plan), one.ledger.step))
    other.record(plan, plan.cursor(*last[1:3], step=last[3] + 1))
    for a, b, sides in ((one.ledger, plan, 1), (plan, one.ledger, 0)):
        ledgers = (one.ledger, other)[:: 2 * sides - 1]
        found, expected = ip.diff(a, b).to_dict(), ip.diff(*ledgers).to_dict()
        assert found.pop("words")[1:] == expected.pop("words")[1:]
        assert found == expected


PLAN = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=10)
END = (2, 0)  # epoch and step at which the runs below stop


def run(name: str, *plans: ip.Plan) -> ip.Ledger:
    """A run that reads some plans, each for 25 steps and the last one up to the end."""
    ledger = ip.Ledger(name)
    for number, each in enumerate(plans, 1):
        plan = each.resume(ledger.cursor) if ledger.step else each
        epoch, step = END if number == len(plans) else (number, 0)
        ledger.record(plan, plan.cursor(epoch, step=step))
    return ledger


@pytest.mark.parametrize(
    ("plans", "expected"),
    [
        ([PLAN, PLAN], (None, None, ())),
        ([PLAN.replace(order=ip.Shuffle(1000, seed=1))], (0, 0, ("order.seed",))),
        ([PLAN.replace(order=ip.Sequential(1000))], (0, 0, ("order",))),
        ([PLAN, PLAN.replace(batch_size=20)], (25, 25, ("batch_size",))),
        (
            [PLAN, PLAN.replace(batch_size=20, world_size=2)],
            (None, 25, ("batch_size", "world_size")),
        ),
        ([PLAN, PLAN.replace(batch_size=(2, 5))], (None, 25, ("batch_size",))),
        (
            [PLAN, PLAN.replace(balance=ip.Balance([1, 5] * 500))],
            (None, 25, ("balance",)),
        ),
    ],
)
@pytest.mark.usefixtures("here")
def test_why(plans: list[ip.Plan], expected: Any) -> None:
    """What differs is named by the fields of the plan."""
    found = ip.diff(run("a", PLAN), run("b", *plans))
    assert expected == (found.steps_from, found.ranks_from, found.why)


@pytest.mark.usefixtures("here")
def test_words() -> None:
    """The answer in words, of another column of weights, and of other ranks before."""
    orders = [ip.Weighted(weights) for weights in ([1, 2] * 10, [1, 3] * 10)]
    one, other = (ip.Plan(order, world_size=2, batch_size=2) for order in orders)
    a, b = ip.Ledger("a"), ip.Ledger("b")
    a.record(one, one.cursor(1, step=2))
    b.record(other, other.cursor(1, step=0))
    found = ip.diff(a, b)
    assert str(found).splitlines() == [
        f"compared         {counted(found.steps_from or 0, 'step')} of 7 in a, 5 in b",
        f"steps            different since step {found.steps_from}",
        f"ranks            different since step {found.steps_from}",
        f"  order.weights  {column(orders[1])} instead of {column(orders[0])}",
    ]
    assert {"same": False, "why": ["order.weights"]}.items() <= found.to_dict().items()


def column(order: ip.Weighted) -> str:
    """A column as `diff` names it."""
    return f"the column {order.weights.identity['sha256'][:16]}... of 20"


@pytest.mark.usefixtures("here")
def test_places() -> None:
    """Equal plans that stand at other places are told apart."""
    a, b = ip.Ledger("a"), ip.Ledger("b")
    a.record(PLAN, PLAN.cursor(1, step=0))
    later = PLAN.resume(PLAN.cursor(0, step=3))
    b.record(later, later.cursor(1, step=0))
    found = ip.diff(a, b)
    assert (0, ("place",)) == (found.steps_from, found.why)
    place = "epoch 0, sub-epoch 0, step 3, position 120"
    assert f"  place          {place} instead of epoch 0, sub-epoch 0, step 0, " in str(found)


@pytest.mark.usefixtures("here")
def test_too_much_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where orders differ far away, the answer says how far it has looked."""
    last = int(PLAN.order.take(0, 999, 1000)[0])
    plans = [PLAN, PLAN.replace(order=ip.Without(PLAN.order, [last]))]
    ledgers = [run("a", plans[0]), run("b", plans[1])]
    assert 24 == ip.diff(*ledgers).steps_from  # 999 units in 25 steps: the last one is smaller
    monkeypatch.setattr(lockstep, "AT_ONCE", 40)
    monkeypatch.setattr(lockstep, "MOST_DRAWN", 400)
    found = ip.diff(*ledgers)
    assert (None, 10, False) == (found.steps_from, found.num_compared, found.same)
    assert "steps            the same units in the same sequence; then too much" in str(found)
