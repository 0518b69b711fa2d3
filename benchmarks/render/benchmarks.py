"""docs/benchmarks.md."""

from __future__ import annotations

from typing import Any

from benchmarks.render import loading, losing, quality, summary, timings, views
from benchmarks.render.figures import FIGURES
from benchmarks.render.results import Results
from benchmarks.render.writer import figures, markdown, section, this_run, top


def who(standing: list[dict[str, str]]) -> list[str]:
    """List who is compared, and who could not be."""
    rows = [
        (row["name"], row["version"] or f"**missing**: {row['missing']}", row["note"])
        for row in standing
    ]
    return markdown("who | version | how", rows, "l")


HOW = {
    "outputs": "every one is verified after timing",
    "not timed": "setting up; compilation is timed by itself",
    "times": "medians; ratios of repeated calls are of minima, since noise only adds time",
}
SHARED = (
    "; one thread unless said otherwise. It is shared: trust ratios, which are of one run, more "
    "than times"
)


def page(data: dict[str, Any], results: Results) -> list[str]:
    """Return the page: one picture and one table first."""
    lines = [*top(data, "Benchmarks"), *summary.picture(), "", *summary.table(results)]
    lines += [summary.WORDS, ""]
    lines += losing.section(losing.all_losses(results))
    lines += section("How it was measured", "", this_run(data, HOW, SHARED))
    lines += section("Figures", "", figures(FIGURES, results))
    lines += section("Who is compared", "", who(data["rivals"]))
    if results.contest:
        lines += views.sections(results.contest)
    if "quality" in data:
        lines += quality.quality_section(data["quality"])
    if "loading" in data:
        picture = ["![rows per second from a file](images/loading.png)", ""]
        found = loading.tables(data["loading"])
        lines += section("Training input from a file", "", picture + found)
    if results.tables:
        lines += timings.repeated(results)
    if results.starts:
        lines += timings.processes(results)
    return lines
