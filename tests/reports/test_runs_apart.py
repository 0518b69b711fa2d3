"""diff of two ledgers, held against lists of what each rank of both runs read in each step."""

from __future__ import annotations

import random
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.errors import counted
from indexplan.reports import lockstep
from tests.support.left_out import inner_orders

Change = dict[str, Any]


class Run:
    """A run of a few stretches, each under a plan of its own, and its ledger."""

    def __init__(self, path: Path, order: ip.Order, sub_epochs: int) -> None:
        path.unlink(missing_ok=True)
        self.ledger = ip.Ledger(path)
        self.order, self.sub_epochs = order, sub_epochs
        self.cursor = ip.Plan(order, world_size=1, batch_size=1, sub_epochs=sub_epochs).start

    def read(self, change: Change, cuts: list[int]) -> None:
        """Read one stretch, in as many segments as there are cuts and one more."""
        plan = self._changed(change)
        places = self._places(plan, change["num"])
        for number in [*cuts, change["num"]]:
            if 0 < number < len(places):
                self.ledger.record(plan, places[number])
                self.cursor = places[number]
                plan = plan.resume(self.cursor)

    def go_astray(self, change: Change) -> None:
        """Read a stretch, and return to where the run stood before, if it has begun."""
        if not self.ledger.step:  # as a run starts over only with the order that it began with
            return
        step, order, cursor = self.ledger.step, self.order, self.cursor
        self.read(change, [])
        if self.ledger.step > step:
            self.ledger.rewind(step)
        self.order, self.cursor = order, cursor

    def _changed(self, change: Change) -> ip.Plan:
        """Return the plan of a stretch; what the order cannot take is left out of it."""
        fields = {name: change[name] for name in ("world_size", "batch_size", "remainder")}
        orders = [self.order]
        try:
            if change["exclude"] is not None:
                orders.append(ip.Without(self.order, change["exclude"], since=self.cursor))
            if change["weight"] is not None and isinstance(self.order, ip.Mixture):
                weights = {"a": change["weight"], "b": 1}
                orders.append(self.order.with_phase(self._place(), weights, planned="drop"))
        except ip.IndexPlanError:
            pass
        for order in reversed(orders):
            try:
                plan = ip.Plan(order, sub_epochs=self.sub_epochs, **fields).resume(self.cursor)
                self.order = order
                return plan
            except ip.IndexPlanError:
                fields["remainder"] = "spread"
        return ip.Plan(self.order, sub_epochs=self.sub_epochs, **fields).resume(self.cursor)

    def _place(self) -> int:
        return self.cursor.epoch * self.order.num_units(0) + self.cursor.position

    def _places(self, plan: ip.Plan, num: int) -> list[ip.Cursor]:
        """Return the cursors before the next steps, and after the last of them."""
        found = [plan.start]
        for epoch in range(plan.start.epoch, plan.start.epoch + 4):
            for part in range(self.sub_epochs):
                if (epoch, part) >= (plan.start.epoch, plan.start.sub_epoch):
                    steps = plan.steps(epoch, part)
                    found += [
                        plan.cursor(epoch, part, step=step)
                        for step in range(steps.start + 1, steps.stop + 1)
                    ]
        return found[: num + 1]

    def listed(self) -> list[list[list[tuple[Any, ...]]]]:
        """Return, step by step and rank by rank, the units that were read."""
        rows = []
        for step in range(self.ledger.step):
            at = self.ledger.at(step)
            batches = [
                at.plan.units(at.epoch, at.sub_epoch, step=at.step, rank=rank)
                for rank in range(at.plan.world_size or 0)
            ]
            rows.append([units(each) for each in batches])
        return rows


def units(batch: Any) -> list[tuple[Any, ...]]:
    """Return the units of a batch: of each the samples, their parts, and whether it is padding."""
    spans = batch.spans.tolist() if batch.spans is not None else [None] * len(batch.samples)
    both = list(zip(batch.samples.tolist(), map(str, spans), strict=True))
    edges = enumerate(pairwise(batch.offsets.tolist()))
    return [(number >= batch.num_valid, *both[low:high]) for number, (low, high) in edges]


