"""`explain` tells the life of a sample, as walking the run step by step finds it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexplan as ip
from tests.support.bins import ChangingBins, Drawn
from tests.support.model import run_of, walk
from tests.support.strategies import EPOCHS, plans

PLAN = ip.Plan(ip.Sequential(11), world_size=2, batch_size=2)


@given(plans(), st.data())
def test_explain_finds_what_walking_finds(plan: ip.Plan, data: st.DataObject) -> None:
    """Every step, rank and slot that holds the sample, padded ones apart; a reason if none."""
    index = data.draw(st.integers(0, plan.order.num_samples - 1), label="index")
    slots: dict[tuple[int, int], list[tuple[bool, ip.types.Location]]] = {}
    for there in walk(run_of(plan), EPOCHS):
        for step in there.steps:
            for rank, row in enumerate(step.ranks):
                for number, slot in enumerate(row):
                    where = ip.types.Location(
                        there.epoch, there.sub_epoch, step.number, rank, number
                    )
                    unit = slots.setdefault((slot.epoch, slot.position), [])
                    unit.append((slot.padded, where))
    for reading in ip.explain(plan, index, range(EPOCHS)):
        position = int(plan.order.locate(reading.epoch, index))
        found = slots.get((reading.epoch, position), [])
        assert position == reading.position
        assert [where for padded, where in found if not padded] == [reading.where] * (
            reading.where is not None
        )
        assert [where for padded, where in found if padded] == list(reading.repeats)
        if reading.where is None:
            start = (plan.start.epoch, plan.start.position)
            reason = "finished" if (reading.epoch, position) < start else "dropped"
            assert reading.words.startswith(reason)


@pytest.mark.parametrize(
    ("plan", "index", "expected"),
    [
        (PLAN, 9, ["step 2, rank 0, slot 1"]),
        (PLAN.replace(sub_epochs=2), 9, ["sub-epoch 1, step 1, rank 0, slot 0"]),
        (
            PLAN.replace(remainder="drop"),
            9,
            ['dropped: the last 3 of 11 units do not fill a global batch, and remainder is "drop"'],
        ),
        (
            PLAN.replace(remainder="drop", sub_epochs=2),
            5,
            [
                "dropped: the last 2 of 6 units of sub-epoch 0 do not fill a global batch, and "
                'remainder is "drop"'
            ],
        ),
        (
            PLAN.replace(remainder="pad"),
            0,
            ["step 0, rank 0, slot 0; again, as padding, in step 2, rank 1, slot 1"],
        ),
        (
            PLAN.replace(remainder="carry"),
            0,
            ["step 0, rank 0, slot 0", "already epoch 0, step 2, rank 1, slot 1"],
        ),
        (
            PLAN.resume(PLAN.cursor(0, step=1)),
            0,
            [
                "finished: it comes before epoch 0, sub-epoch 0, step 1, where the plan was "
                "resumed",
                "step 0, rank 0, slot 0",
            ],
        ),
        (
            ip.Plan(ChangingBins(20), world_size=1, batch_size=5),
            19,
            [
                "step 2, rank 0, slot 2",
                "not in this epoch: no unit of its order holds the sample",
            ],
        ),
    ],
)
def test_words(plan: ip.Plan, index: int, expected: list[str]) -> None:
    """What people read."""
    assert expected == [reading.words for reading in ip.explain(plan, index, range(len(expected)))]


def test_every_read_is_named() -> None:
    """Of an order that repeats, each read of each epoch has words of its own."""
    plan = ip.Plan(Drawn(20, seed=9), world_size=2, batch_size=3)
    for index in range(20):
        for epoch in range(3):
            told = ip.explain(plan, index, [epoch])
            positions = np.flatnonzero(plan.order.take(epoch, 0, 20) == index).tolist()
            assert (positions or [-1]) == [reading.position for reading in told]
            for number, reading in enumerate(told, 1):
                start = f"read {number} of {len(told)}: step" if len(told) > 1 else "step"
                assert reading.words.startswith(start if positions else "not in this epoch")


def test_any_size() -> None:
    """A sample of 1e12 in the middle of 1,000 epochs takes no longer."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, sub_epochs=40)
    (reading,) = ip.explain(plan, 123_456_789_012, [999])
    where = reading.where
    assert where is not None
    batch = plan.batch(where.epoch, where.sub_epoch, step=where.step, rank=where.rank)
    assert 123_456_789_012 == batch[where.slot]


def test_labels_are_said_to_be_groups() -> None:
    """A label is a number, and "of 5" alone would say nothing."""
    order = ip.ClassBalanced([5, -1, 5, 5], weights=[1, 3])
    plan = ip.Plan(order, world_size=1, batch_size=4)
    for index, label in ((0, "5"), (1, "-1")):
        reading = ip.explain(plan, index, [0])[0]
        assert label == reading.group
        assert f", of group {label}: " in str(reading)
    mixture = ip.Mixture({"web": ip.Shuffle(5)}, {"web": 1})
    assert ", of web: " in str(ip.explain(ip.Plan(mixture, world_size=1, batch_size=1), 0, [0])[0])
