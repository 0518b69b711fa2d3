"""The short table for README, between its two markers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.render.results import Results
from benchmarks.render.views import VIEWS, View, best, cell, shown
from benchmarks.render.writer import markdown, number
from benchmarks.rivals import NAMES, OURS

TORCH = "torch DistributedSampler"
BY_KEY = {view.key: view for view in VIEWS}

# (view, row of it, what README calls it)
ROWS = (
    ("first_batch", 10**8, "time to the first batch, 1e8 samples"),
    ("first_batch", 10**12, "the same, 1e12 samples"),
    ("memory", 10**8, "memory for it, 1e8 samples"),
    ("share", 10**8, "one rank's share of 64, 1e8 samples"),
    ("resume", 10**8, "resume at the middle, 1e8 samples"),
    ("resume", 10**12, "the same, 1e12 samples"),
    ("sub_epochs", 10**8, "the next of 40 sub-epochs, 1e8 samples"),
    ("build", 10**8, "shuffle and write 1e8 samples"),
)


def row_of(view: View, row: dict[str, Any], words: str) -> tuple[str, ...]:
    """Return a line: ours, the best of the others with its name, and torch."""
    mine = OURS if OURS in row else best(view, row, ours=True)
    other = best(view, row, ours=False)
    rival = f"{cell(view, row[other])} ({NAMES[other].name})" if other else "nobody"
    return words, cell(view, row.get(mine or "")), rival, cell(view, row.get(TORCH)) or "-"


def summary(results: Results, quality: dict[str, Any] | None, folder: str = "docs") -> list[str]:
    """Return the lines of README's block."""
    rows = []
    for key, place, words in ROWS:
        view = BY_KEY[key]
        found = shown(view, results.contest.get(view.question, [])).get(place)
        if found:
            rows.append(row_of(view, found, words))
    if quality:
        # the rival whose order is computed index by index, as ours is
        by_name: dict[str, Callable[[], str]] = {
            row["name"]: lambda row=row: f"{row['variance'][str(quality['sizes'][0])]:.2f}"
            for row in quality["rows"]
        }
        words = "variance of label counts, n = 2**20 (1: random)"
        names = ("indexplan.Shuffle", "grain index_shuffle", "torch.randperm")
        mine, grain, torch = (by_name[name]() if name in by_name else "-" for name in names)
        rows.append((words, mine, f"{grain} (Grain index_shuffle)", torch))
    if results.starts:
        seconds = results.starts["first_batch_warm"]["seconds"]["median"]
        rows.append(("import to the first batch, warm cache", f"{number(seconds)} s", "-", "-"))
    header = f"rank 7 of 64, batch 256, one thread | indexplan | best rival | {TORCH}"
    picture = f"![time to the first batch against size]({folder}/images/first_batch.png)"
    words = (
        "Where a rival ran out, it says of what. The cached .npy is read after it was shuffled and "
        f"written, which takes what the row of that says. [All of it]({folder}/benchmarks.md), "
        "losses included."
    )
    return [*markdown(header, rows), words, "", picture]
