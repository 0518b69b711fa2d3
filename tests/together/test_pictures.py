"""Every picture has a heading, whole numbers where it counts, and words that do not collide.

Those of the pages are drawn as they are.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image  # which matplotlib brings

import indexplan as ip
from indexplan import plot
from indexplan.plot.style import tick_labels
from tests.support.figures import heading
from tests.test_docs import ROOT

LENGTHS = np.random.default_rng(0).lognormal(4, 1, 3000).clip(1, 512).astype(int)
PHASES = [
    ip.Phase(0, 24, {"resolution": 128, "crop": "weak", "lr": 0.1}),
    ip.Phase((2, 0), 12, {"resolution": 192, "crop": "strong", "lr": 0.025}),
]
SMALL = ip.Plan(ip.Shuffle(103, seed=1), world_size=4, batch_size=4, sub_epochs=2)
# 1,018 steps a sub-epoch
LARGE = ip.Plan(ip.Shuffle(10**9), world_size=1024, batch_size=24, sub_epochs=40)
FAR = ip.Plan(ip.Shuffle(10**9), world_size=1, batch_size=1)  # of a thousand million steps
HUGE = ip.Plan(ip.Shuffle(10**12), world_size=4096, batch_size=PHASES, sub_epochs=40)
UNEVEN = ip.Plan(ip.BlockShuffle(10**9, 10_000, 2), world_size=1024, batch_size=24, sub_epochs=40)
MIXED = ip.Mixture(
    {"web pages in many languages": ip.Shuffle(10**8), "code": ip.Shuffle(10**7)},
    weights={"web pages in many languages": 0.9, "code": 0.1},
)
BALANCED = ip.Plan(
    ip.Shuffle(3000, seed=1), world_size=8, batch_size=8, balance=ip.Balance(LENGTHS)
)
SHARDS = ip.Plan(ip.ShardShuffle([64] * 1024, lanes=16, stripe=64), world_size=8, batch_size=8)


def life(num_returns: int) -> Any:
    """The picture of a run that returns to its last checkpoint but one, on changing ranks."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = ip.Ledger(Path(folder) / "run.ledger")
        for number in range(2 * num_returns + 2):
            plan = BALANCED.replace(world_size=8 - number % 3, balance=None)
            start = ledger.cursor if ledger.step else plan.start
            ledger.record(plan, plan.resume(start).cursor(start.epoch + 1, step=0))
            if number % 2:
                ledger.rewind(ledger.step - 20)
        return plot.life(ledger)


