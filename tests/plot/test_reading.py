"""The picture of who reads what, when, shows what the plan says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from indexplan.plot.drawing import evenly
from tests.support.bins import Bins
from tests.support.figures import PLAN, heading, legend


@pytest.mark.parametrize("remainder", ["spread", "pad", "drop"])
def test_reading(remainder: str) -> None:
    """Every slot of every batch is one cell, in its rank's row and its step's columns."""
    plan = PLAN.replace(remainder=remainder)
    axes = plot.reading(plan).axes[0]
    image = axes.collections[0].get_array().filled(-1)
    num_steps = plan.steps(0).stop
    assert (4, num_steps * 8) == image.shape
    for rank in range(4):
        for step in range(num_steps):
            cells = image[rank, step * 8 : step * 8 + 8]
            batch = plan.batch(0, step=step, rank=rank)
            assert [*batch.tolist(), *[-1] * (8 - len(batch))] == cells.astype(int).tolist()
    crossed = axes.collections[1].get_offsets().tolist() if remainder == "pad" else []
    assert [
        [(num_steps - 1) * 8 + slot + 0.5, rank + 0.5]
        for rank in range(4)
        for slot in range(plan.units(0, step=num_steps - 1, rank=rank).num_valid, 8)
    ] * (remainder == "pad") == crossed


def test_reading_of_many() -> None:
    """Of a large plan some ranks, steps and slots are shown, the first and last among them."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, sub_epochs=40)
    figure = plot.reading(plan, 3, 7)
    axes = figure.axes[0]
    image = axes.collections[0].get_array()
    last = plan.steps(3, 7).stop - 1
    slots = np.array(evenly(0, 256, 12))
    for row, rank in ((0, 0), (1, 200), (-1, 4095)):
        for column, step in ((0, 0), (16, 1000), (24 * 16, last)):  # 12 slots, and a gap of 4
            batch = plan.batch(3, 7, step=step, rank=rank)
            shown = image[row, column : column + 12]
            assert batch[slots[slots < len(batch)]].tolist() == shown.compressed().tolist()
            assert (column + 12 == image.shape[1]) or image.mask[row, column + 12]
    assert "step (22 of 4,096 ranks, 25 of 23,842 steps, 12 of 256 slots)" == axes.get_xlabel()
    assert ["0", "600", "1,200", "1,800", "2,400", "3,000", "3,600", "4,095"] == [
        label.get_text() for label in axes.get_yticklabels()
    ]
    assert "Who reads what, when: epoch 3, sub-epoch 7" == heading(figure)[0]
    white = [patch for patch in axes.patches if patch.get_width() == 4]
    assert 24 == len(white)


def test_reading_explains_itself() -> None:
    """The legend says what grey and crossed slots are, where there are any."""
    grey = "no such slot: a smaller batch"
    assert [grey] == legend(plot.reading(PLAN))
    assert ["padded"] == legend(plot.reading(PLAN.replace(remainder="pad")))
    assert [] == legend(plot.reading(PLAN.replace(remainder="drop")))


def test_reading_computes_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No index is computed but those shown, however large the batches are."""
    computed: list[int] = []
    take = ip.Order.ip_take

    def counted(order: ip.Order, *run: Any) -> Any:
        indices = take(order, *run)
        computed.append(len(indices))
        return indices

    monkeypatch.setattr(ip.Order, "ip_take", counted)
    plan = ip.Plan(ip.Shuffle(4 * 10**12), world_size=4, batch_size=10**12)
    axes = plot.reading(plan).axes[0]
    assert 4 * 12 == sum(computed) == axes.collections[0].get_array().count()
    carry = ip.Plan(ip.Shuffle(5), world_size=1, batch_size=8, remainder="carry")
    shown = plot.reading(carry).axes[0].collections[0].get_array()
    assert carry.batch(0, step=0, rank=0).tolist() == shown[0].astype(int).tolist()


def test_reading_of_bins() -> None:
    """A cell is a sample, and what is crossed are the samples of padded bins."""
    plan = ip.Plan(Bins(50), world_size=2, batch_size=4, remainder="pad")
    axes = plot.reading(plan).axes[0]
    image, last = axes.collections[0].get_array(), plan.steps(0).stop - 1
    widest = max(
        len(plan.batch(0, step=step, rank=rank)) for step in range(last + 1) for rank in range(2)
    )
    expected = []
    for rank in range(2):
        for step in range(last + 1):
            batch = plan.batch(0, step=step, rank=rank)
            cells = image[rank, step * widest : step * widest + len(batch)]
            assert batch.tolist() == cells.astype(int).tolist()
            where = {"step": step, "rank": rank}
            valid = plan.units(0, **where).offsets[plan.units(0, **where).num_valid]
            places = range(valid, len(batch))
            expected += [[step * widest + slot + 0.5, rank + 0.5] for slot in places]
    assert expected
    assert expected == axes.collections[1].get_offsets().tolist()


def test_values_in_place_of_indices() -> None:
    """A colour is the value of the sample that the slot holds; padding and missing slots stay."""
    values = np.sqrt(np.arange(203)) - 5
    for remainder in ("spread", "pad"):
        plan = PLAN.replace(remainder=remainder)
        by_index, by_value = plot.reading(plan), plot.reading(plan, values=values)
        indices = by_index.axes[0].collections[0].get_array()
        found = by_value.axes[0].collections[0].get_array()
        assert (indices.mask == found.mask).all()
        assert values[indices.compressed().astype(int)].tolist() == found.compressed().tolist()
        assert by_value.axes[0].collections[0].get_clim() == (values.min(), values.max())
        assert legend(by_index) == legend(by_value)
    assert "value" == by_value.axes[1].get_ylabel()


@pytest.mark.parametrize("draw", [plot.reading, plot.mixing])
@pytest.mark.parametrize("values", [[1.0] * 202, [[1.0]] * 203, [np.nan] * 203, ["a"] * 203, 3])
def test_no_values_of_these_samples(draw: Any, values: Any) -> None:
    """One finite number for each sample, or an error that says so."""
    with pytest.raises(ip.IndexPlanError, match="number"):
        draw(PLAN, values=values)
