"""The picture of coverage shows what is missing or repeated, unless that is on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from tests.support.figures import BLUE, RED, bars, legend


def test_coverage(tmp_path: Path) -> None:
    """A stored epoch is flat, and one whose file was overwritten with zeros is not."""
    plan = ip.Plan(ip.Shuffle(6400), world_size=2, batch_size=20)
    ip.save(plan, tmp_path / "a.plan")
    figure = plot.coverage(ip.load(tmp_path / "a.plan"))
    assert [{BLUE: 100.0}] * 64 == list(bars(figure.axes[0]).values())
    assert ["100%: every sample once", "reads"] == legend(figure)
    chunk = tmp_path / "a.plan/epoch-00000/chunk-00000.npy"
    data = bytearray(chunk.read_bytes())
    data[128 + 4 * 3200 :] = bytes(4 * 3200)
    chunk.write_bytes(data)
    figure = plot.coverage(ip.load(tmp_path / "a.plan"))
    heights = bars(figure.axes[0])
    assert 3200 + 100 >= heights[0.5][RED] >= 3200
    assert all(height[RED] < 100 for place, height in heights.items() if place > 1)
    assert ["100%: every sample once", "too many or too few"] == legend(figure)


@ip.register
@dataclass(frozen=True, eq=False)
class FirstHalf(ip.Order):
    """An order of a test: the first half of the dataset, twice."""

    num_samples: int
    algorithm = "test-first-half-v1"

    def _fill(self, epoch: int, starts: Any, stops: Any, out: Any) -> None:
        runs = zip(starts.tolist(), stops.tolist(), strict=True)
        out[:] = np.concatenate([np.arange(*run) for run in runs]) // 2

    def _locate(self, epoch: int, indices: Any) -> Any:
        return np.where(2 * indices < self.num_samples, 2 * indices, -1)


@ip.register
class FirstHalfOnPurpose(FirstHalf):
    """The same, by an order that says so."""

    algorithm = "test-first-half-on-purpose-v1"
    traits = ip.Traits(reads="any")


@ip.register
class FirstHalfCounted(FirstHalfOnPurpose):
    """The same, by an order that says where too."""

    algorithm = "test-first-half-counted-v1"

    def _locate_all(self, epoch: int, indices: Any) -> Any:
        each = np.where(2 * indices < self.num_samples, 2, 0)
        offsets = np.concatenate([[0], np.cumsum(each)])
        first = np.repeat(2 * indices - offsets[:-1], each)
        return first + np.arange(len(first)), offsets


@pytest.mark.parametrize("num_samples", [6400, 10**12])
def test_coverage_of_orders_that_repeat(num_samples: int, tmp_path: Path) -> None:
    """Deviations are red only where the order promises to read every sample once."""
    counted = plot.coverage(ip.Plan(FirstHalfCounted(num_samples), batch_size=20))
    if num_samples < 10**6:
        assert {("100%: as often as the order says"), "reads"} == set(legend(counted))
        assert 64 == sum(height == {BLUE: 100} for height in bars(counted.axes[0]).values())
    for kind, color in ((FirstHalf, RED), (FirstHalfOnPurpose, BLUE)):
        figure = plot.coverage(ip.Plan(kind(num_samples), batch_size=20))
        heights = list(bars(figure.axes[0]).values())
        assert 32 == len(heights)
        assert all(abs(height[color] - 200) < 1 for height in heights)
    said = "this order may repeat or leave out samples"
    assert [said, "reads"] == legend(figure)
    if num_samples < 10**6:
        ip.save(ip.Plan(FirstHalfOnPurpose(num_samples), batch_size=20), tmp_path / "a.plan")
        assert [said, "reads"] == legend(plot.coverage(ip.load(tmp_path / "a.plan")))


def test_coverage_of_many() -> None:
    """Of a large epoch a sample is read, and the band is where bars turn red."""
    figure = plot.coverage(ip.Plan(ip.Shuffle(10**12), batch_size=8))
    (axes,) = figure.axes
    heights = [height[BLUE] for height in bars(axes).values()]
    assert 64 == len(heights)
    assert 2**14 == round(sum(heights) / 100 * 2**14 / 64)
    edges = sorted(line.get_ydata()[0] for line in axes.lines)
    assert [75, 100, 125] == edges  # 4 standard deviations of the 256 reads due to a region
    assert all(75 <= height <= 125 for height in heights)
    looked_at = "dataset index, 64 regions (16,384 of 1e12 positions looked at)"
    assert looked_at == axes.get_xlabel()
    assert ["4 standard deviations of a shuffle", "reads"] == legend(figure)
