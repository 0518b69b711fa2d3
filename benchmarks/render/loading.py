"""Loaders that read a memory-mapped file: the page."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import INSTALL, Column, Figure, Page, Table, means, number, times

FULL, BLOCKS = "indexplan Shuffle", "indexplan BlockShuffle"
ROW_BYTES = 512


def _of_two(factor: float) -> Callable[[float, float], str]:
    """Return how a median is written, with the best in brackets."""
    return lambda median, best: f"{number(median * factor)} ({number(best * factor)})"


COLUMNS = (
    Column(("first_seconds", "best_first_seconds"), "first batch, ms", _of_two(1e3)),
    Column("first_read_bytes", "disk read for it, MB", times(1e-6)),
    Column(
        ("rows_per_second", "best_rows_per_second"), "thousand rows per s after it", _of_two(1e-3)
    ),
    Column("bytes_per_second", "MB per s", times(1e-6)),
    Column("amplification", "bytes read per byte used"),
)
SCENARIOS = {  # cache, advice, access: title
    "cold, default, gather": "Cold, the kernel reads around a missed page",
    "cold, random, gather": "Cold, page by page (MADV_RANDOM)",
    "warm, default, gather": "Warm, rows gathered by the batch",
    "warm, default, one by one": "Warm, rows asked for one by one",
}
TABLES = [
    *(
        Table(key, title, "", COLUMNS, (("who", "{who}, {case}"),))
        for key, title in SCENARIOS.items()
    ),
    Table(
        "blocks",
        "Blocks of other sizes",
        "Cold, 0 workers; 32,768 rows are mixed whatever the size.",
        COLUMNS,
        (("block", "{case}"),),
    ),
]
DISK = Table(
    "disk",
    "",
    "",
    (
        Column("slowest_rows_per_second", "thousand rows per s, slowest", times(1e-3)),
        Column("rows_per_second", "median", times(1e-3)),
        Column("best_rows_per_second", "best", times(1e-3)),
        Column("bytes_per_second", "MB per s, median", times(1e-6)),
    ),
    (("plain reads", "{case}"),),
)


def conditions(rows: list[Row]) -> list[str]:
    """Return the table of what was run, and how."""
    found = kept.one(rows, "conditions")
    around = f"{found['read_ahead'] // 1024:,}" if found["read_ahead"] else "an unknown number of"
    size = number(found["num_rows"] * ROW_BYTES / 1e6)
    told = {
        "file": (
            f"memory-mapped, {found['num_rows']:,} rows of {ROW_BYTES} bytes ({size} MB); batches "
            "of 256, one rank"
        ),
        "times": f"medians of {found['rounds']} rounds, the best in brackets",
        "a run": (
            f"ends after 4,000 batches, or {number(found['seconds'])} s after its first; where the "
            "kernel reads around, after 1,000. The first batch's time includes making the loader "
            "and starting workers; what the disk reads includes what workers draw ahead"
        ),
        "cold": (
            "mincore found no page of the file in memory; the host of a virtual disk may still "
            "hold some"
        ),
        "the kernel's default": (
            "is to read around, so np.memmap does: here a missed page brings "
            f"{around} KiB around it (Linux's own default: 128)"
        ),
        "MADV_RANDOM": "brings the missed page alone",
        "BlockShuffle": "blocks of 4,096 rows (2 MiB), of which 8 are mixed",
    }
    return means("", "", "what | how", told)


def _gain(scenario: str, key: str) -> Callable[[list[Row]], float]:
    """Return a figure's measure: the best runs of blocks by those of a full shuffle, cold."""

    def gain(rows: list[Row]) -> float:
        ours, full = (
            float(kept.one(rows, scenario, case="0 workers", who=who)[key])
            for who in (BLOCKS, FULL)
        )
        return full / ours if key == "best_seconds" else ours / full

    return gain


LOADING = Page(
    "loading",
    "Training input from a file",
    "Loaders that read a memory-mapped file.",
    (conditions, DISK, *TABLES),
    (
        Figure(
            "cold, page by page: BlockShuffle's rows per second against Shuffle's",
            3,
            "times as many",
            _gain("cold, random, gather", "best_rows_per_second"),
            least=True,
        ),
        Figure(
            "cold, the kernel reads around: 1,000 batches of BlockShuffle against Shuffle's",
            2,
            "times sooner",
            _gain("cold, default, gather", "best_seconds"),
            least=True,
        ),
    ),
    f"{INSTALL}\n",
    rivals=False,
)
