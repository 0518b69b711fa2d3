"""A run continues with weights that were the same in each epoch that it has begun."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.examples import examples
from tests.support.reweighted import reweighted

N = 12


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
@given(theirs=ROWS, own=ROWS, same=st.booleans(), epoch=st.integers(0, 10), step=st.integers(0, 2))
def test_a_run_continues_if_its_weights_were_those_of_each_epoch_so_far(
    theirs: tuple[list[int], int], own: tuple[list[int], int], same: bool, epoch: int, step: int
) -> None:
    """Whatever rows say so; what comes later is the plan's. Listed epoch by epoch."""
    rows, mine = rows_of(theirs), rows_of(own)
    begun = epoch + (step > 0)
    if same:  # as the run had them, and perhaps a row too many that changes nothing
        mine = [row for row in rows if row[0] < begun] + [row for row in mine if row[0] >= begun]
        mine = sorted({1: [n for at, n in rows if at <= 1][-1], **dict(mine)}.items())
    there, here = ([[n for at, n in r if at <= e][-1] for e in range(12)] for r in (rows, mine))
    whole = ip.Plan(order_of(rows, seed=5), world_size=2, batch_size=2)
    fresh = whole.replace(order=order_of(mine, seed=5))
    cursor = ip.Cursor.from_json(whole.cursor(epoch, step=step).to_json())
    if here[:begun] != there[:begun]:
        with pytest.raises(ip.IndexPlanError, match=r"a cursor must .*with sha256"):
            fresh.resume(cursor)
        return
    resumed = fresh.resume(cursor)
    read = rest(resumed, epoch, step)
    assert read == rest(fresh, epoch, 0)[-len(read) :]
    if here == there:
        assert read == rest(whole, epoch, step)


@pytest.mark.parametrize("name", LAYERS)
def test_orders_around_weights_continue_too(name: str) -> None:
    """Whatever reads the weights asks for those of the epochs so far, and no later ones."""
    around, epoch = LAYERS[name], 8
    inner = {"epochs": (8 * 7 + 4) // N, "mixture": (8 * 21 + 4) * 2 // 3 // N}.get(name, epoch)
    rows = [(each, each) for each in range(12)]
    whole = ip.Plan(around(order_of(rows)), world_size=2, batch_size=2)
    cursor = whole.cursor(epoch, step=1)
    fresh = whole.replace(order=around(order_of([row for row in rows if row[0] <= inner])))
    assert rest(fresh.resume(cursor), epoch, 1)[:4] == rest(whole, epoch, 1)[:4]
    with pytest.raises(ip.IndexPlanError, match="a cursor must"):
        whole.replace(order=around(order_of([(0, 99), *rows[1:]]))).resume(cursor)


def test_the_files_of_all_weights_so_far_are_enough(tmp_path: Path) -> None:
    """The cure of the error: arrays of epochs that are over are mapped from their files."""
    rows = [(each, each) for each in range(5)]
    whole = ip.Plan(order_of(rows), world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    with pytest.raises(ip.IndexPlanError) as caught:
        whole.replace(order=ip.Weighted(drawn(4))).resume(cursor)
    assert "pass the weights of all epochs so far, or their files" in str(caught.value)
    for epoch, number in rows:
        np.save(tmp_path / f"{epoch}.npy", drawn(number))
    mapped = ip.Weighted([(epoch, tmp_path / f"{epoch}.npy") for epoch, _ in rows])
    assert whole.replace(order=mapped).resume(cursor) == whole.resume(cursor)


def test_new_weights_may_begin_where_the_error_says() -> None:
    """In the middle of an epoch its weights stay; the refusal names the first epoch for others."""
    order = order_of([(0, 0), (3, 3)])
    whole = ip.Plan(order, world_size=2, batch_size=2)
    cursor = whole.cursor(4, step=1)
    with pytest.raises(ip.IndexPlanError, match="and new ones from epoch 5 on"):
        whole.replace(order=reweighted(order, 4, drawn(4))).resume(cursor)
    later = whole.replace(order=reweighted(order, 5, drawn(4))).resume(cursor)
    assert later.indices(4, rank=0).tolist() == whole.resume(cursor).indices(4, rank=0).tolist()
