"""What plans ask of an order, and what an order may leave to its base class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.listed import Wrapped
from tests.support.strategies import plans

ORDERS = st.one_of(
    st.builds(Drawn, st.integers(1, 60), st.integers(0, 9)),
    st.builds(ChangingBins, st.integers(1, 60)),
    st.builds(Bins, st.integers(1, 60)),
    st.builds(ip.Shuffle, st.integers(1, 60)),
)


def units(order: ip.Order, epoch: int) -> list[list[int]]:
    """Return the samples of each unit of an epoch."""
    num = order.num_units(epoch)
    offsets = order.offsets(epoch, 0, num)
    return [part.tolist() for part in np.split(order.take(epoch, 0, num), offsets[1:-1])][:num]


@given(ORDERS, st.integers(0, 3))
def test_locating_keeps_shapes_and_counts_in_int64(order: ip.Order, epoch: int) -> None:
    """`locate` and `count` of any array; what they say is for every kind in test_every_order."""
    square = np.arange(order.num_samples).reshape(1, -1, 1)
    assert square.shape == order.locate(epoch, square).shape == order.count(epoch, square).shape
    answers = [*order.locate_all(epoch, []), order.count(epoch, []), order.locate(epoch, [])]
    assert [np.int64] * 4 == [each.dtype for each in answers]


@given(plans(st.builds(Drawn, st.integers(1, 60), st.integers(0, 9))))
def test_every_read_of_a_plan_is_found(plan: ip.Plan) -> None:
    """`plan.locate_all` names each slot that reads a sample, and `plan.locate` the first."""
    start = plan.start.epoch
    read: dict[tuple[int, int], list[tuple[int, ...]]] = {}
    for epoch in range(start, start + 2):
        for sub_epoch in range(plan.sub_epochs):
            if (epoch, sub_epoch) < (plan.start.epoch, plan.start.sub_epoch):
                continue
            for step in plan.steps(epoch, sub_epoch):
                for rank in range(plan.world_size):
                    where = {"step": step, "rank": rank}
                    valid = plan.units(epoch, sub_epoch, **where).num_valid
                    batch = plan.batch(epoch, sub_epoch, **where).tolist()
                    for slot, sample in enumerate(batch[:valid]):
                        place = (epoch, sub_epoch, step, rank, slot)
                        read.setdefault((epoch, sample), []).append(place)
    if plan.remainder == "carry":
        return  # whose steps read from the next epoch: test_laws has the inverse of the partition
    samples = np.arange(plan.order.num_samples)
    for epoch in range(start, start + 2):
        expected = [read.get((epoch, sample), []) for sample in samples.tolist()]
        places, offsets = plan.locate_all(samples, epoch)
        rows = list(zip(*(part.tolist() for part in places), strict=True))
        assert expected == [rows[a:b] for a, b in pairwise(offsets.tolist())]
        first = zip(*(part.tolist() for part in plan.locate(samples, epoch)), strict=True)
        assert [each[0] if each else (-1,) * 5 for each in expected] == list(first)


@dataclass(frozen=True, eq=False)
class Later(ip.Sequential):
    """An order that may change from an epoch on."""

    since: int = 0

    algorithm = "test-later-v1"

    def continues(self, saved: Mapping[str, Any], epoch: int, position: int) -> bool:
        """Return whether the change comes after what was read."""
        return {**saved, "since": 0} == {**self.to_dict(), "since": 0} and epoch < self.since


def test_an_order_that_may_go_on_otherwise() -> None:
    """A cursor asks the order whether a run may go on with it."""
    plan = ip.Plan(Later(20), world_size=1, batch_size=2)
    cursor = plan.cursor(1, step=3)
    assert (
        3 == ip.Plan(Later(20, since=2), world_size=1, batch_size=2).resume(cursor).steps(1).start
    )
    for order in (Later(20, since=1), Later(21, since=2), ip.Sequential(20)):
        with pytest.raises(ip.IndexPlanError, match="a cursor must belong to the plan's order"):
            ip.Plan(order, world_size=1, batch_size=2).resume(cursor)


def test_orders_inside_orders() -> None:
    """They come back from JSON, up to eight deep."""
    order: ip.Order = ip.BlockShuffle(30, 4, seed=2)
    for _ in range(7):
        order = Wrapped(order)
    assert order.stream_key == 0
    plan = ip.Plan(order, world_size=2, batch_size=3)
    assert ip.Plan.from_json(plan.to_json()) == plan
    with pytest.raises(ip.IndexPlanError, match="an order must be inside at most 7 others"):
        ip.Plan.from_json(plan.replace(order=Wrapped(order)).to_json())


@ip.register
@dataclass(frozen=True, eq=False)
class Held(ip.Sequential):
    """An order with a constant of its class, and columns inside a mapping."""

    parts: Mapping[str, Any] = field(default_factory=dict)

    algorithm: ClassVar[str] = "test-held-v1"
    STEP: ClassVar[int] = 3


def test_what_an_order_is_made_of() -> None:
    """Constants of a class are no fields; columns in a mapping are columns, there and back."""
    order = Held(5, {"a": ip.Column([3, 1]), "b": [ip.Column([0.5])]})
    assert {"algorithm", "num_samples", "parts"} == set(order.to_dict())
    plan = ip.Plan(order, batch_size=1)
    again = ip.Plan.from_json(plan.to_json(), columns=[[3, 1], [0.5]])
    assert again == plan
    assert again.order.columns == order.columns
    with pytest.raises(ip.IndexPlanError, match="parts needs a column of"):
        ip.Plan.from_json(plan.to_json())


def test_equal_orders_have_one_fingerprint() -> None:
    """1 and True are equal to Python, and are not in a fingerprint."""
    one, other = Held(5, {"a": 1}), Held(5, {"a": True})
    assert one != other
    assert one.fingerprint != other.fingerprint
