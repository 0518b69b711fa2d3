"""The tables of repeated timings, mostly of this library, and of fresh processes."""

from __future__ import annotations

from typing import Any

from benchmarks.render.page import Block
from benchmarks.render.results import Results, Row
from benchmarks.render.views import IMAGES
from benchmarks.render.writer import number, power, section, tabular


def per_index(results: Results, table: str) -> list[Block]:
    """Return the table of costs per index, as ratios to Shuffle and to torch's largest."""
    base = results.row(table, "Shuffle, n = 1e9").least()
    rival = results.rival("torch.randperm", results.largest()).least()
    rows = [
        (
            row.name,
            number(row.least()),
            number(row.ns()),
            f"{row.least() / base:.2f}",
            f"{rival / row.least():.1f}",
        )
        for row in results.tables[table]
    ]
    header = "order | min, ns per index | median | to Shuffle at 1e9 | faster than torch.randperm"
    return tabular(f"{header} at {power(results.largest())}", rows)


def whole(results: Results) -> list[Block]:
    """Return the comparison with others at the job that they can do."""
    rows = []
    for row in results.tables["whole permutation"]:
        n = row.facts["n"]
        torch = results.rival("torch.randperm", n)
        least, ratio = number(row.least()), f"{torch.least() / row.least():.2f}"
        rows.append((row.name, power(n), least, number(row.ns()), ratio))
    header = "who | n | min, ns per index | median | faster than torch.randperm"
    return tabular(header, rows)


def calls(rows: list[Row], unit: str = "us") -> list[Block]:
    """Return a table of latencies, in microseconds or seconds."""
    factor = {"us": 1e6, "s": 1}[unit]
    cells = [
        (
            row.name,
            f"{row.num_indices:,}",
            *(number(factor * time) for time in (row.minimum, row.median)),
        )
        for row in rows
    ]
    return tabular(f"question | indices | min, {unit} | median", cells)


def stream(rows: list[Row]) -> list[Block]:
    """Return the table of streaming."""
    cells = [
        (
            row.name,
            f"{row.facts['num_batches']:,}",
            number(row.num_indices / row.median / 1e6),
            number(row.median / row.facts["num_batches"] * 1e6),
        )
        for row in rows
    ]
    return tabular("plan | batches | million indices per s, median | us per batch, median", cells)


def columns(rows: list[Row]) -> list[Block]:
    """Return the table of what columns cost, by the time of the CPU."""
    cells = [
        (
            row.name,
            number(row.facts["bytes_per_cpu_second"] / 1e6),
            number(row.facts["plain_per_cpu_second"] / 1e6),
            f"{row.facts['ratio']:.2f}",
            number(row.facts["grown_bytes"] / 1e6) if "grown_bytes" in row.facts else "-",
        )
        for row in rows
    ]
    header = "column | MB per CPU second | hashlib.sha256 of the same bytes | ratio | worker, MB"
    return tabular(header, cells)


def starts(results: Results) -> list[Block]:
    """Return the table of imports and first calls."""
    named = {
        "import numpy": results.starts["import_numpy"],
        "import indexplan, NumPy's import included": results.starts["import_indexplan"],
        "import to first batch of 1e12, warm cache": results.starts["first_batch_warm"],
        "import to first batch of 1e12, cold cache": results.starts["first_batch_cold"],
        "8 processes at once, the slowest, warm cache": results.starts["together_warm"],
        "8 processes at once, the slowest, cold cache": results.starts["together_cold"],
    }
    rows = [
        (
            name,
            number(times["seconds"]["min"]),
            number(times["seconds"]["median"]),
            number(times["process"]["median"]),
            times["seconds"]["runs"],
        )
        for name, times in named.items()
    ]
    lines = tabular("in a fresh process | min, s | median, s | whole process, s | processes", rows)
    cold, warm = results.starts["first_calls_cold"], results.starts["first_calls_warm"]
    rows = [
        (name, number(cold[name]["median"] * 1e3), number(warm[name]["median"] * 1e3))
        for name in cold
        if name != "process"
    ]
    return lines + tabular("first call | cold cache (compiles), ms | warm cache, ms", rows)


def growth(results: Results) -> list[Block]:
    """Return the table of time and memory to the first batch."""
    rows = [
        (
            row["row"],
            power(row["n"]),
            *(number(row[key]["min"]) for key in ("seconds", "user_seconds")),
            number(row["seconds"]["median"]),
            number(row["peak_bytes"]["median"] / 1e6),
            number(row["held_bytes"]["median"] / 1e6),
        )
        for row in results.growth
    ]
    return tabular(
        "who | n | min, s | user CPU, s | median, s | peak growth, MB | still held, MB", rows
    )


def repeated(results: Results) -> list[Block]:
    """Return the tables of repeated timings, of this library mostly."""
    picture: list[Block] = [f"![cost per index against size]({IMAGES}/cost_per_index.svg)"]
    lines = section(
        "A stretch of an epoch", "A contiguous interval.", per_index(results, "stretch")
    )
    words = "`plan.indices`: batches of 256 of one rank of 64, so runs of 256 positions in strides."
    lines += section("One rank's share of 64, again and again", words, per_index(results, "share"))
    words = "`plan.indices(..., num_threads=...)`: one rank's share of 64, n = 1e9."
    lines += section("Threads", words, calls(results.tables["threads"]))
    words = "`order.locate` of neighbours in the order."
    lines += section("The inverse", words, per_index(results, "inverse"))
    words = (
        "All n at once as int64 in memory, on one thread: the one job that all can do. NumPy and "
        "torch redo it for every epoch, in every process, to read a slice. Who takes too long is "
        "not shown at large sizes."
    )
    lines += section("Whole permutations", words, picture + whole(results))
    words = "`plan.batch`, batch size 256; rows name what differs from the first."
    lines += section("One batch", words, calls(results.tables["batch"]))
    words = "`plan.batches`, batch size 256, one rank of 64, all kept in a list."
    lines += section("A stream of batches", words, stream(results.tables["stream"]))
    lines += section("Where is a sample read?", "`plan.locate`.", calls(results.tables["locate"]))
    if "columns" in results.tables:  # later than the measurements that may be rendered again
        words = "The sha256 of a mapped file, and how much a spawned worker grows that gets it."
        lines += section("Columns", words, columns(results.tables["columns"]))
    words = (
        "Batches of 256 as lists, one rank, after the first batch, before which the rivals shuffle "
        "and list the whole epoch."
    )
    lines += section("Torch samplers", words, calls(results.tables["sampler"]))
    words = "A whole pass over samples that cost nothing, everything included."
    lines += section("DataLoaders", words, calls(results.tables["loader"]))
    lines += section("First batches of loaders", "", calls(results.tables["first"]))
    words = "`verify` checks a plan's arithmetic here, not its indices."
    return lines + section("Verification", words, calls(results.tables["verify"], "s"))


def processes(results: Results) -> list[Block]:
    """Return the tables of fresh processes: imports, compilation, memory."""
    words = "Each number has its own processes. Cold is an empty folder for numba's cache."
    lines = section("The first batch of a process", words, starts(results))
    words = (
        "Time, and growth of the process, after a first small job, so without imports. Where a "
        "virtual machine must first be given memory, the time includes that, user CPU does not."
    )
    return lines + section("Memory of all questions", words, growth(results))


def blocks(data: dict[str, Any]) -> list[Block]:
    """Return the page's blocks."""
    results = Results(data)
    return repeated(results) + processes(results)
