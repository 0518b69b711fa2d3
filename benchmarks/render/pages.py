"""The pages of results: which tables their rows make, and what the numbers are held against."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.contenders import binners, dealers, planners
from benchmarks.measure.lengths import REAL
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

Measure = Callable[[list[Row]], float]
OURS = "indexplan"


def of(key: str, table: str, case: str = "", who: str = OURS, **fields: str) -> Measure:
    """Return a figure's measure: one number of a row."""
    given = {"case": case, "who": who} if case else {"who": who}
    return lambda rows: float(kept.one(rows, table, **given, **fields)[key])


def against(key: str, table: str, case: str, rival: str, ours: str = OURS) -> Measure:
    """Return a figure's measure: a rival's number by ours."""
    theirs, own = of(key, table, case, rival), of(key, table, case, ours)
    return lambda rows: theirs(rows) / own(rows)


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


def _rate(unit: str) -> Callable[[float], str]:
    return lambda per_second: f"{number(per_second / 1e6)} {unit}/s"


def _next_to_torch(key: str, field: str = "seconds", rival: str = TORCH) -> Measure:
    def ratio(rows: list[Row]) -> float:
        theirs, ours = (of(field, key, "1e8", who)(rows) for who in (rival, OURS))
        # memory is counted in pages: no growth is at most one
        return theirs / max(ours, 4096 if field == "peak_bytes" else 0)

    return ratio


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
        there = {row["who"]: row for row in kept.of(rows, key, case=case)}
        cells = {name: column.cell(row, rows) for name, row in there.items()}
        others = (row for name, row in there.items() if not planners.NAMES[name].ours)
        best = tables[key].best(others)
        rival = f"{cells[best['who']]} ({best['who']})" if best else "nobody"
        if there:
            lines.append((words, cells[OURS], rival, cells.get(TORCH, "-")))
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
        _table("share", Column("indices_per_second", "", _rate("M"), more)),
        *(_table(key, SECONDS) for key in ("worlds", "resume", "build")),
        _table("build_rate", Column("bytes_per_second", "", _rate("MB"), more)),
        _table("sub_epochs", SECONDS),
    ),
    {
        "time to the first batch at 1e8, against DistributedSampler": _next_to_torch("first_batch"),
        "growth for the first batch at 1e8, against DistributedSampler": _next_to_torch(
            "memory", "peak_bytes"
        ),
        "one rank's share of 64 at 1e8, against DistributedSampler": lambda rows: (
            1 / _next_to_torch("share", "indices_per_second")(rows)
        ),
        "the next of 40 sub-epochs at 1e8, against EfficientViT-style sub-epochs": _next_to_torch(
            "sub_epochs", rival="EfficientViT-style sub-epochs"
        ),
        "resume at the middle: 1e12 by 1e6": lambda rows: (
            of("seconds", "resume", "1e12")(rows) / of("seconds", "resume", "1e6")(rows)
        ),
    },
    planners.NAMES,
    more={"short": short},
)

# Costs of calls, mostly of this library, and of fresh processes.

SHUFFLE = "Shuffle, n = 1e9"
LARGEST = "1e8"
"""The largest size at which all are asked for a whole permutation."""


def _to_shuffle(row: Row, rows: list[Row]) -> float:
    return float(row["ns"] / kept.one(rows, row["table"], case=SHUFFLE)["ns"])


def _faster_than_torch(row: Row, rows: list[Row]) -> float | str:
    case = row["case"] if row["who"] else LARGEST
    torch = kept.of(rows, "whole permutation", case=case, who="torch.randperm")
    return float(torch[0]["ns"] / row["ns"]) if torch else ""  # a quick run has no large one


