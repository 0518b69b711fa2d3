"""Draws: what the steps of a plan read of each group, against walking through its batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import indexplan as ip
from indexplan.reports.show import show_plan
from tests.orders.test_groups import LAYERS, Leaning, aims
from tests.support.strategies import plans


@given(plans(LAYERS))
def test_counts_are_those_of_the_batches(plan: ip.Plan) -> None:
    """So many samples of each group are in the batches of all ranks, without padding."""
    epoch, order = plan.start.epoch, plan.order
    found = ip.draws(plan)
    batches = [
        plan.batch(epoch, part, step=step, rank=rank)[
            : plan.units(epoch, part, step=step, rank=rank).num_valid
        ]
        for part in range(plan.start.sub_epoch, plan.sub_epochs)
        for step in plan.steps(epoch, part)
        for rank in range(plan.world_size or 0)
    ]
    read = np.concatenate([np.empty(0, np.int64), *batches])
    if plan.remainder == "carry":  # steps read into the next epoch
        read = order.take(epoch, plan.start.position, order.num_units(epoch))
    assert np.bincount(order.group_of(read), minlength=2).tolist() == found.drawn.tolist()
    assert len(read) == pytest.approx(found.aimed.sum())
    if len(read) and plan.remainder == "spread" and plan._resumed is None:
        low = sum(aims(order, epoch))
        assert [low, len(read) - low] == pytest.approx(found.aimed.tolist())
    assert str(found).count("\n") == 3
    assert [row["samples"] for row in found.to_dict()["groups"]] == found.drawn.tolist()


LABELS = np.arange(3 * 17**2) ** 2 % 17
MIXED = {"web": ip.Shuffle(700, seed=1), "code": ip.Shuffle(90, seed=2), "none": ip.Shuffle(5)}


@pytest.mark.parametrize(
    "order",
    [
        ip.ClassBalanced(LABELS, epoch_size=40000),
        ip.ClassBalanced(LABELS, epoch_size=40000, weights=np.arange(9)),
        ip.ClassBatches(LABELS, classes=4, per_class=3, epoch_size=4000),
        ip.ClassBatches(LABELS, classes=4, per_class=40, short="leave_out"),
        ip.Grouped(LABELS, 7),
        ip.Repeat(ip.ClassBalanced(LABELS), 2),
    ],
    ids=repr,
)
def test_groups_are_those_of_the_samples(order: ip.Order) -> None:
    """Also where an order tells them without drawing the samples."""
    for epoch in (0, 6):
        num = order.num_units(epoch)
        for start, stop in ((0, num), (num // 3, num // 2 + 2), (num - 1, num)):
            expected = order.group_of(order.take(epoch, [start], [stop]))
            assert expected.tolist() == order._groups_read(epoch, start, stop).tolist()


@pytest.mark.parametrize(
    "order",
    [
        ip.Mixture(MIXED, dict.fromkeys(MIXED, 1)),
        ip.ClassBalanced(LABELS),
        ip.ClassBatches(LABELS, classes=4, per_class=3),
    ],
    ids=lambda order: type(order).__name__,
)
def test_no_sample_is_drawn_whose_group_is_known(
    order: ip.Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As drawing them takes most of the time."""
    plan = ip.Plan(order, world_size=1, batch_size=5, remainder="spread")
    expected = ip.draws(plan).drawn.tolist()
    monkeypatch.setattr(type(order), "fill", None)
    assert expected == ip.draws(plan).drawn.tolist()


def test_samples_of_two_groups_are_not_counted() -> None:
    """Nobody knows as which of the two they are read; what shows a plan says so, or leaves it."""
    sources = {"all": ip.Sequential(2), "hard": ip.Shuffle(2)}
    order = ip.Subset(ip.Mixture(sources, {"all": 1, "hard": 1}), [0, 1, 1, 2], 3)
    plan = ip.Plan(order, world_size=1, batch_size=2)
    with pytest.raises(ip.IndexPlanError, match="sample 1 of a subset must be in one group only"):
        ip.draws(plan)
    assert "draws: sample 1 of a subset" in str(show_plan(plan, None, None, None))
    assert [None, "all"] == [ip.explain(plan, index, [0])[0].group for index in (1, 0)]


