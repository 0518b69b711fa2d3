"""The tables of loaders that read a memory-mapped file."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

from benchmarks.measure.loading import ROW_BYTES
from benchmarks.render.page import Block
from benchmarks.render.writer import Figure, number, tabular

TORCH, FULL, BLOCKS = "torch DistributedSampler", "indexplan Shuffle", "indexplan BlockShuffle"
SHOWN_BLOCK = 4096

SCENARIOS = {  # (cache, advice, access): title
    ("cold", "default", "gather"): "Cold, the kernel reads around a missed page",
    ("cold", "random", "gather"): "Cold, page by page (MADV_RANDOM)",
    ("warm", "default", "gather"): "Warm, rows gathered by the batch",
    ("warm", "default", "one by one"): "Warm, rows asked for one by one",
}


def jobs_of(data: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return the measured jobs that have these fields."""
    return [job for job in data["jobs"] if all(job[name] == fields[name] for name in fields)]


def values(job: dict[str, Any], name: str) -> list[float]:
    """Return one number of all of a job's runs."""
    return [run[name] for run in job["runs"]]


def amplification(job: dict[str, Any]) -> float | None:
    """Return the median of bytes read from the disk per byte of a row; None if not told."""
    if None in values(job, "read_bytes"):
        return None
    return median(run["read_bytes"] / run["useful_bytes"] for run in job["runs"])


def cells(job: dict[str, Any]) -> list[str]:
    """Return what is told of a job, as HEADER names it."""
    first, speed = values(job, "first"), values(job, "rows_per_s")
    read, times = values(job, "first_read_bytes"), amplification(job)
    return [
        f"{number(median(first) * 1e3)} ({number(min(first) * 1e3)})",
        "" if None in read else number(median(read) / 1e6),
        f"{number(median(speed) / 1e3)} ({number(max(speed) / 1e3)})",
        number(median(speed) * ROW_BYTES / 1e6),
        "" if times is None else number(times),
    ]


HEADER = (
    "first batch, ms | disk read for it, MB | thousand rows per s after it | MB per s | "
    "bytes read per byte used"
)


def disk(data: dict[str, Any]) -> list[Block]:
    """Return the table of what the disk does without any loader."""
    named = {
        "whole file, 1 MiB at a time, cold": ("bytes_per_s", ROW_BYTES),
        "the same, warm": ("cached_bytes_per_s", ROW_BYTES),
        "pages at random, one at a time, cold": ("pages_per_s", 1),  # a row used of each
    }
    rows = []
    for name, (key, size) in named.items():
        speed = [value / size for value in data["disk"][key]]
        told = [number(value / 1e3) for value in (min(speed), median(speed), max(speed))]
        rows.append((name, *told, number(median(speed) * ROW_BYTES / 1e6)))
    header = "plain reads | thousand rows per s, slowest | median | best | MB per s, median"
    return tabular(header, rows)


def conditions(data: dict[str, Any]) -> list[Block]:
    """Return the table of what was run, and how."""
    ahead = data["read_ahead"]
    around = "an unknown number of" if ahead is None else f"{ahead // 1024:,}"
    size = number(data["num_rows"] * ROW_BYTES / 1e6)
    told = {
        "file": (
            f"memory-mapped, {data['num_rows']:,} rows of {ROW_BYTES} bytes ({size} MB); batches "
            "of 256, one rank"
        ),
        "times": f"medians of {data['rounds']} rounds, the best in brackets",
        "a run": (
            f"ends after 4,000 batches, or {number(data['seconds'])} s after its first; where the "
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
    return tabular("what | how", told.items(), "l")


def blocks(found: dict[str, Any]) -> list[Block]:
    """Return the page's blocks."""
    data = found["loading"]
    parts: list[Block] = [*conditions(data), *disk(data)]
    for (cache, advice, access), title in SCENARIOS.items():
        fields = {"cache": cache, "advice": advice, "access": access}
        rows = [
            (f"{job['who']}, {job['workers']} workers", *cells(job))
            for job in jobs_of(data, block_size=SHOWN_BLOCK, **fields)
        ]
        parts += [f"## {title}", *tabular(f"who | {HEADER}", rows)]
    sizes = jobs_of(data, who=BLOCKS, cache="cold", workers=0)
    sizes.sort(key=lambda job: (job["advice"], job["block_size"]))
    rows = [(f"{job['block_size']:,} rows, {job['advice']} advice", *cells(job)) for job in sizes]
    words = "Cold, 0 workers; 32,768 rows are mixed whatever the size."
    return [*parts, "## Blocks of other sizes", words, *tabular(f"block | {HEADER}", rows)]


def _gain(advice: str, key: str) -> Callable[[Any], float]:
    """Return a figure's measure: the best runs of a full shuffle by those of blocks, cold."""

    def gain(found: Any) -> float:
        fields = {"cache": "cold", "access": "gather", "workers": 0, "advice": advice}
        fields["block_size"] = SHOWN_BLOCK
        jobs = [jobs_of(found["loading"], who=who, **fields)[0] for who in (BLOCKS, FULL)]
        if key == "seconds":
            ours, full = (min(values(job, key)) for job in jobs)
            return float(full / ours)
        ours, full = (max(values(job, key)) for job in jobs)
        return float(ours / full)

    return gain


FIGURES = (
    Figure(
        "cold, page by page: BlockShuffle's rows per second against Shuffle's",
        3,
        "times as many",
        _gain("random", "rows_per_s"),
        least=True,
    ),
    Figure(
        "cold, the kernel reads around: 1,000 batches of BlockShuffle against Shuffle's",
        2,
        "times sooner",
        _gain("default", "seconds"),
        least=True,
    ),
)