NS = (Column("ns", "min, ns per index"), Column("median_ns", "median"))
PER_INDEX = (
    *NS,
    Column(_to_shuffle, "to Shuffle at 1e9", "{:.2f}".format),
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


def _to_whole(table: str) -> Measure:
    """Return how much less an index costs than the fastest rival's, of its whole permutation."""

    def ratio(rows: list[Row]) -> float:
        whole = kept.of(rows, "whole permutation", case=LARGEST)
        rivals = [row["ns"] for row in whole if not row["who"].startswith(OURS)]
        starts = SHUFFLE, "Shuffle, n = 1e12"
        ours = [row["ns"] for row in kept.of(rows, table) if row["case"].startswith(starts)]
        return float(min(rivals) / max(ours))

    return ratio


def _blocks(table: str) -> Measure:
    return lambda rows: max(
        _to_shuffle(row, rows)
        for row in kept.of(rows, table)
        if row["case"].startswith("BlockShuffle")
    )


def _between(table: str, key: str, case: str, other: str) -> Measure:
    """Return a figure's measure: a number of one case by that of another."""
    return lambda rows: float(
        kept.one(rows, table, case=case)[key] / kept.one(rows, table, case=other)[key]
    )


def _to_lists(rows: list[Row]) -> float:
    batches = [row for row in kept.of(rows, "batch") if not row["case"].startswith("first")]
    slowest = max(row["median_seconds"] / row["indices"] for row in batches)
    theirs = kept.one(rows, "sampler", who=TORCH)
    return float(slowest / (theirs["median_seconds"] / theirs["indices"]))


def _flat(table: str, key: str, starts: tuple[str, ...]) -> Measure:
    """Return a figure's measure: the dearest case by the cheapest."""

    def ratio(rows: list[Row]) -> float:
        found = [row[key] for row in kept.of(rows, table) if row["case"].startswith(starts)]
        return float(max(found) / min(found))

    return ratio


def _growth(name: str) -> Callable[[list[Row]], float | None]:
    def grown(rows: list[Row]) -> float | None:
        found = [row for row in kept.of(rows, "growth") if row["who"].startswith(name)]
        return sum(row["peak_bytes"] / 1e6 for row in found) if found else None

    return grown


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
        Table("changes", CALLS[1:], QUESTION),
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
        Table(
            "growth",
            (
                Column("seconds", "min, s"),
                Column("user_seconds", "user CPU, s"),
                Column("median_seconds", "median, s"),
                Column("peak_bytes", "peak growth, MB", times(1e-6)),
                Column("held_bytes", "still held, MB", times(1e-6)),
            ),
            (("who", "{who}"), ("n", "{case}")),
            align="lr",
        ),
    ),
    {
        "an index of a stretch, against the fastest whole permutation's at 1e8": _to_whole(
            "stretch"
        ),
        "an index of a rank's share, against the fastest whole permutation's at 1e8": _to_whole(
            "share"
        ),
        "the whole permutation, against torch.randperm at 1e8": against(
            "ns", "whole permutation", LARGEST, "torch.randperm", "indexplan.Shuffle"
        ),
        "BlockShuffle, a stretch, by Shuffle's, worst of four shapes": _blocks("stretch"),
        "BlockShuffle, a rank's share, by Shuffle's, worst of four shapes": _blocks("share"),
        "plan.batch of 256, the slowest, by a batch of torch's sampler as a list": _to_lists,
        "cost of a batch flat in n, world and step: dearest by cheapest": _flat(
            "batch", "seconds", ("n = ", "world", "step", "last")
        ),
        "batches of 256 as lists, PlanBatchSampler against DistributedSampler": lambda rows: (
            of("median_seconds", "sampler", who=TORCH)(rows)
            / of("median_seconds", "sampler", who="indexplan PlanBatchSampler")(rows)
        ),
        "a pass over PlanLoader against torch's sampler, trivial dataset, 0 workers": against(
            "median_seconds", "loader", "0 workers", TORCH, "indexplan PlanLoader"
        ),
        "a new loader's first batch, 1e8 to 1e12: dearest by cheapest": _flat(
            "first", "median_seconds", ("a new PlanLoader",)
        ),
        "resume at any step of 1e12: dearest by cheapest": _flat(
            "first", "median_seconds", ("resume",)
        ),
        "import indexplan, by NumPy's own import": _between(
            "starts",
            "median_seconds",
            "import indexplan, NumPy's import included",
            "import numpy",
        ),
        "import to first batch, warm cache, by NumPy's own import": _between(
            "starts",
            "median_seconds",
            "import to first batch of 1e12, warm cache",
            "import numpy",
        ),
        "growth by a plan of 1e12 and all questions to it": _growth("indexplan.Plan"),
        "growth by a PlanBatchSampler of 1e12 and 1,000 of its batches": _growth(
            "indexplan PlanBatchSampler"
        ),
    },
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
FULL, BLOCKS = "indexplan Shuffle", "indexplan BlockShuffle"
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
    {
        "cold, page by page: BlockShuffle's rows per second against Shuffle's": against(
            "best_rows_per_second", SCENARIOS[1], "0 workers", BLOCKS, FULL
        ),
        "cold, the kernel reads around: 1,000 batches of BlockShuffle against Shuffle's": against(
            "best_seconds", SCENARIOS[0], "0 workers", FULL, BLOCKS
        ),
    },
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


