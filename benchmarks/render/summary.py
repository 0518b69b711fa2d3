"""The short table in README, between its two markers, and at the top of the benchmarks page."""

from __future__ import annotations

from typing import Any

from benchmarks.contenders.planners import NAMES, OURS
from benchmarks.render.results import Results
from benchmarks.render.views import VIEWS, View, best, cell, shown
from benchmarks.render.writer import markdown

TORCH = "torch DistributedSampler"
BY_KEY = {view.key: view for view in VIEWS}

# (view, row of it, what README calls it)
ROWS = (
    ("first_batch", 10**8, "time to the first batch, 1e8 samples"),
    ("first_batch", 10**12, "the same, 1e12 samples"),
    ("memory", 10**8, "memory for it, 1e8 samples"),
    ("resume", 10**8, "resume at the middle, 1e8 samples"),
)


def row_of(view: View, row: dict[str, Any], words: str) -> tuple[str, ...]:
    """Return a line: ours, the best of the others with its name, and torch."""
    mine = OURS if OURS in row else best(view, row, ours=True)
    other = best(view, row, ours=False)
    rival = f"{cell(view, row[other])} ({NAMES[other].name})" if other else "nobody"
    return words, cell(view, row.get(mine or "")), rival, cell(view, row.get(TORCH)) or "-"


WORDS = (
    'A cell that says "memory" names the limit which that library hit. The cached .npy was '
    "shuffled and written before."
)


def table(results: Results) -> list[str]:
    """Return the short table."""
    rows = []
    for key, place, words in ROWS:
        view = BY_KEY[key]
        found = shown(view, results.contest.get(view.question, [])).get(place)
        if found:
            rows.append(row_of(view, found, words))
    return markdown(f"rank 7 of 64, batch 256, one thread | indexplan | best rival | {TORCH}", rows)


def picture(folder: str = "") -> list[str]:
    """Return the picture beside it; `folder` is where images lie, with a slash."""
    return [f"![time to the first batch against size]({folder}images/first_batch.png)"]


def summary(results: Results, folder: str = "docs") -> list[str]:
    """Return the lines of README's block."""
    words = f"{WORDS} [All of it]({folder}/benchmarks.md), losses included."
    return [*table(results), words, "", *picture(f"{folder}/")]
