"""Planning beside other libraries, and README's short table of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.contenders.planners import NAMES, OURS
from benchmarks.render.page import Block, after, read, text
from benchmarks.render.results import Results
from benchmarks.render.views import VIEWS, View, best, cell, sections, shown
from benchmarks.render.writer import refresh, tabular, who

TORCH = "torch DistributedSampler"
BY_KEY = {view.key: view for view in VIEWS}
# (view, row of it, what README calls it)
ROWS = (
    ("first_batch", 10**8, "time to the first batch, 1e8 samples"),
    ("first_batch", 10**12, "the same, 1e12 samples"),
    ("memory", 10**8, "memory for it, 1e8 samples"),
    ("resume", 10**8, "resume at the middle, 1e8 samples"),
)
SHORT = "## In short"
WORDS = (
    '"time" and "memory" mean that the library exceeded 120 s or 16 GB. '
    "A memory of 0 is less than a page. Writing the cached .npy isn't timed. "
    "[All of it](docs/benchmarks.md), losses included."
)
PICTURE = "![time to the first batch against size](docs/images/first_batch.svg)"


def row_of(view: View, row: dict[str, Any], words: str) -> tuple[str, ...]:
    """Return a line: ours, the best of the others with its name, and torch."""
    mine = OURS if OURS in row else best(view, row, ours=True)
    other = best(view, row, ours=False)
    rival = f"{cell(view, row[other])} ({NAMES[other].name})" if other else "nobody"
    return words, cell(view, row.get(mine or "")), rival, cell(view, row.get(TORCH)) or "-"


def summary(results: Results) -> list[Block]:
    """Return the short table, which the page begins with."""
    rows = []
    for key, place, words in ROWS:
        view = BY_KEY[key]
        found = shown(view, results.contest.get(view.question, [])).get(place)
        if found:
            rows.append(row_of(view, found, words))
    header = f"rank 7 of 64, batch 256, one thread | indexplan | best rival | {TORCH}"
    return tabular(header, rows)


def blocks(data: dict[str, Any]) -> list[Block]:
    """Return the page's blocks."""
    results = Results(data)
    return [SHORT, *summary(results), *who(data["rivals"]), *sections(results.contest)]


def to_readme(readme: Path) -> None:
    """Bring README's block up to date with the results that are kept."""
    refresh(
        readme,
        "benchmarks",
        [text(after(read("planning")["runs"][0]["blocks"], SHORT)), "", WORDS, "", PICTURE],
    )
