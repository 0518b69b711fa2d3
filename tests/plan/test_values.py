"""Plans, orders, phases and cursors are values: frozen, hashable, the same everywhere (goal 1)."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from indexplan.partition.remainders import REMAINDERS
from indexplan.plan.plan import columns_of, dict_of
from indexplan.seeds import check_epochs
from tests.support.fresh import printed
from tests.support.strategies import balanced_plans, plans

PLAN = ip.Plan(
    ip.BlockShuffle(97, 10, window=3, seed=2**100),
    world_size=5,
    batch_size=[
        ip.Phase(0, (2, 3), {"resolution": 128, "mask": 0.5}),
        ip.Phase(40, 4, {"resolution": 192, "mask": None}),
        ip.Phase((1, 1), 6),
    ],
    sub_epochs=3,
    remainder="pad",
)

VALUES = [
    PLAN,
    PLAN.resume(PLAN.cursor(0, 1, step=1)),
    PLAN.cursor(0, 1, step=1),
    PLAN._layout.phases[0],
    PLAN.account(0),
    PLAN.order,
    ip.Shuffle(9, seed=1),
    ip.Sequential(9),
    PLAN.locate(5, epoch=0),
]


@given(plans() | balanced_plans())
def test_plans_round_trip_through_json(plan: ip.Plan) -> None:
    """A plan read back is equal, hashes equal, and writes the same canonical text."""
    text, columns = plan.to_json(), list(columns_of(plan).values()) or None
    again = ip.Plan.from_json(text, columns=columns)
    assert (plan, hash(plan), text) == (again, hash(again), again.to_json())
    data = json.loads(text)
    for written in (text.encode(), json.dumps(data, indent=2)):
        assert plan == ip.Plan.from_json(written, columns=columns, order=plan.order)
    assert plan == pickle.loads(pickle.dumps(plan))  # noqa: S301
    assert text == json.dumps(data, sort_keys=True, separators=(",", ":"))


def test_fingerprints_are_equal_iff_plans_are() -> None:
    """Equality, hash, canonical text, fingerprint and answers tell the same plans apart."""
    parameters = (0, 1, True, False, 1.0, 0.0, -0.0, "1", None)
    sizes = [
        *(2, (2,), [2], (1, 2), (2, 1), [ip.Phase(0, 2)], [ip.Phase((0, 0), 2)]),
        *([ip.Phase(0, 2, {"x": x})] for x in parameters),
        *([ip.Phase(0, 2), ip.Phase(at, 2)] for at in (1, (1, 0))),
    ]
    orders = [ip.Sequential(2), ip.Shuffle(2), ip.Shuffle(2, seed=1), ip.BlockShuffle(2, 1)]
    plans = [
        ip.Plan(order, world_size=world_size, remainder=remainder, **{name: size})
        for order, world_size, remainder, name, size in itertools.product(
            orders, (None, 1), ("spread", "pad"), ("batch_size", "global_batch_size"), sizes
        )
    ]
    balances = [
        ip.Balance(row, linear=linear, quadratic=quadratic)
        for row, linear, quadratic in (
            ([1, 2], 1, 0),
            ([2, 1], 1, 0),
            ([1, 2], 2, 0),
            ([1, 2], 1, 1),
        )
    ]
    plans += [plans[0].replace(world_size=1, balance=each) for each in balances]
    first: dict[ip.Plan, ip.Plan] = {}
    for plan in plans:
        same = first.setdefault(plan, plan)
        assert (plan.to_json(), plan.fingerprint) == (same.to_json(), same.fingerprint)
        assert repr(plan._layout.phases) == repr(same._layout.phases)  # repr tells 1 from True
    assert len({plan.to_json() for plan in plans}) == len(first)
    assert len({plan.fingerprint for plan in plans}) == len(first)
    assert len({order.fingerprint for order in orders}) == len(set(orders)) == len(orders)


def test_fingerprints_are_sha256_of_the_canonical_json() -> None:
    """The text that fingerprints are taken of, in full: any change to it is a new version."""
    plan = ip.Plan(ip.Shuffle(1000, seed=3), world_size=4, batch_size=(5, 2))
    text = (
        '{"batch_size":[5,2],"global_batch_size":null,'
        '"order":{"algorithm":"shuffle-v1","num_samples":1000,"seed":3},'
        '"partition":"partition-v1","remainder":"spread","resumed":null,'
        '"sub_epochs":1,"world_size":4}'
    )
    assert text == plan.to_json()
    assert plan.fingerprint == "0a858a01af0bd67808772eab901ff39ab6abc3f2c0cb164786d93314f876485d"
    assert (
        plan.order.fingerprint == "231ada75d4d240824f6505e5d9ddcf9022a8b8c3385f5d14ef9ac74313c98899"
    )


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_frozen_hashable_and_copy(value: Any) -> None:
    """No field can be set or deleted; equal values are one key; pickles and copies are equal."""
    fields = getattr(value, "_fields", None) or [f.name for f in dataclasses.fields(value)]
    before = repr(value)
    for name in fields:
        with pytest.raises(AttributeError):
            setattr(value, name, 1)
        with pytest.raises(AttributeError):
            delattr(value, name)
    assert before == repr(value)
    for same in (pickle.loads(pickle.dumps(value)), copy.copy(value), copy.deepcopy(value)):  # noqa: S301
        assert value == same
        assert {value: 1} == {same: 1}
        assert before == repr(same)


@given(plans())
def test_what_a_plan_returns_is_a_copy(plan: ip.Plan) -> None:
    """Editing its dict form, as reports give it, or its order's changes none."""
    before = plan.to_json(), plan.order.to_dict()
    form = dict_of(plan)
    form["order"]["num_samples"] = -1
    form.clear()
    plan.order.to_dict().clear()
    assert before == (plan.to_json(), plan.order.to_dict())


