"""The tables of loaders that read a memory-mapped file."""

from __future__ import annotations

from statistics import median
from typing import Any

from benchmarks.measure.loading import ROW_BYTES
from benchmarks.render.writer import markdown, number

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


def all_in(job: dict[str, Any]) -> list[float]:
    """Return the rows per second of all of a job's runs, set-up and first batch included."""
    return [run["useful_bytes"] / ROW_BYTES / run["seconds"] for run in job["runs"]]


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


def disk(data: dict[str, Any]) -> list[str]:
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
    return markdown(header, rows)


def findings(data: dict[str, Any]) -> list[str]:
    """Say, with the numbers of the run, where blocks pay and where they do not."""

    def best(who: str, name: str, block_size: int = SHOWN_BLOCK, **fields: Any) -> float:
        fields = {"cache": "cold", "access": "gather", "workers": 0, **fields}
        (job,) = jobs_of(data, who=who, block_size=block_size, **fields)
        return (max if name == "rows_per_s" else min)(values(job, name))

    def gain(**fields: Any) -> str:
        ours, full = (best(who, "rows_per_s", **fields) for who in (BLOCKS, FULL))
        return number(ours / full)

    def took(who: str, **fields: Any) -> str:
        return number(best(who, "seconds", advice="default", **fields))

    small = best(BLOCKS, "rows_per_s", 8, advice="random") / best(
        FULL, "rows_per_s", advice="random"
    )
    by_page = (
        f"blocks give {gain(advice='random')} times the rows per second of a full "
        f"shuffle, and blocks of one page {number(small)} times: a full shuffle uses one of a "
        "page's 8 rows before it needs the next page, a window of blocks all of them"
    )
    by_more = (
        "1,000 batches, set-up included, take "
        f"{took(TORCH)} s with DistributedSampler, {took(FULL)} s with Shuffle, {took(BLOCKS)} s "
        f"with BlockShuffle, and {took(BLOCKS, block_size=8)} s with blocks of one page, which are "
        "small beside what a miss brings. By then the full shuffles have this whole file in "
        "memory; of a much larger one, every batch would cost what the first costs here, or more"
    )
    ours, full = (
        number(256e6 / best(who, "rows_per_s", cache="warm", advice="default"))
        for who in (BLOCKS, FULL)
    )
    from_memory = (
        f"a batch takes {ours} us with blocks and {full} us with a full shuffle: little "
        "beside a training step, so mix a dataset that stays in memory fully"
    )
    found = {
        "page by page": by_page,
        "where the kernel reads around": by_more,
        "warm": from_memory,
    }
    return markdown("of the best runs | finding", found.items(), "l")


def conditions(data: dict[str, Any]) -> list[str]:
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
    return markdown("what | how", told.items(), "l")


def tables(data: dict[str, Any]) -> list[str]:
    """Return all as Markdown."""
    lines = [*findings(data), *conditions(data), *disk(data)]
    for (cache, advice, access), title in SCENARIOS.items():
        fields = {"cache": cache, "advice": advice, "access": access}
        rows = [
            (f"{job['who']}, {job['workers']} workers", *cells(job))
            for job in jobs_of(data, block_size=SHOWN_BLOCK, **fields)
        ]
        lines += [f"**{title}**", "", *markdown(f"who | {HEADER}", rows)]
    sizes = jobs_of(data, who=BLOCKS, cache="cold", workers=0)
    sizes.sort(key=lambda job: (job["advice"], job["block_size"]))
    rows = [(f"{job['block_size']:,} rows, {job['advice']} advice", *cells(job)) for job in sizes]
    words = "**Blocks of other sizes, cold, 0 workers; 32,768 rows are mixed whatever the size**"
    return [*lines, words, "", *markdown(f"block | {HEADER}", rows)]
