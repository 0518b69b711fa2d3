"""Pictures show what the plan says: the data behind them, not their pixels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from indexplan import plot
from indexplan.plot.drawing import sample, short
from tests.bins import Bins, ChangingBins
from tests.test_cli import fails, run

PLAN = ip.Plan(ip.Shuffle(203), world_size=4, batch_size=8)


def bars(axes: Any) -> dict[float, dict[str, float]]:
    """Heights of the bars at each place, by colour, where there are any."""
    from matplotlib.colors import to_hex

    found: dict[float, dict[str, float]] = {}
    for patch in axes.patches:
        if patch.get_height():
            colour = to_hex(patch.get_facecolor()).upper()
            place = round(patch.get_x() + patch.get_width() / 2, 6)
            found.setdefault(place, {})[colour] = patch.get_height()
    return found


@pytest.mark.parametrize("remainder", ["spread", "pad", "drop"])
def test_reading(remainder: str) -> None:
    """Every slot of every batch is one cell, in its rank's row and its step's columns."""
    plan = PLAN.replace(remainder=remainder)
    axes = plot.reading(plan).axes[0]
    image = axes.collections[0].get_array().filled(-1)
    num_steps = plan.num_steps(0)
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
        for slot in range(plan.num_valid(0, step=num_steps - 1, rank=rank), 8)
    ] * (remainder == "pad") == crossed


def test_reading_of_many() -> None:
    """Of a large plan some ranks, steps and slots are shown, the first and last among them."""
    plan = ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, sub_epochs=40)
    axes = plot.reading(plan, 3, 7).axes[0]
    image = axes.collections[0].get_array()
    last = plan.num_steps(3, 7) - 1
    batch = plan.batch(3, 7, step=last, rank=4095)
    assert batch[0] == image[-1, -12]
    assert "step (32 of 4,096 ranks, 48 of 23,842 steps, 12 of 256 slots)" == axes.get_xlabel()
    assert "Who reads what, when: epoch 3, sub-epoch 7" == axes.get_title(loc="left")


def test_sizes() -> None:
    """A bar for each rank and step; padded, dropped and borrowed units in their colours."""
    drop, pad, spread, carry = plot.batch_sizes(PLAN).axes
    blue, sky, orange, red = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
    assert {8.0} == {height[blue] for place, height in bars(drop).items() if place < 6}
    assert {red: 11 / 4} == bars(drop)[6]
    assert 4 * 7 == len(bars(spread))
    assert 203 == sum(height[blue] for height in bars(spread).values())
    for axes, other in ((pad, orange), (carry, sky)):
        heights = bars(axes).values()
        assert 203 == sum(height.get(blue, 0) for height in heights)
        assert 21 == sum(height.get(other, 0) for height in heights)


def test_sizes_where_carry_is_not_for_the_order() -> None:
    """A policy that the order does not allow says why."""
    carry = plot.batch_sizes(ip.Plan(ChangingBins(50), world_size=2, batch_size=3)).axes[3]
    assert "carry needs an order with the same number of units in every epoch" == (
        carry.get_xlabel()
    )


def test_schedule() -> None:
    """Lines from where a phase's steps start to where they stop, as high as the step is large."""
    phases = [
        ip.Phase(0, 8, {"resolution": 128, "crop": "weak"}),
        ip.Phase((1, 2), 4, {"resolution": 192, "crop": "strong"}),
    ]
    plan = ip.Plan(ip.Shuffle(1600), world_size=10, batch_size=phases, sub_epochs=4)
    sizes, crop, resolution = plot.schedule(plan, range(2)).axes
    segments = [segment.tolist() for segment in sizes.collections[0].get_segments()]
    assert [[s / 4, 80.0] for s in range(6)] + [[s / 4, 40.0] for s in range(6, 8)] == [
        start for start, _ in segments
    ]
    assert 2.0 == segments[-1][1][0]
    assert "resolution" == resolution.get_ylabel()
    heights = [segment[0][1] for segment in resolution.collections[0].get_segments()]
    assert [128.0] * 6 + [192.0] * 2 == heights
    assert ["weak", "strong"] == [label.get_text() for label in crop.get_yticklabels()]
    assert [0.0] * 6 + [1.0] * 2 == [
        segment[0][1] for segment in crop.collections[0].get_segments()
    ]


