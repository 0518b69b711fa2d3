"""Pictures show what the plan says: the data behind them, not their pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, hypergeom

import indexplan as ip
from indexplan import plot
from indexplan.plot import mixing_figure
from indexplan.plot.drawing import evenly, labelled, rounded, short
from tests.support.bins import Bins
from tests.support.figures import PLAN, heading, legend, notes, shares
from tests.support.refusals import EMPTY
from tests.support.shell import Shell


def test_a_resumed_plan_is_drawn_where_it_goes_on() -> None:
    """Its first epoch is the one that is left, and in it the first sub-epoch that is left."""
    single = ip.Plan(ip.Shuffle(1000), world_size=2, batch_size=8, sub_epochs=3)
    rest = single.resume(single.cursor(epoch=4, sub_epoch=2, step=1))
    for draw in (plot.reading, plot.mixing):
        title = heading(draw(rest))[0]
        assert "epoch 4" in title, title
        assert "sub-epoch 2" in title, title
        assert "epoch 5" in heading(draw(rest, 5))[0]


@pytest.mark.parametrize(
    "plan",
    [
        ip.Plan(ip.Shuffle(1), world_size=1, batch_size=1),
        EMPTY,
        ip.Plan(ip.Shuffle(3), world_size=8, batch_size=256, remainder="carry", sub_epochs=5),
        ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, remainder="pad"),
        ip.Plan(ip.Sequential(50), world_size=2, batch_size=[ip.Phase(0, 4, {"x": 1})]),
        ip.Plan(ip.Shuffle(90), world_size=3, global_batch_size=(2, 6)),
        PLAN.resume(PLAN.cursor(0, step=3)),
    ],
    ids=["one sample", "no steps", "empty", "1e12", "one phase", "global", "resumed"],
)
def test_any_plan(plan: ip.Plan, tmp_path: Path) -> None:
    """Every picture of every kind of plan is drawn, of the plan's own steps, and written."""
    start = plan.start.epoch, plan.start.sub_epoch
    figures = {name: getattr(plot, name)(plan, *start) for name in ("reading", "mixing")}
    num_steps = plan.steps(*start).stop - plan.steps(*start).start
    of = f"of {short(num_steps)} steps" if num_steps > 32 else f"{num_steps} step"
    if num_steps:
        assert of in figures["reading"].axes[0].get_xlabel()
        assert shares(figures["mixing"]).sum(axis=0) == pytest.approx(100)
    else:
        assert ["no steps here"] == notes(figures["reading"])
        assert ["no steps here"] * 2 == notes(figures["mixing"])
    for name, figure in figures.items():
        figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 500


