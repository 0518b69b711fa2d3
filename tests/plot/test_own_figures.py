"""Each picture can be drawn into a figure of the user's own, or into a part of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import indexplan as ip
from indexplan import plot

BINS = ip.Plan(ip.Packed([3, 5, 2, 4] * 20, max_length=8), world_size=2, batch_size=4)
BALANCED = ip.Plan(
    ip.Shuffle(100), world_size=4, batch_size=5, balance=ip.Balance([1 + i % 7 for i in range(100)])
)
CLASSES = ip.Plan(ip.ClassBalanced([0, 1, 1, 1] * 50), world_size=2, batch_size=5)
PLAN = ip.Plan(ip.Shuffle(1000), world_size=4, batch_size=8)
SHARDS = ip.Plan(ip.ShardShuffle([64] * 256, lanes=16, stripe=64), world_size=8, batch_size=8)


def run() -> ip.Ledger:
    """Return the ledger of a short run."""
    ledger, begun = ip.Ledger("run.ledger"), Path("run.ledger").exists()
    if not begun:
        ledger.record(PLAN, PLAN.cursor(epoch=0, step=20))
    return ledger


PICTURES: dict[str, Callable[..., Figure]] = {
    "life": lambda **own: plot.life(run(), **own),
    "mixing": lambda **own: plot.mixing(PLAN, **own),
    "reading": lambda **own: plot.reading(PLAN, **own),
    "sizes": lambda **own: plot.sizes(BINS, **own),
    "work": lambda **own: plot.work(BALANCED, **own),
}


def test_every_picture_is_here() -> None:
    """A new one has to be drawn here too."""
    assert sorted({*plot.__all__} - {"save"}) == sorted(PICTURES)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the ledger to a folder of the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", PICTURES)
def test_a_part_shows_what_a_figure_of_ours_shows(name: str) -> None:
    """Its panels have the same names and contents; the other part and the size stay untouched."""
    whole = Figure(figsize=(16, 6), layout="constrained")
    left, right = whole.subfigures(1, 2)
    assert whole is PICTURES[name](figure=right)
    ours = PICTURES[name]()
    assert not left.axes
    assert (16, 6) == tuple(whole.get_size_inches())
    assert [_told(axes) for axes in ours.axes] == [_told(axes) for axes in right.axes]
    whole.draw_without_rendering()  # warns, which is an error, if a layout has no room


def _told(axes: Any) -> tuple[Any, ...]:
    """Return what a panel is about, and how much it holds."""
    held = axes.lines, axes.patches, axes.collections, axes.texts
    return (axes.get_xlabel(), axes.get_ylabel(), *map(len, held), axes.get_xlim(), axes.get_ylim())


def test_a_whole_figure_of_the_users() -> None:
    """A figure is taken as its parts are, and has the title and the caption above the panels."""
    own = Figure(layout="constrained")
    assert own is plot.reading(PLAN, figure=own)
    title, caption = own.get_suptitle().split("\n", 1)
    assert "Who reads what, when: epoch 0" == title
    assert caption.startswith("Noise is a full shuffle")