def pictures() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every kind of picture, of small plans and of large ones."""
    plans = {"small": SMALL, "large": LARGE, "far": FAR, "huge": HUGE, "uneven": UNEVEN}
    for name, plan in plans.items():
        for kind in ("reading", "mixing"):
            for remainder in ("spread", "drop", "pad")[: 3 if kind == "reading" else 1]:
                changed = plan.replace(remainder=remainder)
                part = () if plan is FAR else (1,)
                yield (
                    f"{kind} {name} {remainder}",
                    lambda k=kind, p=changed, a=part: getattr(plot, k)(p, 1, *a),
                )
    yield "life", lambda: life(2)
    yield "life of many returns", lambda: life(100)


PICTURES = dict(pictures())
COUNTS = ("step", "rank", "units of", "dataset index", "epoch", "live shards")
WHOLE = re.compile(r"\+?\d{1,3}(,\d{3})*|\d+(\.\d+)?[MBT]|dropped")


def ticks(axis: Any) -> list[Any]:
    """What stands at the ticks that are seen."""
    low, high = sorted(axis.get_view_interval())
    seen = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    texts = [text for tick in seen for text in (tick.label1, tick.label2) if text.get_visible()]
    return [text for text in texts if text.get_text() and axis.axes.axison]


@pytest.mark.parametrize("name", PICTURES)
def test_style(name: str) -> None:
    """A title and a caption; whole numbers at axes that count; no words that collide."""
    figure = PICTURES[name]()
    figure.canvas.draw()
    title, caption = heading(figure)
    assert title
    assert 30 < len(caption) < 250
    assert caption.endswith(".")
    words = [*figure.texts, *(text for each in figure.legends for text in each.get_texts())]
    for axes in figure.axes:
        words += [axes.title, axes._left_title, *axes.texts]
        for axis in (axes.xaxis, axes.yaxis):
            at_ticks, label = ticks(axis), axis.label.get_text()
            assert len({text.get_text() for text in at_ticks}) == len(at_ticks)
            if label.startswith(COUNTS):
                assert [] == [t for t in at_ticks if not WHOLE.fullmatch(t.get_text())]
            words += [*at_ticks, axis.label]
    boxes = [(word.get_text(), word.get_window_extent()) for word in words if word.get_text()]
    for word, box in boxes:
        assert figure.bbox.padded(1).contains(box.x0, box.y0), word
        assert figure.bbox.padded(1).contains(box.x1, box.y1), word
    assert [] == [(a[0], b[0]) for a, b in combinations(boxes, 2) if a[1].overlaps(b[1])]


def test_labels_that_would_be_the_same() -> None:
    """Neighbours among a thousand million have all their digits."""
    assert ["999M", "1B"] == tick_labels([999 * 10**6, 10**9])
    assert ["1,000,000,001", "1,000,000,002"] == tick_labels([10**9 + 1, 10**9 + 2])


def test_one_style(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes and colours do not follow the settings of whoever draws."""
    import matplotlib as mpl

    def look() -> list[Any]:
        figure = plot.mixing(SMALL)
        figure.canvas.draw()
        axes = figure.axes[0]
        words = [*figure.texts, axes.yaxis.label, *axes.get_yticklabels()]
        sizes = [(word.get_fontsize(), word.get_color()) for word in words]
        return [sizes, figure.get_facecolor(), axes.get_facecolor()]

    expected = look()
    for name in ("font.size", "axes.labelsize", "xtick.labelsize", "ytick.labelsize"):
        monkeypatch.setitem(mpl.rcParams, name, 20)
    for name in ("figure.facecolor", "axes.facecolor"):
        monkeypatch.setitem(mpl.rcParams, name, "black")
    assert expected == look()


def test_pictures_and_help_are_drawn_by_the_command(tmp_path: Path) -> None:
    """`python docs/refresh.py` draws the pictures that there are, and the help as it is."""
    page = "docs/command-line.md"
    (parts,) = re.findall(
        r"(.*<!-- help -->\n```text\n).*?\n(```\n.*)", (ROOT / page).read_text(), re.DOTALL
    )
    (tmp_path / "docs").mkdir()
    (tmp_path / page).write_text("outdated\n".join(parts))
    paths = os.pathsep.join([str(ROOT), str(ROOT / "adapters")])
    command = [sys.executable, str(ROOT / "docs" / "refresh.py"), str(tmp_path)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True)
    assert (ROOT / page).read_text() == (tmp_path / page).read_text()
    first = "docs/images/stop-and-resume.svg"
    assert (ROOT / first).read_text() == (tmp_path / first).read_text()
    (tmp_path / first).unlink()
    drawn = {file.name: file for file in (tmp_path / "docs" / "images").iterdir()}
    assert {file.name for file in (ROOT / "docs" / "images").glob("plan-*.png")} == set(drawn)
    for name, file in drawn.items():
        (there, old), (new, now) = (pixels(ROOT / "docs" / "images" / name), pixels(file))
        # another matplotlib draws letters a little differently
        assert there.shape == new.shape
        assert old != now or np.array_equal(there, new), f"{name}: run python docs/refresh.py"


def pixels(path: Path) -> tuple[np.ndarray, str]:
    """A picture's pixels, and the matplotlib that drew it."""
    with Image.open(path) as image:
        return np.asarray(image), str(image.info["Software"])
