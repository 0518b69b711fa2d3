"""The picture of sizes: every phase, of any number of epochs, and padding as plain sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from indexplan.partition.remainders import REMAINDERS
from tests.support.figures import RAMP, segments
from tests.support.refusals import refuses


def test_schedule() -> None:
    """Lines from where a phase's steps start to where they stop, as high as the step is large."""
    phases = [
        ip.Phase(0, 8, {"resolution": 128}),
        ip.Phase((1, 2), 4, {"resolution": 192}),
    ]
    plan = ip.Plan(ip.Shuffle(1600), world_size=10, batch_size=phases, sub_epochs=4)
    (sizes,) = plot.sizes(plan, range(2)).axes
    segments = [segment.tolist() for segment in sizes.collections[0].get_segments()]
    assert [[s / 4, 80.0] for s in range(6)] + [[s / 4, 40.0] for s in range(6, 8)] == [
        start for start, _ in segments
    ]
    assert 2.0 == segments[-1][1][0]


def test_schedule_of_a_resumed_plan() -> None:
    """It starts where the plan does, even after the last phase."""
    plan = RAMP.resume(RAMP.cursor(7, 2, step=3))
    (first, *_, last) = segments(plot.sizes(plan).axes[0])
    assert [[7.5 + 120 / 1600, 40.0], [7.75, 40.0]] == first
    assert [[8.75, 40.0], [9.0, 40.0]] == last
    assert 2 + 4 == len(segments(plot.sizes(plan, np.arange(9)).axes[0]))
    place = "(epoch, sub_epoch) must be not before (7, 2), where the plan was resumed; got (6, 3)"
    cure = "begin there, or ask the plan that was not resumed"
    refuses(f"{place}; {cure}", plot.sizes, plan, [6])


def test_schedule_of_many() -> None:
    """Of many sub-epochs a sample is drawn, and every change of the phase where it is."""
    phases = [ip.Phase(0, 8), ip.Phase((1, 1234), 4, {"x": 1}), ip.Phase((1, 1235), 2)]
    plan = ip.Plan(ip.Shuffle(10**8), world_size=10, batch_size=phases, sub_epochs=5000)
    (sizes,) = plot.sizes(plan, range(3)).axes
    first = [height for (_, height), _ in segments(sizes)]
    assert {80, 40, 20} == set(first)
    ((start, stop),) = [(a, b) for (a, h), (b, _) in segments(sizes) if h == 40]
    np.testing.assert_allclose([1 + 1234 / 5000, 1 + 1235 / 5000], [start, stop])
    ends = [(a, b) for (a, _), (b, _) in segments(sizes)]  # nothing is left open between them
    np.testing.assert_allclose([b for _, b in ends[:-1]], [a for a, _ in ends[1:]])
    said = "epoch, of 5,000 sub-epochs each; 1,005 of 15,000 sub-epochs looked at"
    assert said == sizes.get_xlabel()


def test_schedule_of_epochs_apart() -> None:
    """Lines do not go on through epochs that were not asked for."""
    plan = RAMP.replace(sub_epochs=800)
    lines = segments(plot.sizes(plan, [0, 5]).axes[0])
    assert not [line for line in lines if line[0][0] < 1 < line[1][0] - 1e-9]


@pytest.mark.parametrize("epochs", [range(2**32), range(2**32 - 1, -1, -1), None])
def test_schedule_of_endless_runs(epochs: Any) -> None:
    """As many epochs as there are cost no more than a thousand; few lines are drawn."""
    plan = (
        RAMP
        if epochs is not None
        else ip.Plan(
            ip.Shuffle(1600), world_size=2, batch_size=[ip.Phase(0, 8), ip.Phase((2**32 - 1, 0), 4)]
        )
    )
    axes = plot.sizes(plan, epochs).axes[0]
    assert 0 == segments(axes)[0][0][0]
    assert 2**32 == segments(axes)[-1][1][0]
    assert 0 == len(axes.lines)


def test_epochs_of_a_schedule() -> None:
    """Any iterable of epochs, in any order; none is an error."""
    expected = segments(plot.sizes(RAMP, range(3)).axes[0])
    for epochs in (np.arange(3), [2, 0, 1, 1], iter(range(3)), None):
        assert expected == segments(plot.sizes(RAMP, epochs).axes[0])
    for none, shown in (([], "[]"), (range(0), "range(0, 0)")):
        refuses(
            f"epochs must be at least one epoch; got {shown}; leave it out",
            plot.sizes,
            RAMP,
            none,
        )
    cure = "count from 0; a run ends with epoch 2**32 - 1"
    for wrong, shown in ((range(2**32 + 1), 2**32), ([-1], -1), (range(-2, 5), -2)):
        said = f"epoch must be an integer from 0 to 2**32 - 1; got {shown}; {cure}"
        refuses(said, plot.sizes, RAMP, wrong)


LENGTHS = np.array([1 + i * i * 37 % 90 for i in range(300)])
ORDERS: dict[str, Any] = {
    "grouped": ip.LengthGrouped(LENGTHS, 4, num_buckets=9, seed=3),
    "budget": ip.TokenBudget(LENGTHS, 200, max_samples=12, num_buckets=9, seed=3),
    "packed": ip.Packed(LENGTHS, 128, seed=3),
}


def padding(figure: Any) -> list[tuple[float, float]]:
    """Return the points of the last panel."""
    line = figure.axes[-1].get_lines()[0]
    return list(zip(line.get_xdata().tolist(), line.get_ydata().tolist(), strict=True))


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("remainder", REMAINDERS)
def test_padding(name: str, remainder: str) -> None:
    """Each step's percentage is that of all ranks' bins; padded units are left out."""
    plan = ip.Plan(ORDERS[name], world_size=2, batch_size=3, sub_epochs=2, remainder=remainder)
    expected = []
    for sub_epoch in range(2):
        for step in plan.steps(1, sub_epoch):
            bins = []
            for rank in range(2):
                where = {"step": step, "rank": rank}
                batch = plan.batch(1, sub_epoch, **where)
                units = plan.units(1, sub_epoch, **where)
                cut = [LENGTHS[part].tolist() for part in np.split(batch, units.offsets[1:-1])]
                bins += cut[: units.num_valid]
            padded = sum(max(each) * len(each) for each in bins)
            expected.append(100 * (1 - sum(map(sum, bins)) / padded))
    places, percents = zip(*padding(plot.sizes(plan, [1])), strict=True)
    assert expected == pytest.approx(percents)
    assert sorted(places) == list(places)
    assert 1 < places[0] < places[-1] < 2.1  # padded and carried units lie past the epoch


def test_what_grouping_saves() -> None:
    """Groups of like lengths take less padding than random samples, which the title says."""
    axes = plot.sizes(ip.Plan(ORDERS["grouped"], global_batch_size=4)).axes[-1]
    here, random = (
        float(each.rpartition(" ")[2]) for each in axes.get_title(loc="left").split("%")[:2]
    )
    assert here < random / 3


def test_bins_without_lengths() -> None:
    """They have no panel of padding."""
    order = ip.ClassBatches([0, 1] * 9, classes=2, per_class=2)
    assert 1 == len(plot.sizes(ip.Plan(order, global_batch_size=1), [0]).axes)


def test_padding_of_a_plan_directory(tmp_path: Path) -> None:
    """Its order knows the lengths."""
    plan = ip.Plan(ORDERS["budget"], global_batch_size=8)
    ip.save(plan, tmp_path / "a.plan")
    assert padding(plot.sizes(plan, [0])) == padding(plot.sizes(ip.load(tmp_path / "a.plan"), [0]))