def _worst(measure: Callable[[Row], float]) -> Measure:
    return lambda rows: max(
        measure(row) for row in rows if row.get("who") == OURS and "start_seconds" in row
    )


WEIGHTED, MIXED = ("weights", "n = 1e7"), ("mixture", "n = 30,000,000, 30 sources")
DRAWS, GRAIN = "torch WeightedRandomSampler", "Grain mix"
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
    {
        "Weighted, 1e7 samples, an index, against torch": against("ns", *WEIGHTED, DRAWS),
        "Weighted, 1e7 samples, to the first batch, against torch": against(
            "first_seconds", *WEIGHTED, DRAWS
        ),
        "Weighted, memory beside 1e9 weights, from that for 1e8": lambda rows: (
            of("first_bytes", "weights", "n = 1e8")(rows) / 10**8 - 8
        ),
        "Mixture of 30 shuffled sources, an index, against Megatron's blending, not shuffled": (
            against("ns", *MIXED, "Megatron blending")
        ),
        "Mixture of 30 shuffled sources, an index, against Grain's mix": against(
            "ns", *MIXED, GRAIN
        ),
        "Mixture of 30 sources, to the first batch, against Grain's mix": against(
            "first_seconds", *MIXED, GRAIN
        ),
        "Mixture of 30 sources, a batch of the middle, against Grain's mix": against(
            "middle_seconds", *MIXED, GRAIN
        ),
        "ClassBatches, an index, against MPerClassSampler": against(
            "ns", "class batches", "n = 1e6", "pytorch-metric-learning MPerClassSampler"
        ),
        "Mixtures, a source's distance from its share, anywhere": _worst(
            lambda row: row.get("deviation", 0)
        ),
        "Mixtures, how unevenly ranks get the sources": _worst(lambda row: row.get("rank_bias", 0)),
        "a batch of the middle against the first, once built, the worst of all": _worst(
            lambda row: row["middle_seconds"] / row["start_seconds"]
        ),
    },
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


def _worst_variance(rows: list[Row]) -> float:
    found = kept.of(rows, "packing", who=OURS)
    return max(row["variance"] for row in found if row["case"].partition(",")[0] in REAL)


CHATS = "chats, n = 1e6"
MULTIPACK, GROUPED = "axolotl multipack", "transformers LengthGroupedSampler"
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
    {
        "Packed, 1e6 chats, fill": of("fill", "packing", CHATS),
        "Packed, 1e6 chats, to build, against axolotl's multipack": against(
            "build_seconds", "packing", CHATS, MULTIPACK
        ),
        "Packed, 1e6 chats, an epoch, against axolotl's multipack": against(
            "epoch_seconds", "packing", CHATS, MULTIPACK
        ),
        "Packed, variance of global batches by that of random ones, real lengths, the worst": (
            _worst_variance
        ),
        "Balance of 1,024 samples, a step, against VERL's": against(
            "step_seconds",
            "balance",
            "chats, n = 99,328",
            "VERL Karmarkar-Karp",
            "indexplan, balance",
        ),
        "DocumentWindows, 1e6 documents, to the first window, against Megatron's indices": against(
            "first_seconds",
            "windows",
            "documents, n = 1e6",
            "Megatron indices",
            "indexplan, windows",
        ),
        "LengthGrouped of 1e6 chats, padding": of("padding", "batches", CHATS),
        "LengthGrouped of 1e6 chats, with the first epoch, against transformers": against(
            "first_seconds", "batches", CHATS, GROUPED
        ),
        "LengthGrouped of 1e6 chats, an epoch, against transformers": against(
            "epoch_seconds", "batches", CHATS, GROUPED
        ),
        "neighbouring batches of similar length, correlation, the worst of all": lambda rows: max(
            abs(row["lag"])
            for need in ("batches", "budget")
            for row in kept.of(rows, need, who=OURS)
            if row["num_bins"] > 1000
        ),
    },
    binners.NAMES,
)

# What nodes download, compared with MosaicML Streaming's code.

SURE = 0.02
"""Downloads by which somebody is ahead, or variance: less is chance."""
SHARDED = "ShardShuffle"
NARROW = f"{SHARDED}, window 1"
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


