"""The picture of padding: what each step would take, against sums over plain lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan.cli.main import main
from indexplan.partition.remainders import REMAINDERS

LENGTHS = np.array([1 + i * i * 37 % 90 for i in range(300)])
ORDERS: dict[str, Any] = {
    "grouped": ip.LengthGrouped(LENGTHS, 4, num_buckets=9, seed=3),
    "budget": ip.TokenBudget(LENGTHS, 200, max_samples=12, num_buckets=9, seed=3),
    "packed": ip.Packed(LENGTHS, 128, seed=3),
}
LIMIT = {"budget": 200, "packed": 128}


def drawn(figure: Any) -> list[list[tuple[float, float]]]:
    """Return the points of each panel."""
    lines = [axes.get_lines()[0] for axes in figure.axes]
    return [list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines]


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("remainder", REMAINDERS)
def test_padding(name: str, remainder: str) -> None:
    """Each step's percentage, and fill, are those of all ranks' bins; padded units left out."""
    order = ORDERS[name]
    plan = ip.Plan(order, world_size=2, batch_size=3, sub_epochs=2, remainder=remainder)
    points = drawn(ip.plot.padding(plan, 1, 1))
    assert len(points) == 1 + (name in LIMIT)
    steps = plan.steps(1, 1)
    assert list(steps) == [step for step, _ in points[0]]
    for i, step in enumerate(steps):
        bins = []
        for rank in range(2):
            where = {"step": step, "rank": rank}
            batch, offsets = plan.batch(1, 1, **where), plan.units(1, 1, **where).offsets
            cut = [LENGTHS[part].tolist() for part in np.split(batch, offsets[1:-1])]
            bins += cut[: plan.units(1, 1, **where).num_valid]
        tokens = sum(map(sum, bins))
        padded = sum(max(each) * len(each) for each in bins)
        assert 100 * (1 - tokens / padded) == pytest.approx(points[0][i][1])
        if name in LIMIT:
            assert 100 * tokens / (LIMIT[name] * len(bins)) == pytest.approx(points[1][i][1])


def test_titles_tell_what_it_comes_to() -> None:
    """Groups of like lengths take less padding than random samples; rows packed are full."""
    figure = ip.plot.padding(ip.Plan(ORDERS["packed"], global_batch_size=4))
    above, below = (axes.get_title(loc="left") for axes in figure.axes)
    order = ORDERS["packed"]
    fill = LENGTHS.sum() / (128 * order.num_units(0))
    assert f"one after another: {100 * fill:.2f}% of the limit of a bin" == below
    assert above.startswith("padded to the longest: ")
    said = ip.plot.padding(ip.Plan(ORDERS["grouped"], global_batch_size=4)).axes[0]
    here, random = (
        float(each.rpartition(" ")[2]) for each in said.get_title(loc="left").split("%")[:2]
    )
    assert here < random / 3


def test_lengths_of_ones_own() -> None:
    """Orders without lengths take them; a plan directory has its order's."""
    order = ip.ClassBatches([0, 1] * 9, classes=2, per_class=2)
    lengths = list(range(1, 19))
    figure = ip.plot.padding(ip.Plan(order, global_batch_size=1), lengths=lengths)
    for step, percent in drawn(figure)[0]:
        bin_of = [lengths[i] for i in order.take(0, int(step))]
        assert 100 * (1 - sum(bin_of) / (4 * max(bin_of))) == pytest.approx(percent)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a plan directory, with what its order knows."""
    ip.save(ip.Plan(ORDERS["budget"], global_batch_size=8), tmp_path / "a.plan")
    command = ["plot", str(tmp_path / "a.plan"), "--kind", "padding", "-o", str(tmp_path / "a.svg")]
    assert main(command) == 0
    assert "how much padding each step has" in capsys.readouterr().out
    assert "Padding: epoch 0, 300 samples" in (tmp_path / "a.svg").read_text()
