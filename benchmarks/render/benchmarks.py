"""docs/benchmarks.md."""

from __future__ import annotations

from typing import Any

from benchmarks.render import loading, losing, quality, timings, views
from benchmarks.render.figures import FIGURES
from benchmarks.render.results import Results
from benchmarks.render.writer import figures, heading, markdown, section


def who(standing: list[dict[str, str]]) -> list[str]:
    """List who is compared, and who could not be."""
    rows = [
        (row["name"], row["version"] or f"**missing**: {row['missing']}", row["note"])
        for row in standing
    ]
    return markdown("who | version | how", rows, "l")


def page(data: dict[str, Any], results: Results) -> list[str]:
    """Return the page."""
    outputs = [
        "Setting up is not timed, compilation is",
        "timed by itself, and every output is verified after timing.",
    ]
    shared = (
        "; one thread where nothing else is said. The machine is shared: trust ratios, which are "
        "of one run, more than times."
    )
    lines = heading(data, "Benchmarks", outputs, shared)
    words = "Times are medians; ratios of repeated calls are of minima, since noise only adds time."
    lines += section("Figures", words, figures(FIGURES, results))
    lines += section("Who is compared", "", who(data["rivals"]))
    lines += losing.section(losing.all_losses(results))
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
