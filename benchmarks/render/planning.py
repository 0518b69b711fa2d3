"""Planning next to other libraries: the page, and README's short table of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.contenders.planners import NAMES, OURS
from benchmarks.measure.questions import KEYS, LIMITS
from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import (
    IMAGES,
    INSTALL,
    Column,
    Figure,
    Page,
    Table,
    less,
    more,
    number,
    refresh,
    size,
    table,
    time,
    who,
)

TORCH = "torch DistributedSampler"
DRAWN = {
    "first_batch": "seconds to the first batch",
    "share": "indices per second",
    "worlds": "seconds for a rank's share of 1e7",
    "resume": "seconds to the first batch after the middle",
}
"""Tables that have a picture, and what its upright axis is."""


def rate(per_second: float) -> str:
    """Write indices per second, in millions."""
    return f"{number(per_second / 1e6)} M/s"


def _table(key: str, column: Column, question: str = "", title: str = "", words: str = "") -> Table:
    asked = KEYS[question or key]
    world = key == "worlds"
    title = title or asked.title
    return Table(
        key,
        title,
        words or asked.words,
        (column,),
        (("world size" if world else "n", "{case}"),),
        across="who",
        place="world {case}" if world else "n = {case}",
        # a saved plan stands in only where computing is no answer, as for building a file
        ours=lambda _: [(OURS, ""), (f"{OURS}, saved plan", "")],
        level="###",
        picture=f"![{title.lower()}]({IMAGES}/{key}.svg)" * (key in DRAWN),
    )


SECONDS = Column("seconds", "", time, less)
TABLES = (
    _table("first_batch", SECONDS),
    _table(
        "memory",
        Column("peak_bytes", "", size, less),
        "first_batch",
        "Memory for the first batch",
        "How much the process grows at most in the time above. 0 is less than a page; pages of a "
        "file that were read count.",
    ),
    _table("share", Column("indices_per_second", "", rate, more)),
    _table("worlds", SECONDS),
    _table("resume", SECONDS),
    _table("build", SECONDS),
    _table(
        "build_rate",
        Column("bytes_per_second", "", lambda value: f"{number(value / 1e6)} MB/s", more),
        "build",
        "Building a file, bytes per second",
        "The same; both write 4 bytes per index.",
    ),
    _table("sub_epochs", SECONDS),
)
BY_KEY = {each.key: each for each in TABLES}
# (table, case, what README calls it)
SHORT = (
    ("first_batch", "1e8", "time to the first batch, 1e8 samples"),
    ("first_batch", "1e12", "the same, 1e12 samples"),
    ("memory", "1e8", "memory for it, 1e8 samples"),
    ("resume", "1e8", "resume at the middle, 1e8 samples"),
)
WORDS = (
    '"time" and "memory" mean that the library exceeded 120 s or 16 GB. '
    "A memory of 0 is less than a page. Writing the cached .npy isn't timed. "
    "[All of it](docs/benchmarks.md), losses included."
)
PICTURE = "![time to the first batch against size](docs/images/first_batch.svg)"


def short(rows: list[Row]) -> str:
    """Return the short table: ours, the best of the others with its name, and torch."""
    lines = []
    for key, case, words in SHORT:
        shown = BY_KEY[key]
        (column,) = shown.columns
        there = {row["who"]: row for row in kept.of(rows, key, case=case)}
        cells = {name: column.cell(row, rows) for name, row in there.items()}
        best = shown.best(row for name, row in there.items() if not NAMES[name].ours)
        rival = f"{cells[best['who']]} ({best['who']})" if best else "nobody"
        if there:
            lines.append((words, cells[OURS], rival, cells.get(TORCH, "-")))
    return table(("rank 7 of 64, batch 256, one thread", "indexplan", "best rival", TORCH), lines)


def to_readme(readme: Path) -> None:
    """Bring README's block up to date with the rows that are kept, of their first run."""
    run, *_ = kept.runs(kept.read("planning"))
    refresh(readme, "benchmarks", [short(run), "", WORDS, "", PICTURE])


def _against(key: str, field: str = "seconds", rival: str = TORCH) -> Callable[[list[Row]], float]:
    def ratio(rows: list[Row]) -> float:
        theirs, ours = (kept.one(rows, key, case="1e8", who=who)[field] for who in (rival, OURS))
        # memory is counted in pages: no growth is at most one
        return float(theirs) / max(ours, 4096 if field == "peak_bytes" else 0)

    return ratio


def _shares(rows: list[Row]) -> float:
    return 1 / _against("share", "indices_per_second")(rows)


def _resume_flatness(rows: list[Row]) -> float:
    large, small = (kept.one(rows, "resume", case=n, who=OURS)["seconds"] for n in ("1e12", "1e6"))
    return float(large / small)


# Numbers are of fresh processes after a small job: without imports and compilation, with all
# objects made.
PLANNING = Page(
    "planning",
    "Planning an epoch",
    "One thread, in fresh processes. Every output is verified after timing; setting up and "
    "compilation are not timed.",
    (
        "## In short",
        lambda rows: [short(rows)],
        who({name: rival.note for name, rival in NAMES.items()}),
        "## Against others",
        LIMITS,
        "Where a rival stopped, the cell names what ran out: memory, time or disk (also 16 GB).",
        *TABLES,
    ),
    (
        Figure(
            "time to the first batch at 1e8, against DistributedSampler",
            1000,
            "times shorter",
            _against("first_batch"),
            least=True,
        ),
        Figure(
            "growth for the first batch at 1e8, against DistributedSampler",
            1000,
            "times smaller",
            _against("memory", "peak_bytes"),
            least=True,
        ),
        Figure(
            "one rank's share of 64 at 1e8, against DistributedSampler",
            1000,
            "times faster",
            _shares,
            least=True,
        ),
        Figure(
            "the next of 40 sub-epochs at 1e8, against EfficientViT-style sub-epochs",
            1000,
            "times sooner",
            _against("sub_epochs", rival="EfficientViT-style sub-epochs"),
            least=True,
        ),
        Figure("resume at the middle: 1e12 by 1e6", 1.5, "times", _resume_flatness),
    ),
    f"{INSTALL}\n",
)
