"""The pages of results: which tables their rows make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.contenders import binners, dealers, planners
from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import (
    Column,
    Page,
    Table,
    less,
    more,
    number,
    refresh,
    size,
    table,
    time,
    times,
)

OURS = "indexplan"


# Planning: numbers are of fresh processes after a small job, with all objects made.

TORCH = "torch DistributedSampler"
DRAWN = {
    "first_batch": "seconds to the first batch",
    "share": "indices per second",
    "worlds": "seconds for a rank's share of 1e7",
    "resume": "seconds to the first batch after the middle",
}
"""Tables that have a picture, and what its upright axis is."""


def _table(key: str, column: Column) -> Table:
    world = key == "worlds"
    return Table(
        key,
        (column,),
        (("world size" if world else "n", "{case}"),),
        across="who",
        place="world {case}" if world else "n = {case}",
        # a saved plan stands in only where computing is no answer, as for building a file
        ours=lambda _: [(OURS, ""), (f"{OURS}, saved plan", "")],
    )


def _millions(per_second: float) -> str:
    return f"{number(per_second / 1e6)} M/s"


# (table, case, what README calls it)
SHORT = (
    ("first_batch", "1e8", "time to the first batch, 1e8 samples"),
    ("first_batch", "1e12", "the same, 1e12 samples"),
    ("memory", "1e8", "memory for it, 1e8 samples"),
    ("resume", "1e8", "resume at the middle, 1e8 samples"),
)


def short(rows: list[Row]) -> str:
    """Return README's table: ours, the best of the others with its name, and torch."""
    lines = []
    tables = {each.key: each for each in PLANNING.tables}
    for key, case, words in SHORT:
        (column,) = tables[key].columns
        if kept.of(rows, key, case=case):
            torch = kept.of(rows, key, case=case, who=TORCH)
            cell = column.cell(torch[0], rows) if torch else "-"
            lines.append((words, *tables[key].facing(rows, column, case), cell))
    return table(("rank 7 of 64, batch 256, one thread", "indexplan", "best rival", TORCH), lines)


def to_readme(readme: Path) -> None:
    """Bring README's block up to date with the rows that are kept, of their first run."""
    run, *_ = kept.runs(kept.read("planning"))
    refresh(readme, "benchmarks", [short(run)])


SECONDS = Column("seconds", "", time, less)
PLANNING = Page(
    "planning",
    (
        _table("first_batch", SECONDS),
        _table("memory", Column("peak_bytes", "", size, less)),
        _table("share", Column("indices_per_second", "", _millions, more)),
        *(_table(key, SECONDS) for key in ("worlds", "resume", "build")),
    ),
    planners.NAMES,
)

# Costs of calls, mostly of this library, and of fresh processes.

LARGEST = "1e8"
"""The largest size at which all are asked for a whole permutation."""


def _faster_than_torch(row: Row, rows: list[Row]) -> float | str:
    case = row["case"] if row["who"] else LARGEST
    torch = kept.of(rows, "whole permutation", case=case, who="torch.randperm")
    return float(torch[0]["ns"] / row["ns"]) if torch else ""  # a quick run has no large one


NS = (Column("ns", "min, ns per index"), Column("median_ns", "median"))
PER_INDEX = (
    *NS,
    Column(_faster_than_torch, "faster than torch.randperm at 1e8", "{:.1f}".format),
)
CALLS = (
    Column("indices", "indices", "{:,}".format),
    Column("seconds", "min, us", times(1e6)),
    Column("median_seconds", "median", times(1e6), unit=" us"),
)
AGAINST = (*CALLS[:2], CALLS[2]._replace(better=less))
ORDER, QUESTION = (("order", "{case}"),), (("question", "{case}"),)
IN_LOADERS = {
    "labels": (("question", "{who}, {case}"),),
    "ours": lambda _: [(f"{OURS} {name}", "") for name in ("PlanLoader", "PlanBatchSampler")],
}


