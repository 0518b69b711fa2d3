"""`explain` tells the life of a sample, as walking the run step by step finds it.

It gives each unit the fate by which `account` counts it, however layers lie in layers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

import indexplan as ip
from indexplan.orders import Traits
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
seeds, small = st.integers(0, 9), st.integers(2, 24)


@ip.register
@dataclass(frozen=True, eq=False)
class Twins(ip.Layer):
    """A layer of one's own: the later half of a dataset holds the earlier once more."""

    order: ip.Order

    algorithm = "test-twins-v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "num_samples", 2 * self.order.num_samples)

    @property
    def traits(self) -> Traits:
        """Half of the samples are never read."""
        inner = self.order.traits
        reads = "at most once" if inner.reads == "once" else inner.reads
        return replace(inner, reads=reads)

    def renamed(self, samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the twin."""
        return samples + self.order.num_samples

    def find(
        self, epoch: int, indices: NDArray[np.int64], most: int | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Look for the sample inside."""
        asked = np.flatnonzero(indices >= self.order.num_samples)
        which, positions = self.order.find(epoch, indices[asked] - self.order.num_samples, most)
        return asked[which], positions


LEAVES = st.one_of(
    st.builds(ip.Shuffle, small, seeds),
    st.builds(ip.Sequential, small),
    st.builds(lambda n, seed: ip.Split(n + 3, {"a": 2, "b": 1}, seed=seed)["a"], small, seeds),
    st.builds(Drawn, small, seeds),
    st.builds(
        lambda n, size, seed: ip.Weighted(range(1, n + 1), size, seed=seed), small, small, seeds
    ),
    st.builds(lambda seed: ip.Packed(LENGTHS, 50, seed=seed), seeds),
    st.builds(lambda seed: ip.DocumentWindows(LENGTHS, 20, seed=seed), seeds),
    st.builds(Bins, small),
)


def subset(draw: st.DrawFn, order: ip.Order) -> ip.Order:
    """Draw a subset, some of whose samples may be listed twice."""
    num = order.num_samples + draw(st.integers(0, 4))
    numbers = st.integers(0, num - 1)
    kept = draw(st.lists(numbers, min_size=order.num_samples, max_size=order.num_samples))
    return ip.Subset(order, sorted(kept) if draw(st.booleans()) else kept, num)


def without(draw: st.DrawFn, order: ip.Order) -> ip.Order:
    """Draw samples that are left out from a place of the run on."""
    numbers = st.integers(0, order.num_samples - 1)
    samples = draw(st.lists(numbers, min_size=1, max_size=order.num_samples // 2 + 1, unique=True))
    plan = ip.Plan(order, global_batch_size=draw(st.integers(1, 5)))
    epoch = draw(st.integers(0, 2))
    since = plan.cursor(epoch, step=draw(st.integers(0, plan.steps(epoch).stop)))
    cut = order.cut if isinstance(order, ip.Without) else draw(st.sampled_from(["piece", "unit"]))
    return ip.Without(order, samples, since, cut=cut)


def mixed(draw: st.DrawFn, order: ip.Order) -> ip.Order:
    """Draw a mixture with one other source."""
    assume(not order.traits.cuts_samples)
    other = ip.Shuffle(7, seed=99)
    return ip.Mixture({"a": order, "b": other}, {"a": 2, "b": 1}, epoch_size=draw(small), seed=77)


LAYERS: dict[str, Callable[[st.DrawFn, ip.Order], ip.Order]] = {
    "subset": subset,
    "without": without,
    "repeat": lambda draw, order: ip.Repeat(order, 2, 2 * draw(st.integers(1, 6))),
    "epochs": lambda draw, order: ip.Epochs(order, draw(small)),
    "mixture": mixed,
    "twins": lambda _, order: Twins(order),
}


@st.composite
def layered(draw: st.DrawFn) -> ip.Order:
    """Draw an order under up to four layers, of which some leave units out."""
    order: ip.Order = draw(LEAVES)
    often = [*LAYERS, "without", "without"]
    for name in draw(st.lists(st.sampled_from(often), min_size=1, max_size=4)):
        try:
            order = LAYERS[name](draw, order)
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


def counted(account: ip.types.Account) -> dict[str, int]:
    """Return how many units have each fate."""
    numbers = {name: getattr(account, f"num_{name}") for name in FATES}
    return {name: number for name, number in numbers.items() if number}


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
def test_each_read_has_the_fate_that_is_counted(plan: ip.Plan, epoch: int) -> None:
    """Summed over all samples, reads of single samples are what `account` counts."""
    assume(not plan.order.deals_bins)
    samples = range(plan.order.num_samples)
    told = [each for index in samples for each in ip.explain(plan, index, [epoch])]
    fates = Counter(map(fate, told))
    del fates["not in this epoch"]
    account = plan.account(epoch)
    assert counted(account) == dict(fates)
    assert account.num_padded == sum(len(each.repeats) for each in told)


@examples(60)
@given(drawn_plans(), st.integers(0, MOST - 1))
def test_what_is_read_is_located_in_a_batch(plan: ip.Plan, epoch: int) -> None:
    """Of samples and of bins, the places told are those of `locate_all`, and batches have them."""
    for index in range(plan.order.num_samples):
        told = ip.explain(plan, index, [epoch])
        places, _ = plan.locate_all(index, epoch)
        read = [each.where for each in told if each.where is not None]
        assert read == [ip.types.Location(*map(int, each)) for each in zip(*places, strict=True)]
        for where in read:
            unit = plan.units(where.epoch, where.sub_epoch, step=where.step, rank=where.rank)
            low, high = unit.offsets[where.slot : where.slot + 2]
            assert index in unit.samples[low:high]


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
