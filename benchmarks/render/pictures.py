"""The pictures; all of the comparison have the same colours and markers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contenders.planners import NAMES
from benchmarks.measure.questions import KEYS
from benchmarks.render import loading
from benchmarks.render.results import Results
from benchmarks.render.views import PAGE, VIEWS, View, shown
from benchmarks.render.writer import number, power

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


@contextmanager
def picture(path: Path, *, font: int = 10, **options: Any) -> Iterator[tuple[Any, Any]]:
    """Give a figure and its axes, made with `options`, and write them to a PNG."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    with plt.rc_context({"font.size": font}):
        figure, axes = plt.subplots(layout="constrained", **options)
        yield figure, axes
        figure.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(figure)


def plot_views(contest: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Draw every view that was measured, to files of their names."""
    for view in VIEWS:
        if view.question not in contest:
            continue
        rows = shown(view, contest[view.question])
        with picture(folder / f"{view.key}.png", font=14, figsize=(10, 7)) as (figure, axes):
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


def plot_quality(quality: dict[str, Any], path: Path) -> None:
    """Draw how far each order's label counts are from a random order's."""
    size = str(quality["sizes"][0])
    names = [row["name"] for row in quality["rows"]][::-1]
    values = [row["variance"][size] for row in quality["rows"]][::-1]
    colours = {rival.order_name: rival.colour for rival in NAMES.values() if rival.order_name}
    with picture(path, font=14, figsize=(9, 3.6)) as (_, axes):
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


def plot_costs(results: Results, path: Path) -> None:
    """Draw ours and the rivals' cost per index against the size of the dataset."""
    whole: dict[str, Points] = {}
    for row in results.tables["whole permutation"]:
        whole.setdefault(row.name, []).append((row.facts["n"], row.least()))
    with picture(path, figsize=(7, 4)) as (_, axes):
        for name, points in whole.items():
            axes.plot(*zip(*points, strict=True), marker="o", label=f"{name}, whole permutation")
        for table, label in (("stretch", "a stretch"), ("share", "one rank's share of 64")):
            rows = [
                row
                for row in results.tables[table]
                if row.name.startswith("Shuffle") and not row.name.endswith("there")
            ]
            points = [(int(float(row.name.rpartition(" ")[2])), row.least()) for row in rows]
            name = f"indexplan.Shuffle, {label}"
            axes.plot(*zip(*points, strict=True), marker="s", linestyle="--", label=name)
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel="samples in the dataset", ylabel="ns per index, minimum")
        ticks = (1, 2, 5, 10, 20, 50)
        axes.set_yticks(ticks, labels=map(str, ticks), minor=False)
        axes.set_yticks([], minor=True)
        axes.grid(visible=True, which="major", alpha=0.3)
        axes.legend(fontsize="small", loc="center right")


def plot_loading(data: dict[str, Any], path: Path) -> None:
    """Draw rows per second from a file."""
    with picture(path, nrows=2, ncols=2, figsize=(9, 6)) as (figure, panels):
        for axes, (scenario, title) in zip(panels.flat, loading.SCENARIOS.items(), strict=True):
            fields = dict(zip(("cache", "advice", "access"), scenario, strict=True))
            around = scenario[:2] == ("cold", "default")
            colours = ((0, "#0072B2", -0.2), (2, "#E69F00", 0.2))  # Okabe and Ito's
            for workers, color, shift in colours:
                jobs = loading.jobs_of(
                    data, workers=workers, block_size=loading.SHOWN_BLOCK, **fields
                )
                speeds = [
                    loading.all_in(job) if around else loading.values(job, "rows_per_s")
                    for job in jobs
                ]
                heights = [median(each) / 1e3 for each in speeds]
                places = [place + shift for place in range(len(jobs))]
                bars = axes.bar(places, heights, 0.4, color=color, label=f"{workers} workers")
                axes.bar_label(bars, [number(height) for height in heights], fontsize="x-small")
            names = [job["who"].replace(" ", "\n") for job in jobs]
            axes.set_xticks(range(len(names)), names, fontsize="x-small")
            what = "1,000 batches, the first included" if around else "after the first batch"
            axes.set_title(f"{title}\n{what}", fontsize="small")
            axes.set_ylabel("thousand rows per s", fontsize="small")
            axes.margins(y=0.12)
            axes.grid(visible=True, axis="y", alpha=0.3)
            axes.set_axisbelow(True)
        panels[0, 0].legend(fontsize="x-small")
        figure.suptitle("Rows of 512 bytes per second, medians", fontsize=10)


def plot(data: dict[str, Any], results: Results, folder: Path) -> None:
    """Draw all that was measured, to PNG files of a folder."""
    plot_views(results.contest, folder)
    if "quality" in data:
        plot_quality(data["quality"], folder / "quality.png")
    if "loading" in data:
        plot_loading(data["loading"], folder / "loading.png")
    if results.tables:
        plot_costs(results, folder / "cost_per_index.png")


assert set(KEYS) == {view.question for view in VIEWS}  # every question has a picture