TIMINGS = Page(
    "timings",
    (
        Table("stretch", PER_INDEX, ORDER),
        Table("share", PER_INDEX, ORDER),
        Table("inverse", PER_INDEX, ORDER),
        Table(
            "whole permutation",
            (
                NS[0],
                NS[1]._replace(better=less, unit=" ns per index"),
                Column(_faster_than_torch, "faster than torch.randperm", "{:.2f}".format),
            ),
            (("who", "{who}"), ("n", "{case}")),
            align="lr",
            place="n = {case}",
            ours=lambda _: [("indexplan.Shuffle", "")],
        ),
        Table("batch", CALLS, QUESTION),
        Table(
            "stream",
            (
                Column("batches", "batches", "{:,}".format),
                Column("indices_per_second", "million indices per s, median", times(1e-6)),
                Column("batch_seconds", "us per batch, median", times(1e6)),
            ),
            (("plan", "{case}"),),
        ),
        Table("locate", CALLS, QUESTION),
        Table("elsewhere", PER_INDEX[:2], ORDER),
        Table("sampler", AGAINST, place="{indices:,} indices", **IN_LOADERS),
        Table("loader", AGAINST, place="{case}, {indices:,} indices", **IN_LOADERS),
        Table("first", CALLS, QUESTION),
        Table(
            "starts",
            (
                Column("seconds", "min, s"),
                Column("median_seconds", "median, s"),
                Column("process_seconds", "whole process, s"),
                Column("processes", "processes"),
            ),
            (("in a fresh process", "{case}"),),
        ),
    ),
)

# How random the orders are.


def _by_chance(title: str, key: str, digits: int) -> Column:
    """Return a column that is in bold where no chance explains how far from 1 it is."""

    def cell(row: Row, rows: list[Row]) -> str:
        if title not in row:  # of a quick run
            return ""
        text = f"{row[title]:.{digits}f}"
        near = abs(row[title] - 1) <= kept.one(rows, "chance")[key]
        return text if near else f"**{text}**"

    return Column(cell, title)


def _once(n: int) -> Column:
    title = f"each once, {n:,}"
    return Column(title, title, lambda each: "yes" if each else "**no**")


QUALITY = Page(
    "quality",
    (
        Table(
            "quality",
            (
                *(_by_chance(f"label counts, {n}", "variance", 2) for n in ("2**20", "1e6")),
                *(_by_chance(f"xor, {n}", "xors", 4) for n in ("2**20", "1e6")),
                *map(_once, (65_537, 262_145, 1_048_577)),
            ),
            (("order", "{who}"),),
        ),
    ),
    rivals=False,
)

# Loaders that read a memory-mapped file.


def _with_best(factor: float) -> Callable[[float, float], str]:
    """Return how a median is written, with the best in brackets."""
    return lambda median, best: f"{number(median * factor)} ({number(best * factor)})"


OF_LOADERS = (
    Column(("first_seconds", "best_first_seconds"), "first batch, ms", _with_best(1e3)),
    Column("first_read_bytes", "disk read for it, MB", times(1e-6)),
    Column(
        ("rows_per_second", "best_rows_per_second"),
        "thousand rows per s after it",
        _with_best(1e-3),
    ),
    Column("bytes_per_second", "MB per s", times(1e-6)),
    Column("amplification", "bytes read per byte used"),
)
SCENARIOS = (
    "cold, default, gather",
    "cold, random, gather",
    "warm, default, gather",
)
"""The cache, the kernel's advice, and how rows are asked for."""
LOADING = Page(
    "loading",
    (
        Table(
            "disk",
            (
                Column("slowest_rows_per_second", "thousand rows per s, slowest", times(1e-3)),
                Column("rows_per_second", "median", times(1e-3)),
                Column("best_rows_per_second", "best", times(1e-3)),
                Column("bytes_per_second", "MB per s, median", times(1e-6)),
            ),
            (("plain reads", "{case}"),),
        ),
        *(Table(key, OF_LOADERS, (("who", "{who}, {case}"),)) for key in SCENARIOS),
    ),
    rivals=False,
)

# Orders that deal samples, compared with other libraries.


def _by_ours(row: Row, rows: list[Row]) -> float | str:
    ours = kept.of(rows, row["table"], case=row["case"], who=OURS)
    return row["ns"] / ours[0]["ns"] if ours else ""


def _above(least: float) -> Callable[[float, float], bool]:
    """Return whether a number is below ours, where ours is above what is no matter."""
    return lambda theirs, ours: theirs < ours and ours > least


