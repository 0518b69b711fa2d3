"""The picture of mixing shows what is read, and what a perfect shuffle would."""

from __future__ import annotations

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from tests.support.figures import shares


@pytest.mark.parametrize("num_samples", [4000, 3998])
def test_mixing(num_samples: int) -> None:
    """The share of each quarter in each window, of all its units where they are few."""
    plan = ip.Plan(ip.BlockShuffle(num_samples, 50, 2, seed=1), world_size=2, batch_size=20)
    drawn = shares(plot.mixing(plan, window=10))
    assert (4, 10) == drawn.shape
    for window in range(9):
        read = plan.order.take(0, window * 400, window * 400 + 400)
        expected = [100 * np.mean(read * 4 // num_samples == quarter) for quarter in range(4)]
        np.testing.assert_allclose(drawn[:, window], expected)


def test_mixing_of_few() -> None:
    """Quarters differ by one sample at most, and one window of a whole epoch is even."""
    figure = plot.mixing(ip.Plan(ip.Shuffle(6), world_size=1, batch_size=6))
    np.testing.assert_allclose(shares(figure)[:, 0], [200 / 6, 100 / 6, 200 / 6, 100 / 6])
    assert "100% of the points" in figure.get_suptitle()
    assert "step (1 window of 1 step, 6 units of each looked at)" == figure.get_supxlabel()


def test_mixing_by_default() -> None:
    """A window is what an optimizer sees in a few steps, so a narrow shuffle shows at any size."""
    order = ip.BlockShuffle(10**9, block_size=1000, window=1)
    bad = plot.mixing(ip.Plan(order, world_size=8, batch_size=256))
    assert (4, 64) == shares(bad).shape
    said = "step (64 of 4.88e5 windows of 1 step, 2,048 units of each looked at)"
    assert said == bad.get_supxlabel()
    assert 100 == shares(bad).max()
    assert "; 2% of the points in the grey band" in bad.get_suptitle()
    good = plot.mixing(ip.Plan(ip.Shuffle(10**9), world_size=8, batch_size=256))
    assert "; 95% of the points in the grey band" in good.get_suptitle()
    small = plot.mixing(ip.Plan(ip.Shuffle(10**6), world_size=2, batch_size=32))
    assert "step (64 of 489 windows of 32 steps, 2,048 units of each looked at)" == (
        small.get_supxlabel()
    )


def test_band_of_mixing() -> None:
    """The band of a perfect shuffle, which draws a window's samples without putting back."""
    plan = ip.Plan(ip.Shuffle(4000), world_size=1, batch_size=100)
    axes = plot.mixing(plan, window=10).axes[0]
    low, high = axes.collections[0].get_datalim(axes.transData).intervaly
    half = 196 * (0.25 * 0.75 / 1000 * (1 - 1000 / 4000)) ** 0.5
    np.testing.assert_allclose([25 - half, 25 + half], [low, high])
    assert (0, 100) == axes.get_ylim()
