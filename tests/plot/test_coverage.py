"""The picture of coverage shows what is missing or repeated, unless that is on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

import indexplan as ip
from indexplan import plot
from indexplan.plot.chance import counts_between
from tests.support.figures import BLUE, RED, bars, heading, legend
from tests.support.found import at, by_offsets


def test_coverage(tmp_path: Path) -> None:
    """A stored epoch is flat, and one whose file was overwritten with zeros is not."""
    plan = ip.Plan(ip.Shuffle(6400), world_size=2, batch_size=20)
    ip.save(plan, tmp_path / "a.plan")
    figure = plot.coverage(ip.load(tmp_path / "a.plan"))
    assert [{BLUE: 100.0}] * 64 == list(bars(figure.axes[0]).values())
    assert ["reads"] == legend(figure)
    expected = "Every bar is at 100%: the epoch reads each region as often as it should."
    assert ("Coverage: epoch 0, shuffle-v1", expected) == heading(figure)
    chunk = tmp_path / "a.plan/epoch-00000/chunk-00000.npy"
    data = bytearray(chunk.read_bytes())
    data[128 + 4 * 3200 :] = bytes(4 * 3200)
    chunk.write_bytes(data)
    figure = plot.coverage(ip.load(tmp_path / "a.plan", check="opened"))
    heights = bars(figure.axes[0])
    assert 3200 + 100 >= heights[0.5][RED] >= 3200
    assert all(height[RED] < 100 for place, height in heights.items() if place > 1)
    assert ["too many or too few"] == legend(figure)
    said = heading(figure)[1]
    assert said.startswith("Red regions (64) are read too often or too seldom: files are damaged ")


@ip.register
@dataclass(frozen=True, eq=False)
class FirstHalf(ip.Order):
    """An order of a test: the first half of the dataset, twice."""

    num_samples: int
    algorithm = "test-first-half-v1"

    def fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        runs = zip(starts.tolist(), stops.tolist(), strict=True)
        out[:] = np.concatenate([np.arange(*run) for run in runs]) // 2

    def find(self, epoch: int, indices: Any, most: int | None = None) -> Any:
        return at(np.where(2 * indices < self.num_samples, 2 * indices, -1))


@ip.register
class FirstThird(ip.Order):
    """An order of a test: it reads the first third of the dataset a little more often."""

    algorithm = "test-first-third-v1"

    def __init__(self, num_samples: int) -> None:
        object.__setattr__(self, "num_samples", num_samples)

    def fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        places = np.concatenate([np.arange(*run) for run in zip(starts, stops, strict=True)])
        out[:] = np.where(places % 7 == 0, places // 3, places)


@ip.register
class FirstHalfOnPurpose(FirstHalf):
    """The same, by an order that says so."""

    algorithm = "test-first-half-on-purpose-v1"
    traits = ip.Traits(reads="any")
    find = ip.Order.find  # it does not say where


@ip.register
class FirstHalfCounted(FirstHalfOnPurpose):
    """The same, by an order that says where too."""

    algorithm = "test-first-half-counted-v1"

    def find(self, epoch: int, indices: Any, most: int | None = None) -> Any:
        each = np.where(2 * indices < self.num_samples, 2, 0)
        offsets = np.concatenate([[0], np.cumsum(each)])
        first = np.repeat(2 * indices - offsets[:-1], each)
        return by_offsets(first + np.arange(len(first)), offsets)


@pytest.mark.parametrize("num_samples", [6400, 10**12])
def test_coverage_of_orders_that_repeat(num_samples: int, tmp_path: Path) -> None:
    """Deviations are red only where the order promises to read every sample once."""
    counted = plot.coverage(ip.Plan(FirstHalfCounted(num_samples), batch_size=20))
    if num_samples < 10**6:
        assert heading(counted)[1].startswith("Every bar is at 100%")
        assert 64 == sum(height == {BLUE: 100} for height in bars(counted.axes[0]).values())
    for kind, color in ((FirstHalf, RED), (FirstHalfOnPurpose, BLUE)):
        figure = plot.coverage(ip.Plan(kind(num_samples), batch_size=20))
        heights = list(bars(figure.axes[0]).values())
        assert 32 == len(heights)
        assert all(abs(height[color] - 200) < 1 for height in heights)
    said = "This order may repeat or leave out samples, so its bars may have any height."
    assert (["reads"], said) == (legend(figure), heading(figure)[1])
    if num_samples < 10**6:
        ip.save(ip.Plan(FirstHalfOnPurpose(num_samples), batch_size=20), tmp_path / "a.plan")
        assert said == heading(plot.coverage(ip.load(tmp_path / "a.plan")))[1]


def test_coverage_of_many() -> None:
    """Of a large epoch a sample is read, and the band is where bars turn red."""
    figure = plot.coverage(ip.Plan(ip.Shuffle(10**12), batch_size=8))
    (axes,) = figure.axes
    heights = [height[BLUE] for height in bars(axes).values()]
    assert 64 == len(heights)
    assert 2**14 == round(sum(heights) / 100 * 2**14 / 64)
    (band,) = [patch for patch in axes.patches if patch.get_label() == "what chance allows"]
    high, _, low = band.get_data()  # type: ignore[attr-defined]
    law = hypergeom(10**12, 10**12 // 64, 2**14)
    edges = [100 * law.ppf(q) / 256 for q in (0.001 / 64, 1 - 0.001 / 64)]
    assert [edges] * 64 == np.stack([low, high], axis=1).tolist()
    like = binom(2**14, 1 / 64)  # few of many are looked at
    assert edges == [100 * like.ppf(q) / 256 for q in (0.001 / 64, 1 - 0.001 / 64)]
    assert all(edges[0] <= height <= edges[1] for height in heights)
    looked_at = "dataset index, 64 regions (16,384 of 1T positions looked at)"
    assert looked_at == axes.get_xlabel()
    assert ["what chance allows", "reads"] == legend(figure)
    assert heading(figure)[1].startswith("Every bar ends in the grey band")


def test_coverage_of_many_uneven() -> None:
    """Bars that end outside the band, and only they, are red."""
    figure = plot.coverage(ip.Plan(FirstThird(10**9), batch_size=8))
    heights = list(bars(figure.axes[0]).values())
    assert {BLUE, RED} == {color for height in heights for color in height}
    (band,) = [patch for patch in figure.axes[0].patches if "chance" in str(patch.get_label())]
    high, _, low = band.get_data()  # type: ignore[attr-defined]
    for height, least, most in zip(heights, low, high, strict=True):
        ((color, percent),) = height.items()
        assert (color == BLUE) == (least <= percent <= most)


def test_what_chance_allows() -> None:
    """The quantiles of the hypergeometric law, which is certain where all is looked at."""
    for drawn, marked, total in (
        (100, 250, 1000),
        (103, 2, 103),
        (2048, 25 * 10**7, 10**9),
        (2**14, 10**12 // 64, 10**12),
        (5, 0, 10),
        (0, 3, 10),
        (3, 1, 4),
        (700, 900, 1000),
    ):
        law = hypergeom(total, marked, drawn)
        for tail in (0.025, 0.001 / 64, 0.2):
            expected = law.ppf(tail), law.ppf(1 - tail)
            assert expected == counts_between(drawn, marked, total, tail)