OF_DEALERS = (
    Column("first_seconds", "to the first batch", time, less),
    Column("cold_seconds", "the first time", time, less),
    Column("ns", "ns per index", number, less),
    Column(_by_ours, "x ours"),
    Column("first_bytes", "memory", size, _above(2**20)),  # less are pages of the interpreter
    Column("middle_seconds", "a batch of the middle", time, less, absent="cannot"),
)
OF_MIXTURES = (
    Column("deviation", "worst deviation", "{:.6g}".format, less),
    Column("rank_bias", "rank bias", "{:.3g}".format, _above(4)),
)


ORDERS = Page(
    "orders",
    tuple(
        Table(
            need,
            OF_DEALERS + OF_MIXTURES * (need in dealers.MIXTURES),
            align="llr",
            place="{title}, {case}",
        )
        for need in dealers.NEEDS
    ),
    dealers.NAMES,
)

# Bins of samples by their lengths, compared with other libraries.


def _nearer(one: float, other: float) -> bool:
    """Return whether one is nearer to 0, by more than chance is: 5 deviations of 650 bins."""
    return abs(one) < abs(other) - 0.2


def _alike(one: float, other: float) -> bool:
    """Return whether one is below another by more than chance, which is above a shuffle's."""
    return one < 0.9 * other and other > 1


OF_BINNERS = {
    str(column.key): column
    for column in (
        Column("num_bins", "bins", "{:,.0f}".format),
        Column("fill", "fill", "{:.4f}".format, more),
        Column("padding", "padding", "{:.1%}".format, less),
        Column("fullest", "fullest / budget", "{:.3f}".format),
        Column("build_seconds", "to build", time),
        Column("first_seconds", "with the first epoch", time, less),
        Column("epoch_seconds", "an epoch", time, less),
        Column("lag", "lag-1", "{:+.2f}".format, _nearer),
        Column("variance", "variance / i.i.d.", number, _alike),
        Column("again", "pairs again", "{:.1e}".format, less),
        Column("step_seconds", "a step", time, less),
        Column("uneven", "dearest / mean", "{:.3f}".format, less),
        Column("as_dealt", "as dealt", "{:.3f}".format),
        Column("bound", "at best", "{:.3f}".format),
        Column("window_seconds", "a window", time, less),
        Column("num_windows", "windows", "{:,.0f}".format),
    )
}
BUILD = ("build_seconds", "first_seconds", "epoch_seconds")
SHOWN = {
    "packing": ("num_bins", "fill", *BUILD, "lag", "variance", "again"),
    "batches": ("padding", *BUILD, "lag", "variance", "again"),
    "budget": ("num_bins", "padding", "fullest", *BUILD, "lag", "again"),
    "balance": ("uneven", "as_dealt", "bound", "step_seconds"),
    "windows": ("num_windows", *BUILD, "window_seconds"),
}


def _next_to(row: Row) -> list[tuple[str, str]]:
    """Return whom a binner is compared with."""
    names = binners.NAMES[row["who"]].beside, OURS
    return [(name, "") for name in dict.fromkeys(names)]


BINS = Page(
    "bins",
    tuple(
        Table(
            need,
            tuple(OF_BINNERS[key] for key in SHOWN[need]),
            (("lengths", "{case}"), ("who", "{who}")),
            ours=_next_to,
        )
        for need in binners.NEEDS
    ),
    binners.NAMES,
)

# What nodes download, compared with MosaicML Streaming's code.

SURE = 0.02
"""Downloads by which somebody is ahead, or variance: less is chance."""
SHARDED = "ShardShuffle"
OF_SHARDS = (
    # kept rows have two digits after the point
    Column("times", "downloads", "{:.2f}".format, lambda one, ours: ours - one > SURE + 1e-9),
    Column("live", "live shards of a node", "{:.0f}".format, less),
    Column("different", "different shards in a step", "{:.0f}".format, more),
)


def _all_three(*found: float) -> str:
    if not found[1]:
        return "reads nothing"
    return " / ".join(each.show(value) for each, value in zip(OF_SHARDS, found, strict=True))