def test_mixing() -> None:
    """The share of each quarter in each window, of all its units where they are few."""
    plan = ip.Plan(ip.BlockShuffle(4000, 50, 2, seed=1), world_size=2, batch_size=20)
    axes = plot.mixing(plan, window=10).axes[0]
    shares = np.array([line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 10])
    for window in range(10):
        read = plan.order.take(0, window * 400, window * 400 + 400)
        expected = [100 * np.mean(read // 1000 == quarter) for quarter in range(4)]
        np.testing.assert_allclose(shares[:, window], expected)


def test_coverage(tmp_path: Path) -> None:
    """A stored epoch is flat, and one whose file was overwritten with zeros is not."""
    plan = ip.Plan(ip.Shuffle(6400), world_size=2, batch_size=20)
    ip.save(plan, tmp_path / "a.plan")
    axes = plot.coverage(ip.load(tmp_path / "a.plan")).axes[0]
    assert [100.0] * 64 == [patch.get_height() for patch in axes.patches]
    chunk = tmp_path / "a.plan/epoch-00000/chunk-00000.npy"
    data = bytearray(chunk.read_bytes())
    data[128 + 4 * 3200 :] = bytes(4 * 3200)
    chunk.write_bytes(data)
    axes = plot.coverage(ip.load(tmp_path / "a.plan")).axes[0]
    heights = [patch.get_height() for patch in axes.patches]
    assert 3200 + 100 >= heights[0] >= 3200
    assert max(heights[1:]) < 100


@pytest.mark.parametrize(
    "plan",
    [
        ip.Plan(ip.Shuffle(1), world_size=1, batch_size=1),
        ip.Plan(ip.Shuffle(3), world_size=8, batch_size=256, remainder="drop"),
        ip.Plan(ip.Shuffle(3), world_size=8, batch_size=256, remainder="carry", sub_epochs=5),
        ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=256, remainder="pad"),
        ip.Plan(ip.Sequential(50), world_size=2, batch_size=[ip.Phase(0, 4, {"x": 1})]),
        ip.Plan(ip.Shuffle(90), world_size=3, global_batch_size=(2, 6)),
        PLAN.resume(PLAN.cursor(0, step=3)),
    ],
    ids=["one sample", "no steps", "empty", "1e12", "one phase", "global", "resumed"],
)
def test_any_plan(plan: ip.Plan, tmp_path: Path) -> None:
    """Every picture of every kind of plan is drawn, and written."""
    start = plan.start.epoch, plan.start.sub_epoch
    for name in ("reading", "batch_sizes", "mixing"):
        plot.save(getattr(plot, name)(plan, *start), tmp_path / f"{name}.png", dpi=20)
    plot.save(plot.schedule(plan), tmp_path / "schedule.svg")
    plot.save(plot.coverage(plan), tmp_path / "coverage.pdf")
    assert 5 == len(list(tmp_path.iterdir()))


def test_orders_of_bins() -> None:
    """Bins are drawn where it makes sense, and refused where it does not."""
    plan = ip.Plan(Bins(50), world_size=2, batch_size=3)
    plot.batch_sizes(plan)
    plot.schedule(plan)
    said = "needs an order of single samples; got test-bins-v1; "
    for draw, cure in ((plot.mixing, "plot the reading"), (plot.coverage, "use indexplan.verify")):
        with pytest.raises(ip.IndexPlanError, match=said + cure):
            draw(plan)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command draws a plan directory or a spec, to a new file, and nothing else."""
    ip.save(PLAN, tmp_path / "a.plan", epochs=[2])
    (tmp_path / "b.json").write_text(PLAN.resume(PLAN.cursor(1, step=3)).to_json())
    for name in ("a.plan", "b.json"):
        for kind in ("reading", "sizes", "schedule", "mixing", "coverage"):
            out = str(tmp_path / f"{name}-{kind}.png")
            said = run(capsys, "plot", str(tmp_path / name), "-o", out, "--kind", kind)
            assert said.startswith(f"{out}: ")
            assert b"\x89PNG" == Path(out).read_bytes()[:4]
    out = str(tmp_path / "again.png")
    words = ["plot", str(tmp_path / "a.plan"), "-o", out]
    assert {"output": out, "kind": "reading"} == json.loads(
        run(capsys, *words, "--json", "--world-size", "2")
    )
    said = fails(capsys, 1, *words)
    assert f"{out} must be a new file; got one that exists; " in said
    missing = str(tmp_path / "no" / "a.png")
    assert fails(capsys, 1, *words[:3], missing) == (
        f"{missing} must be written; got 'No such file or directory'; check the folder, its "
        "permissions and its space"
    )
    assert "a picture's path must end with .png, .svg, .pdf; got 'a.gif'; end it with .png" == (
        fails(capsys, 2, *words[:3], "a.gif")
    )
    assert "--window needs --kind mixing" == fails(capsys, 2, *words, "--window", "3")


def test_without_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where matplotlib is missing, the error names the extra."""
    (tmp_path / "a.json").write_text(PLAN.to_json())
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = fails(capsys, 2, "plot", str(tmp_path / "a.json"), "-o", str(tmp_path / "a.png"))
    assert said.startswith("matplotlib must be installed for pictures; got ")
    assert said.endswith("; pip install 'indexplan[cli]'")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """A picture that cannot be drawn leaves no file."""

    class Broken:
        def savefig(self, *_: object, **__: object) -> None:
            raise MemoryError

    with pytest.raises(MemoryError):
        plot.save(Broken(), tmp_path / "a.png")  # type: ignore[arg-type]
    assert [] == list(tmp_path.iterdir())


def test_numbers_are_short() -> None:
    """What is written below a picture, and what is picked for it."""
    assert ["0", "99,999", "1e5", "1.25e11", "9.54e5"] == [
        short(number) for number in (0, 99_999, 100_000, 125 * 10**9, 953_675)
    ]
    assert [0, 33, 66, 99] == sample(0, 100, 4).tolist()
    assert [5, 6] == sample(5, 7, 4).tolist()
