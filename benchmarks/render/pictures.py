"""The pictures of the comparison, one for each view, all with the same colours and markers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.measure.questions import KEYS
from benchmarks.render.tables import power
from benchmarks.render.views import PAGE, VIEWS, View, shown
from benchmarks.rivals import NAMES

Points = list[tuple[int, float]]


def points_of(view: View, rows: dict[int, Any], name: str) -> tuple[Points, str]:
    """Return a rival's points, and what stopped it where: "" if nothing did."""
    points: Points = []
    for place, row in rows.items():
        record = row.get(name)
        if record and "stop" not in record:
            points.append((place, max(view.value(record), PAGE if view.key == "memory" else 0)))
    stops = [
        (place, row[name]["stop"])
        for place, row in rows.items()
        if name in row and "stop" in row[name] and "since" not in row[name]
    ]
    if not stops:
        return points, ""
    place, reason = stops[0]
    return points, f"{reason} at {f'world {place}' if view.by_world else power(place)}"


def draw(axes: Any, view: View, rows: dict[int, Any]) -> None:
    """Draw all rivals' lines; where one stops, an x at the end, and the reason in the legend."""
    for name in view.asked().rivals:
        rival = NAMES[name]
        points, stop = points_of(view, rows, name)
        if not points:
            continue
        axes.plot(
            *zip(*points, strict=True),
            color=rival.colour,
            linestyle=rival.dashes,
            marker=rival.marker,
            markersize=8,
            linewidth=2.6 if rival.ours else 1.6,
            markeredgecolor="black",
            markeredgewidth=0.5,
            zorder=3 if rival.ours else 2,
            label=f"{name} (x: {stop})" if stop else name,
        )
        if stop:
            # A little to the right of the last point, as the next one is where it stopped.
            x, y = max(points) if not view.by_world else min(points)
            axes.plot(
                x * (0.7 if view.by_world else 1.45),
                y,
                marker="x",
                color="#B00000",
                markersize=9,
                markeredgewidth=2.5,
                linestyle="",
            )


def plot(contest: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Draw every view that was measured, and write PNG files of their names."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    for view in VIEWS:
        if view.question not in contest:
            continue
        rows = shown(view, contest[view.question])
        with plt.rc_context({"font.size": 14}):
            figure, axes = plt.subplots(figsize=(10, 7), layout="constrained")
            draw(axes, view, rows)
            axes.set(
                xscale="log",
                yscale="log",
                xlabel="world size" if view.by_world else "samples in the dataset",
                ylabel=view.axis,
                title=view.title,
            )
            if view.by_world:
                axes.set_xscale("log", base=2)
                axes.set_xticks(list(rows), labels=[f"{place:,}" for place in rows])
            axes.grid(visible=True, which="major", alpha=0.3)
            figure.legend(loc="outside lower center", ncols=2, fontsize=11, frameon=False)
            figure.savefig(folder / f"{view.key}.png", dpi=110, metadata={"Software": None})
            plt.close(figure)


def plot_quality(quality: dict[str, Any], path: Path) -> None:
    """Draw how far each order's label counts are from a random order's."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    size = str(quality["sizes"][0])
    names = [row["name"] for row in quality["rows"]][::-1]
    values = [row["variance"][size] for row in quality["rows"]][::-1]
    colours = {rival.order_name: rival.colour for rival in NAMES.values() if rival.order_name}
    with plt.rc_context({"font.size": 14}):
        figure, axes = plt.subplots(figsize=(9, 3.6), layout="constrained")
        axes.barh(names, values, color=[colours.get(name, "#999999") for name in names])
        axes.axvline(1, color="black", linestyle="--", label="a random order")
        for i, value in enumerate(values):
            axes.text(value + 0.03, i, f"{value:.2f}", va="center")
        axes.set(
            xlabel="variance of label counts, by a random order's",
            title=f"Is it a shuffle? n = {int(size):,}",
            xlim=(0, max(values) * 1.12),
        )
        axes.legend(loc="upper right")
        figure.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(figure)


assert set(KEYS) == {view.question for view in VIEWS}  # every question has a picture
