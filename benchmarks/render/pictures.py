"""The pictures, drawn from the kept results: transparent, so that they read in the dark too."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.contenders.planners import NAMES
from benchmarks.render import rows as kept
from benchmarks.render.pages import DRAWN, PLANNING
from benchmarks.render.rows import Row

GREY, OURS = "#7a7f87", "#8957e5"  # both are seen on white and on black
OTHERS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")
STYLE: Any = {
    "font.size": 12,
    "svg.fonttype": "none",
    "svg.hashsalt": "indexplan",
    "savefig.transparent": True,
    **{f"{part}.color": GREY for part in ("text", "axes.label", "xtick", "ytick", "grid")},
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "axes.titlecolor": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
del STYLE["axes.label.color"]
LEADER = {"arrowstyle": "-", "alpha": 0.6, "ls": ":", "relpos": (0, 0.5)}
"""From a line's end to its name."""


class Series(NamedTuple):
    """A line of a picture, and how it is drawn; `words` stand at its end."""

    words: str
    points: list[tuple[float, float]]
    colour: str
    dashes: str = "-"
    ours: bool = False


@contextmanager
def picture(path: Path, size: tuple[float, float]) -> Iterator[Any]:
    """Give axes to draw on, and write them to an SVG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        yield axes
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


def apart(heights: list[float], gap: float) -> list[float]:
    """Return heights at least `gap` from each other, in the same order, as near as can be."""
    ranked = sorted(range(len(heights)), key=heights.__getitem__)
    placed = list(heights)
    for _ in range(200):
        for low, high in pairwise(ranked):
            lacking = gap - (placed[high] - placed[low])
            if lacking > 0:
                placed[low] -= lacking / 2
                placed[high] += lacking / 2
    return placed


def lines(path: Path, series: list[Series], **words: str) -> None:
    """Draw lines on logarithmic axes, with the name of each beside its end."""
    with picture(path, (9.5, 5)) as axes:
        for each in series:
            width, order = (3.2, 3) if each.ours else (1.8, 2)
            axes.plot(*zip(*each.points, strict=True), each.dashes, color=each.colour, marker="o",
                      markersize=5, linewidth=width, zorder=order)  # fmt: skip
        axes.set(xscale="log", yscale="log", **words)
        axes.grid(visible=True, which="major", alpha=0.25)
        bottom, top = (math.log10(end) for end in axes.get_ylim())
        ends = [max(each.points) for each in series]
        at = apart([(math.log10(y) - bottom) / (top - bottom) for _, y in ends], 0.062)
        for each, end, height in zip(series, ends, at, strict=True):
            axes.annotate(
                each.words,
                xy=end,
                xytext=(1.04, height),
                textcoords="axes fraction",
                va="center",
                annotation_clip=False,
                fontweight="bold" if each.ours else "normal",
                arrowprops={**LEADER, "color": each.colour},
            )


def number(case: str) -> float:
    """Return the number at the end of a case's name."""
    return float(case.rpartition(" ")[2].replace(",", ""))


def series_of(key: str, rows: list[Row]) -> list[Series]:
    """Return each rival's points in a table, and with its name what stopped it."""
    found, there = [], kept.of(rows, key)
    ((column,),) = [each.columns for each in PLANNING.tables if each.key == key]
    for name in dict.fromkeys(row["who"] for row in there):
        of_rival = [row for row in there if row["who"] == name]
        points = [(number(row["case"]), row[column.key]) for row in of_rival if "stop" not in row]
        words, stops = name, [row for row in of_rival if "stop" in row]
        if stops:
            place = f"{'world ' * (key == 'worlds')}{stops[0]['case']}"
            words += f": {stops[0]['stop']} at {stops[0].get('since', place)}"
        rival = NAMES[name]
        colour = OURS if rival.ours else rival.colour
        if points:
            found.append(Series(words, points, colour, rival.dashes, rival.ours))
    return found


def costs(rows: list[Row]) -> list[Series]:
    """Return ours and the rivals' cost per index against the size of the dataset."""
    whole: dict[str, list[tuple[float, float]]] = {}
    for row in kept.of(rows, "whole permutation"):
        whole.setdefault(row["who"], []).append((number(row["case"]), row["ns"]))
    others = iter(OTHERS)
    found = [
        Series(f"{name}, all of it", points, OURS if "indexplan" in name else next(others))
        for name, points in whole.items()
    ]
    for key, dashes in {"stretch": "-", "share": "--"}.items():
        shuffles = [
            row
            for row in kept.of(rows, key)
            if row["case"].startswith("Shuffle") and "there" not in row["case"]
        ]
        points = [(number(row["case"]), row["ns"]) for row in shuffles]
        words = f"indexplan.Shuffle, {'a stretch' if dashes == '-' else 'a share of 64'}"
        found.append(Series(words, points, OURS, dashes, ours=True))
    return found


def draw(folder: Path) -> None:
    """Draw all pictures from the results that are kept, of their first runs."""
    planning, timings = (kept.runs(kept.read(name))[0] for name in ("planning", "timings"))
    for key, axis in DRAWN.items():
        x = "world size" if key == "worlds" else "samples in the dataset"
        title = PLANNING.titles()[key]
        lines(folder / f"{key}.svg", series_of(key, planning), xlabel=x, ylabel=axis, title=title)
    x, y = "samples in the dataset", "ns per index, minimum"
    lines(folder / "cost_per_index.svg", costs(timings), xlabel=x, ylabel=y, title="Cost per index")
