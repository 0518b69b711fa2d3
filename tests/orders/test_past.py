"""An order that is over is kept by its identity: a run continues without its data."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.examples import examples

N = 12
loads = pickle.loads  # of our own


def drawn(number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return weights by number; equal numbers, equal weights."""
    return np.random.default_rng(number).random(N)


def order_of(rows: list[tuple[int, int]], **options: Any) -> ip.Weighted:
    """Return the order of some rows, each an epoch and the number of its weights."""
    return ip.Weighted([(epoch, drawn(number)) for epoch, number in rows], **options)


LAYERS: dict[str, Callable[[ip.Order], ip.Order]] = {
    "alone": lambda order: order,
    "subset": lambda order: ip.Subset(order, np.arange(N)[::-1], 2 * N),
    "epochs": lambda order: ip.Epochs(order, 7),
    "repeat": lambda order: ip.Repeat(order, 2, 6),
    "without": lambda order: ip.Without(order, [3, 5]),
    "mixture": lambda order: ip.Mixture({"a": order, "b": ip.Shuffle(9)}, {"a": 2, "b": 1}),
    "deep": lambda order: ip.Without(ip.Subset(ip.Repeat(order, 2), range(N), N), [1]),
}


def rest(plan: ip.Plan, epoch: int, step: int) -> list[list[int]]:
    """Return what a plan reads from a step on, in two epochs."""
    steps = [(epoch, each) for each in range(step, plan.steps(epoch).stop)]
    steps += [(epoch + 1, each) for each in plan.steps(epoch + 1)]
    return [plan.batch(e, step=s, rank=r).tolist() for e, s in steps for r in range(2)]


ROWS = st.tuples(st.lists(st.integers(1, 9), max_size=6, unique=True), st.integers(0, 2**16))