def _in_16_nodes(rows: list[Row], how: str, who: str) -> Row:
    """Return what was found of ours in the case of the targets: 1e5 uneven shards, 16 nodes."""
    return kept.one(rows, "1e5 uneven shards", case="16 nodes", who=who, how=f", {how}")


def downloads(how: str, who: str = SHARDED) -> Measure:
    """Return a figure's measure: downloads."""
    return lambda rows: float(_in_16_nodes(rows, how, who)["times"])


def worst(key: str, best: Callable[[Iterable[float]], float], who: str = SHARDED) -> Measure:
    """Return a figure's measure: the worst over the plans that keep their lanes."""
    kinds = "drop", "pad", "carry", "carry, 40 sub-epochs"
    return lambda rows: best(_in_16_nodes(rows, how, who)[key] for how in kinds)


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
    {
        **{
            f"downloads under {how}": downloads(how)
            for how in ("drop", "pad", "carry", "carry, 40 sub-epochs")
        },
        **{
            f"downloads after a resume on 4 nodes, {rule}": downloads(f"{rule}, gone on")
            for rule in ("drop", "carry")
        },
        "downloads under spread, at its worst n": downloads("spread, at its worst n"),
        "live shards of a node": worst("live", max),
        "different shards in a global batch, the fewest, drop and carry": lambda rows: min(
            _in_16_nodes(rows, rule, SHARDED)["least"] for rule in ("drop", "carry")
        ),
        "different shards in a global batch, in the mean": worst("different", min),
        "window 1: downloads under drop": downloads("drop", NARROW),
        "window 1: downloads under spread, at its worst n": downloads(
            "spread, at its worst n", NARROW
        ),
        "window 1: live shards of a node": worst("live", max, NARROW),
        "window 1: different shards in a global batch, in the mean": worst(
            "different", min, NARROW
        ),
    },
)

# Plan files, and other ways to keep an order.

PEERS = {  # who: whether it has checks, many builders, any world size
    "indexplan, plan directory, order generated": ("yes", "yes", "yes"),
    "indexplan.export, a .npy for each of 8 ranks, generated": ("no", "yes", "no"),
    "np.save of int64, np.load(mmap_mode)": ("no", "no", "yes"),
    "safetensors, uint32, safe_open": ("no", "no", "yes"),
    "pickle of a list": ("no", "no", "yes"),
    "no file: indexplan.Shuffle computes it": ("-", "-", "yes"),
}
PLAN, _, NPY, *_ = PEERS
NODE_READS = "read from disk for 8 ranks of 4096, cold cache"


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


def _next_to_dd(case: str) -> Measure:
    def ratio(rows: list[Row]) -> float:
        dd, ours = (
            statistics.median(kept.one(rows, "measurements", case=name)["seconds"])
            for name in ("dd conv=fsync", case)
        )
        return dd / ours

    return ratio


def _node_reads(rows: list[Row]) -> float | None:
    # bytes that did not come from a disk cannot be counted, and pages that stay are not cold
    node = kept.one(rows, "measurements", case=NODE_READS)
    cold = node["read_bytes"] and not node["resident_pages"]
    return float(node["read_bytes"] / node["useful_bytes"]) if cold else None


def _grown_by_core(rows: list[Row]) -> float:
    found = kept.of(rows, "measurements")
    grown = max(max(row["grown_bytes"]) for row in found if "grown_bytes" in row)
    return float(grown / kept.one(rows, "plan")["cores"] / 2**20)


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
                Column("write_seconds", "s to write"),
                Column("open_seconds", "ms to open", times(1e3)),
                Column("held_bytes", "MB held", times(1e-6)),
                Column("us", "us per read"),
                Column(_fact(0), "checksums"),
                Column(_fact(1), "many builders"),
                Column(_fact(2), "any world size"),
            ),
            (("what", "{who}"),),
            align="lrrrrrl",
        ),
    ),
    {
        "a build against dd": _next_to_dd("build, all cores"),
        "verify on one core, against dd": _next_to_dd("verify, one core, its CPU time"),
        "a random read of 256, warm, by np.load's": lambda rows: (
            of("us", "alternatives", who=PLAN)(rows) / of("us", "alternatives", who=NPY)(rows)
        ),
        NODE_READS: _node_reads,
        "growth of a build per core": _grown_by_core,
    },
    rivals=False,
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

PAGES = {
    page.name: page
    for page in (PLANNING, TIMINGS, QUALITY, LOADING, ORDERS, BINS, SHARDS, PLAN_FILES, OF_TABLES)
}
