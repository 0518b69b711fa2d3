"""`explain` tells the life of a sample, as walking the run step by step finds it.

It gives each unit the fate by which `account` counts it, however layers lie in layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import indexplan as ip
from tests.orders.test_layers import Turned
from tests.support import nested
from tests.support.bins import Bins, ChangingBins, Drawn
from tests.support.examples import examples
from tests.support.model import run_of, walk
from tests.support.strategies import EPOCHS, plans, remainders

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


LENGTHS = [3, 9, 2, 7, 7, 1, 12, 5, 40, 8, 4, 6] * 2
FATES = ("read", "dropped", "finished", "excluded")
MOST = 6
seeds = st.integers(0, 9)


LEAVES = nested.LEAVES | st.one_of(
    st.builds(lambda seed: ip.Packed(LENGTHS, 50, seed=seed), seeds),
    st.builds(lambda seed: ip.DocumentWindows(LENGTHS, 20, seed=seed), seeds),
)
OTHER = st.just(ip.Shuffle(7, seed=99))


def without(draw: st.DrawFn, order: ip.Order) -> ip.Order:
    """Draw samples that are left out from a place of the run on."""
    numbers = st.integers(0, order.num_samples - 1)
    samples = draw(st.lists(numbers, min_size=1, max_size=order.num_samples // 2 + 1, unique=True))
    plan = ip.Plan(order, global_batch_size=draw(st.integers(1, 5)))
    epoch = draw(st.integers(0, 2))
    since = plan.cursor(epoch, step=draw(st.integers(0, plan.steps(epoch).stop)))
    cut = order.cut if isinstance(order, ip.Without) else draw(st.sampled_from(["piece", "unit"]))
    return ip.Without(order, samples, since, cut=cut)


LAYERS: list[Callable[[st.DrawFn, ip.Order], ip.Order]] = [
    *[without] * 3,  # some leave units out
    *[lambda draw, order: draw(nested.layers(st.just(order)))] * 3,
    lambda draw, order: draw(nested.mixtures(st.just(order) | OTHER)),
    lambda _, order: Turned(order),  # a layer of one's own
]


@st.composite
def layered(draw: st.DrawFn) -> ip.Order:
    """Draw an order under up to four layers, of which some leave units out."""
    order: ip.Order = draw(LEAVES)
    for layer in draw(st.lists(st.sampled_from(LAYERS), min_size=1, max_size=4)):
        try:
            order = layer(draw, order)
        except ip.IndexPlanError:  # such as all samples left out, or a sample twice
            assume(False)
    return order


def fate(reading: ip.types.Reading) -> str:
    """Return what becomes of a unit, by the first word of why it is not read."""
    if reading.where is not None:
        return "read"
    told = re.fullmatch(r"(?:read \d+ of \d+: )?([^:]+): .*", reading.words)
    assert told is not None, reading.words
    return told[1]


@st.composite
def drawn_plans(draw: st.DrawFn) -> ip.Plan:
    """Draw a plan, fresh or resumed in one of its first epochs under another world."""
    order, sub_epochs = draw(layered()), draw(st.integers(1, 4))
    worlds, sizes = st.integers(1, 5), st.integers(1, 4)
    fields: dict[str, Any] = {"sub_epochs": sub_epochs, "remainder": draw(remainders)}
    try:
        for epoch in range(MOST):  # Without refuses one with nothing left
            order.num_units(epoch)
        plan = ip.Plan(order, world_size=draw(worlds), batch_size=draw(sizes), **fields)
        if draw(st.booleans()):
            epoch, sub_epoch = draw(st.integers(0, 3)), draw(st.integers(0, sub_epochs - 1))
            step = draw(st.integers(0, plan.steps(epoch, sub_epoch).stop))
            cursor = plan.cursor(epoch, sub_epoch, step=step)
            plan = ip.Plan(order, world_size=draw(worlds), batch_size=draw(sizes), **fields)
            plan = plan.resume(cursor)
    except ip.IndexPlanError:  # "carry" where epochs don't add up, "drop" of what is put off
        assume(False)
    return plan


@examples(60)
@given(drawn_plans(), st.integers(0, MOST - 1))
def test_each_read_is_in_a_batch_and_has_the_fate_that_is_counted(
    plan: ip.Plan, epoch: int
) -> None:
    """Places are those of `locate_all`, and batches have them, of samples and of bins.

    Summed over all samples, reads of single samples are what `account` counts.
    """
    fates: Counter[str] = Counter()
    num_padded = 0
    for index in range(plan.order.num_samples):
        told = ip.explain(plan, index, [epoch])
        fates.update(map(fate, told))
        num_padded += sum(len(each.repeats) for each in told)
        places, _ = plan.locate_all(index, epoch)
        read = [each.where for each in told if each.where is not None]
        assert read == [ip.types.Location(*map(int, each)) for each in zip(*places, strict=True)]
        for where in read:
            unit = plan.units(where.epoch, where.sub_epoch, step=where.step, rank=where.rank)
            low, high = unit.offsets[where.slot : where.slot + 2]
            assert index in unit.samples[low:high]
    if not plan.order.deals_bins:
        del fates["not in this epoch"]
        account = plan.account(epoch)
        assert dict(fates) == {
            name: number for name in FATES if (number := getattr(account, f"num_{name}"))
        }
        assert account.num_padded == num_padded


@examples(30)
@given(
    st.sampled_from([ip.Packed(LENGTHS, 50), ip.DocumentWindows(LENGTHS, 20), Bins(24)]),
    st.sets(st.integers(0, 23), min_size=1, max_size=12),
    st.sampled_from(["piece", "unit"]),
    st.booleans(),
    st.integers(0, MOST - 1),
)
def test_units_that_are_left_out_of_bins(
    inner: ip.Order, bad: set[int], cut: str, renamed: bool, epoch: int
) -> None:
    """As a list of bins has it: a unit goes with its samples, of which each is told why."""
    try:
        order: ip.Order = ip.Without(inner, sorted(bad), cut=cut)
        order.num_units(epoch)
    except ip.IndexPlanError:  # nothing would be left
        assume(False)
    shift = 3 if renamed else 0
    order = ip.Subset(order, range(shift, 24 + shift), 24 + shift)
    plan = ip.Plan(order, world_size=1, batch_size=1)
    parts = [inner.take(epoch, at).tolist() for at in range(inner.num_units(epoch))]
    gone = [bool(bad & set(part)) if cut == "unit" else set(part) <= bad for part in parts]
    assert sum(gone) == plan.account(epoch).num_excluded
    for sample in range(24):
        held = [
            "excluded" if left or sample in bad else "read"
            for part, left in zip(parts, gone, strict=True)
            for each in part
            if each == sample
        ]
        told = ip.explain(plan, sample + shift, [epoch])
        assert Counter(held or ["not in this epoch"]) == Counter(map(fate, told))
        for reading in told:
            if fate(reading) == "excluded":
                assert ("its unit holds" in reading.words) == (sample not in bad)