def rows_of(drawn_rows: tuple[list[int], int]) -> list[tuple[int, int]]:
    """Return rows of weights that begin at some epochs, by the digits of a number."""
    epochs, digits = drawn_rows
    return [(epoch, digits // 4**i % 4) for i, epoch in enumerate([0, *sorted(epochs)])]


@examples(150)
@given(theirs=ROWS, own=ROWS, now=st.booleans(), epoch=st.integers(0, 10), step=st.integers(0, 2))
def test_a_run_continues_if_the_weights_in_force_are_there(
    theirs: tuple[list[int], int], own: tuple[list[int], int], now: bool, epoch: int, step: int
) -> None:
    """The weights of the next step are enough; what comes later is the plan's, as ever.

    Which rows may continue, and which weights each epoch then has, is listed epoch by epoch.
    """
    rows, mine = rows_of(theirs), rows_of(own)
    before = epoch + (step > 0)
    there = [[number for at, number in rows if at <= each][-1] for each in range(12)]
    if now:  # the weights in force are those of the run
        mine = [row for row in mine if row[0] < epoch] + [(epoch, there[epoch])]
    here = [[number for at, number in mine if at <= each][-1] for each in range(12)]
    whole = ip.Plan(order_of(rows, seed=5), world_size=2, batch_size=2)
    fresh = whole.replace(order=order_of(mine, seed=5))
    cursor = ip.Cursor.from_json(whole.cursor(epoch, step=step).to_json())
    equal = [row for row in rows if row[0] < before] == [row for row in mine if row[0] < before]
    begins = step == 0 and epoch in [at for at, _ in mine]
    if not (equal or here[epoch] == there[epoch] or begins):
        with pytest.raises(ip.IndexPlanError, match=r"a cursor must .*with sha256"):
            fresh.resume(cursor)
        return
    resumed = fresh.resume(cursor)
    expected = [*there[:epoch], *here[epoch:]]
    named = {ip.Column(drawn(number)).identity["sha256"]: number for number in range(4)}
    saved = resumed.order.to_dict()["weights"]
    saved = saved if isinstance(saved, list) else [[0, saved]]
    found = [
        [named[each["sha256"]] for at, each in saved if at <= number][-1] for number in range(12)
    ]
    assert found == expected
    read = rest(resumed, epoch, step)
    assert read == rest(fresh, epoch, 0)[-len(read) :]
    ahead = [[row for row in each if row[0] > epoch] for each in (rows, mine)]
    if not equal and here[epoch] == there[epoch] and ahead[0] == ahead[1]:
        assert resumed == whole.resume(cursor)


@pytest.mark.parametrize("name", LAYERS)
def test_orders_around_weights_continue_too(name: str) -> None:
    """Whatever reads the weights asks for those in force only, and the plan is the same."""
    around, epoch = LAYERS[name], 8
    rows = [(each, each) for each in range(12)]
    whole = ip.Plan(around(order_of(rows)), world_size=2, batch_size=2)
    cursor = whole.cursor(epoch, step=1)
    inner = {"epochs": (8 * 7 + 4) // N, "mixture": (8 * 21 + 4) * 2 // 3 // N}.get(name, epoch)
    later = [row for row in rows if row[0] > inner]
    fresh = whole.replace(order=around(order_of([(0, inner), *later])))
    resumed = fresh.resume(cursor)
    assert resumed.fingerprint == whole.resume(cursor).fingerprint
    assert rest(resumed, epoch, 1) == rest(whole, epoch, 1)
    assert rest(loads(pickle.dumps(resumed)), epoch, 1) == rest(whole, epoch, 1)
    text = resumed.to_json()
    again = ip.Plan.from_json(text, columns=list(resumed.order.columns.values()))
    assert (again.to_json(), rest(again, epoch, 1)) == (text, rest(whole, epoch, 1))
    with pytest.raises(ip.IndexPlanError, match="weights since epoch 0, with sha256"):
        resumed.order.take(0, 0, 3)
    with pytest.raises(ip.IndexPlanError, match="a cursor must"):
        whole.replace(order=around(order_of([(0, 99), *later]))).resume(cursor)


def lost(call: Callable[[], Any], sha256: str) -> str:
    """Return the error of a question that needs the weights of a sha256, which are missing."""
    with pytest.raises(ip.IndexPlanError) as caught:
        call()
    assert sha256 in str(caught.value)
    return str(caught.value)


def test_what_is_over_is_refused_by_name_and_the_cure_works() -> None:
    """Questions about epochs whose weights are missing name them; given them, it answers."""
    rows = [(each, each) for each in range(5)]
    whole = ip.Plan(order_of(rows), world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    plan = whole.replace(order=ip.Weighted(drawn(4))).resume(cursor)
    sha256 = ip.Column(drawn(3)).identity["sha256"]
    lost(lambda: plan.order.count(3, [1]), sha256)
    lost(lambda: plan.order.locate(3, [1]), sha256)
    lost(lambda: plan.locate(1, epoch=3), sha256)
    lost(lambda: plan.order.take(3, 0, 2), sha256)
    lost(lambda: plan.replace(world_size=3).batch(3, step=0, rank=0), sha256)
    lost(lambda: plan.order.locate_all(3, [1]), sha256)
    said = lost(lambda: ip.explain(plan, 1, [3]), sha256)
    assert "give them to Plan.from_dict(plan.to_dict(), columns=[weights, ...])" in said
    given = ip.Plan.from_dict(plan.to_dict(), columns=[drawn(3), drawn(4)])
    assert given == plan
    assert given.order.count(3, range(N)).tolist() == whole.order.count(3, range(N)).tolist()
    lost(lambda: given.order.count(2, [1]), ip.Column(drawn(2)).identity["sha256"])
    assert plan.account(3).num_read == 0  # which needs no weights
    with pytest.raises(ip.IndexPlanError, match="no such column"):  # those in force
        ip.Plan.from_dict(plan.to_dict(), columns=[drawn(3)])
    with pytest.raises(ip.IndexPlanError, match="no such column"):  # from epoch 0 on
        ip.Plan.from_dict(plan.replace(world_size=3).to_dict(), columns=[drawn(4)])


def test_weights_of_the_next_epoch_need_nothing_of_the_past() -> None:
    """`updated` at the start of an epoch continues from weights that nobody has read."""
    rows = [(each, each) for each in range(5)]
    whole = ip.Plan(order_of(rows[:4]), world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=0)
    for first in (3, 4, 77):
        order = ip.Weighted(drawn(first)).updated(4, drawn(4))
        resumed = whole.replace(order=order).resume(cursor)
        uninterrupted = whole.replace(order=order_of(rows)).resume(cursor)
        assert resumed == uninterrupted
        assert rest(resumed, 4, 0) == rest(uninterrupted, 4, 0)
    with pytest.raises(ip.IndexPlanError) as caught:
        whole.replace(order=ip.Weighted(drawn(4))).resume(cursor)
    assert "let the new ones begin later: updated(4, weights)" in str(caught.value)


def test_plan_directories_hold_what_their_epochs_need(tmp_path: Path) -> None:
    """A plan saved without weights that are over loads and resumes; others are refused."""
    rows = [(each, each) for each in range(6)]
    whole = ip.Plan(order_of(rows), world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    plan = whole.replace(order=order_of([(0, 4), (5, 5)])).resume(cursor)
    ip.save(plan, tmp_path / "a.plan", epochs=[4, 5])
    stored = ip.load(tmp_path / "a.plan")
    assert len(list((tmp_path / "a.plan" / "columns").iterdir())) == 2
    assert stored == plan
    assert rest(stored, 4, 1) == rest(whole, 4, 1)
    assert stored.batch(6, step=0, rank=1).tolist() == whole.batch(6, step=0, rank=1).tolist()
    assert ip.verify(stored).ok
    assert rest(whole.replace(order=stored.order).resume(cursor), 4, 1) == rest(whole, 4, 1)
    sha256 = ip.Column(drawn(3)).identity["sha256"]
    lost(lambda: stored.order.take(3, 0, 2), sha256)
    lost(lambda: ip.save(plan, tmp_path / "b.plan", epochs=[3, 4]), sha256)
    assert not (tmp_path / "b.plan").exists()
    now = ip.Column(drawn(4)).identity["sha256"]
    (tmp_path / "a.plan" / "columns" / f"{now}.npy").unlink()
    with pytest.raises(ip.PlanFileError, match=now):  # it is needed, and gone
        ip.load(tmp_path / "a.plan")


def test_a_ledger_replays_what_it_has_the_weights_of(tmp_path: Path) -> None:
    """A ledger that begins late answers and verifies; without weights that it read, it does not."""
    rows = [(each, each) for each in range(6)]
    whole = ip.Plan(order_of(rows[:5]), world_size=2, batch_size=2)
    plan = whole.replace(order=ip.Weighted(drawn(4))).resume(whole.cursor(4, step=1))
    ledger = ip.Ledger(tmp_path / "run.ledger")
    ledger.record(plan, plan.cursor(5, step=0))
    later = plan.replace(order=plan.order.updated(5, drawn(5))).resume(plan.cursor(5, step=0))
    ledger.record(later, later.cursor(6, step=0))
    read = ip.Ledger(tmp_path / "run.ledger")
    assert read.verify().ok
    assert read.step == 2 + 3
    read.reads(1)
    sha256 = ip.Column(drawn(4)).identity["sha256"]
    (tmp_path / "columns" / f"{sha256}.npy").unlink()
    assert sha256 in str(ip.Ledger(tmp_path / "run.ledger").verify())
    lost(lambda: ip.Ledger(tmp_path / "run.ledger").reads(1), sha256)