def test_command(tmp_path: Path, shell: Shell) -> None:
    """The command draws a plan directory or a spec, to a new file, and says which."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=[2])
    (tmp_path / "b.json").write_text(PLAN.resume(PLAN.cursor(1, step=3)).to_json())
    for name, kind in (("a.plan", "reading"), ("b.json", "mixing")):
        words = ["plot", str(tmp_path / name), "--kind", kind, "-o"]
        out = str(tmp_path / f"{kind}.png")
        assert shell.run(*words, out).startswith(f"{out}: ")
        assert b"\x89PNG" == Path(out).read_bytes()[:4]
        said = shell.json(*words, f"{out}.png", "--world-size", "2")
        assert {"output": f"{out}.png", "kind": kind} == said


def test_numbers_are_short() -> None:
    """What is written below a picture, and what is picked for it."""
    said = ["0", "999,999", "1M", "1M", "1.25B", "125B", "2T", "1e15"]
    numbers = (0, 999_999, 10**6, 999_999.9, 1_254_999_999, 125 * 10**9, 2 * 10**12, 10**15)
    assert said == [short(number) for number in numbers]
    assert ["999M", "1B"] == [short(number) for number in (999_400_000, 999_900_000)]
    assert [0, 33, 66, 99] == evenly(0, 100, 4)
    assert [5, 6] == evenly(5, 7, 4)
    assert [0, 10**30 - 1] == evenly(0, 10**30, 2)
    assert [3, 4, 5] == rounded(3, 6, 8)
    assert [3, 20, 40, 60, 80, 98] == rounded(3, 99, 9)
    for stop in (34, 100, 1000, 4096, 10**12):
        assert len(set(rounded(0, stop, 32))) == len(rounded(0, stop, 32)) <= 32
    assert [[0, 1, 2], [0, 3, 6, 9, 12, 16], [0, 2, 4, 6, 8, 10, 12, 14, 15]] == [
        labelled(count, 8) for count in (3, 17, 16)
    ]


# The picture of who reads what, when.


@pytest.mark.parametrize("whole", [PLAN, ip.Plan(Bins(50), world_size=4, batch_size=3)], ids=str)
@pytest.mark.parametrize("remainder", ["spread", "pad", "drop"])
def test_reading(whole: ip.Plan, remainder: Any) -> None:
    """Every slot of every batch is one cell, in its rank's row and its step's columns.

    Also of batches of bins, whose cells are samples; those of padded units are crossed.
    """
    plan = whole.replace(remainder=remainder)
    axes = plot.reading(plan).axes[0]
    image = axes.collections[0].get_array().filled(-1)
    batches = {(r, s): plan.units(0, step=s, rank=r) for r in range(4) for s in plan.steps(0)}
    width, crossed = max(len(units.samples) for units in batches.values()), []
    assert (4, len(plan.steps(0)) * width) == image.shape
    for (rank, step), units in batches.items():
        cells, first = image[rank, step * width : step * width + width], step * width + 0.5
        batch, valid = plan.batch(0, step=step, rank=rank), units.offsets[units.num_valid]
        assert [*batch.tolist(), *[-1] * (width - len(batch))] == cells.astype(int).tolist()
        crossed += [[first + slot, rank + 0.5] for slot in range(valid, len(batch))]
    assert (remainder == "pad") == bool(crossed)
    marked = [each.get_offsets().tolist() for each in axes.collections[1:]]
    assert crossed == sum(marked, [])


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


# The picture of mixing shows what is read, and what a perfect shuffle would.


@pytest.mark.parametrize("num_samples", [4000, 3998])
def test_mixing(num_samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share of each quarter in each window, of all its units where they are few."""
    monkeypatch.setattr(mixing_figure, "UNITS", 400)
    plan = ip.Plan(ip.BlockShuffle(num_samples, 50, 2, seed=1), world_size=2, batch_size=20)
    drawn = shares(plot.mixing(plan))
    assert (4, 10) == drawn.shape
    for window in range(9):
        read = plan.order.take(0, window * 400, window * 400 + 400)
        expected = [100 * np.mean(read * 4 // num_samples == quarter) for quarter in range(4)]
        np.testing.assert_allclose(drawn[:, window], expected)


def test_mixing_of_few() -> None:
    """Quarters differ by one sample at most, and one window of a whole epoch is even."""
    figure = plot.mixing(ip.Plan(ip.Shuffle(6), world_size=1, batch_size=6))
    np.testing.assert_allclose(shares(figure)[:, 0], [200 / 6, 100 / 6, 200 / 6, 100 / 6])
    assert (
        "A window is typically 1 times as uneven as one of a full shuffle; 100% of the shares "
        "below lie in the grey band, where 95% of a full shuffle's do."
    ) == heading(figure)[1]
    below = figure.axes[1]
    assert "step (1 window of 1 step, 6 units of each looked at)" == below.get_xlabel()


def test_mixing_by_default() -> None:
    """A window is what an optimizer sees in a few steps, so a narrow shuffle shows at any size."""
    order = ip.BlockShuffle(10**9, block_size=1000, window=1)
    bad = plot.mixing(ip.Plan(order, world_size=8, batch_size=256))
    assert (4, 64) == shares(bad).shape
    said = "step (64 of 488,282 windows of 1 step, 2,048 units of each looked at)"
    assert said == bad.axes[1].get_xlabel()
    assert 100 == shares(bad).max()
    assert "typically 26 times as uneven" in heading(bad)[1]
    assert " 2% of the shares below lie in the grey band" in heading(bad)[1]
    good = plot.mixing(ip.Plan(ip.Shuffle(10**9), world_size=8, batch_size=256))
    assert "typically 0.98 times as uneven" in heading(good)[1]
    assert " 95% of the shares below lie in the grey band" in heading(good)[1]
    assert bad.axes[0].get_ylim() == good.axes[0].get_ylim()  # so that two can be compared
    small = plot.mixing(ip.Plan(ip.Shuffle(10**6), world_size=2, batch_size=32))
    assert "step (64 of 489 windows of 32 steps, 2,048 units of each looked at)" == (
        small.axes[1].get_xlabel()
    )


def test_bands_of_mixing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a full shuffle, which draws a window's samples without putting back."""
    monkeypatch.setattr(mixing_figure, "UNITS", 400)
    plan = ip.Plan(ip.Shuffle(4000), world_size=1, batch_size=40)
    figure = plot.mixing(plan)
    (band,) = figure.axes[1].patches
    high, _, low = band.get_data()  # type: ignore[attr-defined]
    law = hypergeom(4000, 1000, 400)
    inside = law.cdf(np.floor(high * 4)) - law.cdf(np.ceil(low * 4) - 1)
    np.testing.assert_allclose(inside, 0.95, atol=0.01)
    np.testing.assert_allclose(low + high, [50] * 10)
    (band,) = figure.axes[0].patches
    expected = np.sqrt(chi2(3).ppf([0.025, 0.975]) / 3)
    np.testing.assert_allclose(expected, band.get_bbox().intervaly, rtol=1e-5)  # type: ignore[attr-defined]


def test_how_uneven_windows_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over what a full shuffle's are on average, by drawing thousands of them."""
    monkeypatch.setattr(mixing_figure, "UNITS", 400)
    plan = ip.Plan(ip.BlockShuffle(4000, 50, 2, seed=1), world_size=2, batch_size=20)
    figure = plot.mixing(plan)
    (points,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    random = np.random.default_rng(0).multivariate_hypergeometric([1000] * 4, 400, 20_000) / 400
    usual = np.sqrt(((random - 0.25) ** 2).sum(axis=1).mean())
    off = np.sqrt(((shares(figure) / 100 - 0.25) ** 2).sum(axis=0))
    expected = np.maximum(off / usual, 0.05)  # the axis is logarithmic, so it has no zero
    np.testing.assert_allclose(expected, points.get_ydata(), rtol=0.02)


def test_quarters_of_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of the samples sorted by value; an order that sorts reads one at a time."""
    monkeypatch.setattr(mixing_figure, "UNITS", 1000)
    values = np.random.default_rng(5).normal(size=4000)
    by_value = np.argsort(values, kind="stable")
    plan = ip.Plan(ip.Subset(ip.Sequential(4000), by_value, 4000), world_size=2, batch_size=50)
    drawn = shares(plot.mixing(plan, values=values))
    np.testing.assert_allclose(drawn, 100 * np.eye(4))
    assert shares(plot.mixing(plan)).max() < 40  # by index it looks like a shuffle
    figure = plot.mixing(plan, values=-values)
    np.testing.assert_allclose(shares(figure), 100 * np.eye(4)[::-1])
    assert {"lowest quarter", "highest quarter"} < {*legend(figure)}
