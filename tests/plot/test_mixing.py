"""The picture of mixing shows what is read, and what a perfect shuffle would."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2, hypergeom

import indexplan as ip
from indexplan import plot
from indexplan.plot import mixing_figure
from tests.support.figures import heading, legend, shares


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