def test_a_long_epoch_is_counted_by_draws_alone() -> None:
    """`show` draws no billion samples of its own accord, and says what to name."""
    order = ip.ClassBalanced([0, 0, 0, 1], epoch_size=10**9)
    plan = ip.Plan(order, world_size=8, batch_size=256)
    shown = show_plan(plan, None, None, None)
    said = "draws: not counted, as 1,000,000,000 units would be drawn; ip.draws(plan, stop=...) "
    assert str(shown).endswith(f"{said}counts some")
    assert 7 == ip.draws(plan, stop=7).drawn.sum()


def test_a_long_list_of_sources_is_cut() -> None:
    """The line that names the order stays readable; what programs read is whole."""
    sources = {f"bin {i}": ip.Shuffle(10, seed=i) for i in range(100)}
    opened = [(0, 50), (2000, 100)]
    phases = [(at, {f"bin {i}": int(i < num) for i in range(100)}) for at, num in opened]
    order = ip.Mixture(sources, phases)
    shown = show_plan(ip.Plan(order, world_size=1, batch_size=8), None, None, None)
    (line,) = (line for line in str(shown).splitlines() if line.startswith("order "))
    assert len(line) < 1200
    assert "phases [[0, [1, 1, 1, 1, 1, 1, 1, 1, ... 92 more]], [2000, [1, 1, " in line
    assert 100 == len(shown.to_dict()["plan"]["order"]["sources"])


class Many(Leaning):
    """A group for each sample."""

    algorithm = "test-many-groups-v1"

    @property
    def group_names(self) -> Any:  # type: ignore[override]
        """Return the samples' numbers."""
        return tuple(map(str, range(self.num_samples)))

    def group(self, indices: Any) -> Any:
        return indices

    def aim(self, epoch: int, start: int, stop: int) -> Any:
        return np.full(self.num_samples, 1 / self.num_samples)


def test_of_many_groups_the_first_are_named() -> None:
    """A text stays short, whatever number of classes there is; no count is lost in the data."""
    plan = ip.Plan(Many(1000), world_size=1, batch_size=10, remainder="drop")
    found = ip.draws(plan.resume(plan.cursor(0, step=50)))
    assert str(found).count("\n") == 26
    assert str(found).endswith("\n... 976 more")
    assert 500 == found.drawn.sum()
    empty = ip.draws(plan.replace(batch_size=800).resume(plan.cursor(0, step=50)))
    assert (0, 0.0) == (empty.drawn.sum(), empty.aimed.sum())
    assert "from epoch 0, position 500 to epoch 1, position 0: 0 samples read" in str(empty)
    few = plan.replace(world_size=7)
    whole = ip.draws(few)
    assert whole.drawn.sum() == few.account(0).num_read


def mixed_bins() -> ip.Mixture:
    """Two sources of bins, one of 8 samples and one of 2, as often as each other."""
    large = ip.Grouped([0] * 80, 8, seed=1)
    small = ip.Grouped([0] * 60, 2, seed=2)
    return ip.Mixture({"large": large, "small": small}, {"large": 1, "small": 1}, epoch_size=40)


@pytest.mark.parametrize("layer", [lambda order: order, lambda order: ip.Epochs(order, 20)])
def test_of_a_mixture_of_bins_bins_are_counted(layer: Any) -> None:
    """As weights are of bins: of samples, four times as many are drawn of one source."""
    order = layer(mixed_bins())
    plan = ip.Plan(order, world_size=2, batch_size=2)
    found = ip.draws(plan)
    half = order.num_units(0) // 2
    assert ("units", "units") == (order.shares_of, found.counted)
    assert [half, half] == found.drawn.tolist() == found.aimed.tolist()
    assert f"epoch 0: {2 * half} bins read" in str(found)
    assert str(found) in str(show_plan(plan, None, None, None))
    samples = order.group_of(order.take(0, 0, 2 * half))
    assert [8 * half, 2 * half] == np.bincount(samples).tolist()
    assert "samples" == ip.draws(ip.Plan(Leaning(9), world_size=1, batch_size=2)).counted