SHARDS = Page(
    "shards",
    (
        *(
            Table(
                f"{num} {kind} shards",
                (Column(("times", "live", "different"), "", _all_three),),
                (("who", "{who}{how}"),),
                across="case",
                place="{title}, {case}{how}",
                ours=lambda row: [(SHARDED, f", drop{row.get('how', '')}")],
                is_ours=lambda name: name.startswith(SHARDED),
                compared=OF_SHARDS,
            )
            for num in ("1e3", "1e5")
            for kind in ("even", "uneven")
        ),
        Table(
            "mixing",
            (
                Column(
                    "variance",
                    "variance",
                    number,
                    lambda theirs, ours: theirs < ours - SURE and ours > 1 + SURE,
                ),
                Column("different", "different in a step", "{:.0f}".format),
                Column("live", "live of a node", "{:.0f}".format),
                Column("times", "downloads", "{:.2f}".format),
            ),
            (("shards", "{case}"), ("who", "{who}")),
            place="{case} uneven shards",
            ours=lambda _: [(f"{SHARDED}, window 2", "")],
            is_ours=lambda name: not name.startswith("Streaming"),
        ),
    ),
)

# Plan files, and other ways to keep an order.

IN_FILES = "indexplan, plan directory, order generated"
PEERS = {  # who: whether it has checks, many builders, any world size
    IN_FILES: ("yes", "yes", "yes"),
    "indexplan.export, a .npy for each of 8 ranks, generated": ("no", "yes", "no"),
    "np.save of int64, np.load(mmap_mode)": ("no", "no", "yes"),
    "safetensors, uint32, safe_open": ("no", "no", "yes"),
    "no file: indexplan.Shuffle computes it": ("-", "-", "yes"),
}


def _result(row: Row, _: list[Row]) -> str:
    """Write what was measured, by its unit."""

    def each(values: Iterable[float]) -> str:
        return ", ".join(number(value) for value in values)

    if "seconds" in row:
        rates = (row["num_bytes"] / 1e6 / seconds for seconds in row["seconds"])
        return f"{each(row['seconds'])} s; {each(rates)} MB/s"
    if "read_bytes" in row:
        return f"{row['read_bytes']:,} bytes, of which {row['useful_bytes']:,} useful"
    if "grown_bytes" in row:
        return f"{each(grown / 2**20 for grown in row['grown_bytes'])} MiB"
    return f"{number(row['us'])} us"


def _fact(place: int) -> Callable[[Row, list[Row]], Any]:
    return lambda row, _: PEERS[row["who"]][place]


PLAN_FILES = Page(
    "plan-files",
    (
        Table("measurements", (Column(_result, "result"),), (("what", "{case}"),), align="l"),
        Table(
            "alternatives",
            (
                Column("bytes_per_index", "bytes per index"),
                Column("write_seconds", "s to write", better=less),
                Column("open_seconds", "ms to open", times(1e3), less),
                Column("held_bytes", "MB held", times(1e-6)),
                Column("us", "us per read", better=less),
                Column(_fact(0), "checksums"),
                Column(_fact(1), "many builders"),
                Column(_fact(2), "any world size"),
            ),
            (("what", "{who}"),),
            align="lrrrrrl",
            place="{title}",
            ours=lambda _: [(IN_FILES, "")],
            is_ours=lambda name: "indexplan" in name,
        ),
    ),
)

# What tables of orders cost a node.

BYTES = "{:.1f}".format
OF_TABLES = Page(
    "tables",
    (
        Table(
            "tables",
            (
                Column("first_seconds", "first, s", "{:.2f}".format),
                Column("first_bytes", "own, B", BYTES),
                Column("next_seconds", "next, s", "{:.2f}".format),
                Column("next_bytes", "own, B", BYTES),
                Column("file_bytes", "files, B", BYTES),
            ),
            (("order", "{who}"), ("samples", "{case}")),
            align="lr",
        ),
    ),
    rivals=False,
)

# What the first batch of each order costs.


def _to_a_shuffle(row: Row, rows: list[Row]) -> float:
    shuffle = kept.one(rows, row["table"], who="Shuffle")
    return float(row["cold_seconds"] / shuffle["cold_seconds"])


STARTS = Page(
    "starts",
    (
        Table(
            "first batches",
            (
                Column("cold_seconds", "cold, s", "{:.1f}".format),
                Column(_to_a_shuffle, "to a Shuffle's", "{:.1f}".format),
                Column("warm_seconds", "warm, s", "{:.2f}".format),
                Column("kernels", "kernels", "{:.0f}".format),
            ),
            (("order", "{who}"),),
        ),
    ),
    rivals=False,
)

PAGES = {
    page.name: page
    for page in (
        PLANNING,
        TIMINGS,
        QUALITY,
        LOADING,
        ORDERS,
        BINS,
        SHARDS,
        PLAN_FILES,
        OF_TABLES,
        STARTS,
    )
}