def drawn_change(drawn: random.Random) -> Change:
    """Draw a stretch of steps: how it differs from the one before, and how many it has."""
    return {
        "world_size": drawn.randrange(1, 4),
        "batch_size": drawn.randrange(1, 5),
        "remainder": drawn.choice(["spread", "spread", "pad", "carry", "drop"]),
        "exclude": drawn.choice([None, None, [drawn.randrange(7)]]),
        "weight": drawn.choice([None, 1, 2]),
        "num": drawn.randrange(1, 9),
    }


def first(rows: list[Any], beside: list[Any]) -> int | None:
    """Return the first place at which two lists differ."""
    pairs = enumerate(zip(rows, beside, strict=False))
    return next((number for number, (one, other) in pairs if one != other), None)


@given(st.randoms(use_true_random=False))
def test_against_lists(tmp_path_factory: pytest.TempPathFactory, drawn: random.Random) -> None:
    """Runs part where the lists of their units do, under any changes, cuts and returns."""
    folder = tmp_path_factory.mktemp("runs")
    order, sub_epochs = inner_orders(drawn), drawn.choice([1, 1, 2])
    one, other = (Run(folder / name, order, sub_epochs) for name in ("a", "b"))
    changes = [drawn_change(drawn) for _ in range(drawn.randrange(1, 5))]
    changed = drawn.randrange(len(changes) + 1)
    for number, change in enumerate(changes):
        one.read(change, sorted(drawn.sample(range(9), drawn.randrange(3))))
        if number == changed:
            name = drawn.choice(list(change))
            other_change = {**change, name: drawn_change(drawn)[name]}
        else:
            other_change = change
        other.read(other_change, sorted(drawn.sample(range(9), drawn.randrange(3))))
        if drawn.random() < 0.3:
            other.go_astray(drawn_change(drawn))
    found = ip.diff(one.ledger, other.ledger)
    rows, beside = one.listed(), other.listed()
    together = [[list(chain(*row)) for row in each] for each in (rows, beside)]
    assert found.steps_from == first(*together)
    assert found.ranks_from == first(rows, beside)
    assert found.num_steps == (len(rows), len(beside))
    least = min(found.num_steps)
    assert found.num_compared == (least if found.steps_from is None else found.steps_from)
    assert found.same == (rows[:least] == beside[:least])
    assert bool(found.why) == (found.ranks_from is not None)


@given(st.randoms(use_true_random=False))
def test_a_plan_is_a_run(tmp_path_factory: pytest.TempPathFactory, drawn: random.Random) -> None:
    """Next to a ledger, a plan is a run that reads it from where it starts."""
    folder = tmp_path_factory.mktemp("runs")
    one, other = (Run(folder / name, ip.Shuffle(72), 2) for name in ("a", "b"))
    changes = [drawn_change(drawn) for _ in range(drawn.randrange(1, 3))]
    for change in changes:
        one.read(change, sorted(drawn.sample(range(9), drawn.randrange(3))))
    plan = other._changed(changes[0])
    other.ledger.record(plan, other._places(plan, one.ledger.step)[-1])
    for a, b, sides in ((one.ledger, plan, 1), (plan, one.ledger, 0)):
        ledgers = (one.ledger, other.ledger)[:: 2 * sides - 1]
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
@pytest.mark.usefixtures("_here")
def test_why(plans: list[ip.Plan], expected: Any) -> None:
    """What differs is named by the fields of the plan."""
    found = ip.diff(run("a", PLAN), run("b", *plans))
    assert expected == (found.steps_from, found.ranks_from, found.why)


@pytest.fixture(name="_here")
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
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


@pytest.mark.usefixtures("_here")
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


@pytest.mark.usefixtures("_here")
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