def test_kinds_of_numbers_and_sequences_make_no_difference() -> None:
    """NumPy integers and lists are stored as Python's integers and tuples, all the way to JSON."""
    plan = ip.Plan(
        ip.Shuffle(np.uint16(100), seed=np.int64(3)),
        world_size=np.int32(4),
        batch_size=[np.int8(5), np.int8(2)],
        sub_epochs=np.uint8(2),
    )
    same = ip.Plan(ip.Shuffle(100, seed=3), world_size=4, batch_size=(5, 2), sub_epochs=2)
    assert same == plan
    assert same.to_json() == plan.to_json()
    cursor = plan.cursor(np.int8(0), np.int8(1), step=np.int8(1))
    assert same.cursor(0, 1, step=1).to_json() == cursor.to_json()
    numbers = {name: np.int64(getattr(cursor, name)) for name in ("epoch", "step", "position")}
    assert cursor.to_json() == dataclasses.replace(cursor, **numbers).to_json()


def specs() -> list[ip.Plan]:
    """Return a plan of each remainder and order, fresh and resumed, with phases in sub-epochs."""
    fresh = [
        PLAN.replace(order=order, remainder=remainder)
        for order in (ip.Sequential(97), ip.Shuffle(97, seed=9), PLAN.order)
        for remainder in REMAINDERS
    ]
    return fresh + [plan.replace(world_size=3).resume(plan.cursor(0, 1, step=1)) for plan in fresh]


def answers(plan: ip.Plan) -> list[Any]:
    """Return, in JSON's types, what a plan says of two epochs, its cursors and itself."""
    said: list[Any] = [plan.fingerprint, plan.order.fingerprint, plan.to_json()]
    for epoch in (0, 1):
        samples = range(0, plan.order.num_samples, 7)
        said.append([part.tolist() for part in plan.locate(samples, epoch)])
        start = plan.start.sub_epoch if epoch == plan.start.epoch else 0
        for sub_epoch in range(start, plan.sub_epochs):
            num_steps = plan.steps(epoch, sub_epoch).stop
            said.append(plan.cursor(epoch, sub_epoch, step=num_steps).to_json())
            for rank in range(plan.world_size or 0):
                said.append(plan.indices(epoch, sub_epoch, rank=rank).tolist())
                batches = plan.batches(epoch, sub_epoch, rank=rank)
                said.append([batch.tolist() for batch in batches])
    return said


CHILD = """
import json, sys, indexplan as ip
from tests.plan.test_values import answers
print(json.dumps([answers(ip.Plan.from_json(text)) for text in sys.argv[1:]]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["0", "random"])
def test_a_fresh_process_gives_the_same_answers(hash_seed: str) -> None:
    """Neither the process nor PYTHONHASHSEED changes a fingerprint, a cursor or an index."""
    texts = [plan.to_json() for plan in specs()]
    said = printed("-c", CHILD, *texts, PYTHONHASHSEED=hash_seed)
    assert [answers(plan) for plan in specs()] == json.loads(said)


def test_many_threads_get_the_same_answers_at_once() -> None:
    """Eight threads that ask about the same plans together agree with one that asks alone."""
    asked = [plan.to_json() for plan in specs()] * 3
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: answers(ip.Plan.from_json(text)), asked))
    assert [answers(plan) for plan in specs()] * 3 == together


@given(
    start=st.integers(-3, 3) | st.integers(2**32 - 5, 2**32 + 5),
    length=st.integers(0, 9),
    step=st.integers(-3, 3).filter(bool),
)
def test_epochs_as_a_range_are_those_of_a_list(start: int, length: int, step: int) -> None:
    """Of a range only the ends are looked at; its answers and errors are a list's."""
    epochs = range(start, start + length * step, step)
    try:
        expected: Any = check_epochs([*epochs])
    except ip.IndexPlanError as error:
        with pytest.raises(ip.IndexPlanError, match=f"^{re.escape(str(error))}$"):
            check_epochs(epochs)
    else:
        assert expected == check_epochs(epochs)
