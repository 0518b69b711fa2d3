"""Orders that deal samples, compared with other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.contenders.dealers import DEALERS, MIXTURES, NAMES, NEEDS
from benchmarks.render import losing
from benchmarks.render.page import Block
from benchmarks.render.writer import (
    INSTALL,
    Figure,
    number,
    power,
    section,
    size,
    tabular,
    time,
    who,
)

OURS = DEALERS[0].name
Record = dict[str, Any]


class Column(NamedTuple):
    """A column of numbers, of which less is better."""

    key: str
    title: str
    show: Callable[[float], str]
    same_below: float = 0
    """Up to here nobody is ahead."""


COLUMNS = (
    Column("first_seconds", "to the first batch", time),
    Column("cold_seconds", "the first time", time),
    Column("ns", "ns per index", number),
    Column("first_bytes", "memory", size, 2**20),  # less are pages of the interpreter
    Column("middle_us", "a batch of the middle", lambda us: time(us / 1e6)),
    Column("deviation", "worst deviation", lambda reads: f"{reads:.6g}"),
    Column("rank_bias", "rank bias", lambda bias: f"{bias:.3g}", 4),
)
OF_MIXTURES = "deviation", "rank_bias"
MEASURED = {
    "to the first batch": (
        "from weights, labels or sizes alone, with all that is built for it; where that takes less "
        "than 0.1 s, the median of several in one process, each of other sizes, in memory that it "
        "has had before"
    ),
    "the first time": "the same, the first of them: in new memory, and with empty caches",
    "memory": "how much the process grows by until then, at most",
    "ns per index": (
        "a whole epoch in bulk after that, with what each epoch needs anew; the process keeps "
        "memory that it has freed"
    ),
    "a batch of the middle": (
        "where a run resumes, once built; a fresh process also takes the time to the first batch"
    ),
}
WORDS = {
    "weights": (
        "Exponential weights, a thousandth of them 0; an epoch of as many reads as samples."
    ),
    "repeat factors": (
        "Images of 1 to 7 of 1,203 categories, by Zipf. Categories in less than a thousandth of "
        "the images have factors, worked out before the first batch."
    ),
    "equal classes": "10,000 classes, the largest of about 1% of the samples.",
    "class batches": "10,000 classes of 100 samples; ns are per sample.",
    "mixture": (
        "3 sources have weights 7, 2 and 1; those of 30 are drawn, whole parts of 65,536, so that "
        "nobody rounds. An epoch has 10,000,000 reads. The worst deviation is how many reads a "
        "source was from its share at any of the first 1,000,000 places. Rank bias is how unevenly "
        "2, 4, 5, 8, 10 or 16 ranks that take them in turn get the sources, in standard deviations "
        "of what independent draws would: up to 4 may be chance."
    ),
    "first exhausted": "Weights 7, 2 and 1.",
    "all exhausted": "Weights 7, 2 and 1; the smallest is read to its end once.",
    "repeats": "Each sample three times, on different ranks, in an epoch of a third of ImageNet.",
}


def records(data: Any, need: str, n: int = 0, num: int = 0, name: str = OURS) -> list[Record]:
    """Return what was found, of one dealer."""
    return [
        record
        for record in data["orders"]["records"]
        if record["need"] == need and record["dealer"] == name
        if n in {0, record["n"]} and num in {0, record["num"]}
    ]


def of(key: str, need: str, n: int = 0, num: int = 0, factor: float = 1) -> Callable[[Any], float]:
    """Return a figure's measure: one number of ours."""
    return lambda data: next(iter(records(data, need, n, num)))[key] * factor


def against(key: str, rival: str, *case: Any, **more: Any) -> Callable[[Any], float]:
    """Return a figure's measure: a rival's number by ours."""
    return lambda data: float(
        next(iter(records(data, *case, **more, name=rival)))[key] / of(key, *case, **more)(data)
    )


def _of_a_billion(data: Any) -> float:
    found = next(iter(records(data, "weights", 10**8)))
    return float((found["first_bytes"] / found["n"] - 8) * 1e9 / 1e9)


def _worst(data: Any, measure: Callable[[Record], float]) -> float:
    ours = [record for record in data["orders"]["records"] if record["dealer"] == OURS]
    return max(measure(record) for record in ours if "middle_us" in record)


TORCH, GRAIN = "torch WeightedRandomSampler", "Grain mix"
FIGURES = (
    Figure(
        "Weighted, 1e7 samples, an index, against torch",
        10,
        "times faster",
        against("ns", TORCH, "weights", 10**7),
        least=True,
    ),
    Figure(
        "Weighted, 1e7 samples, to the first batch, against torch",
        10,
        "times sooner",
        against("first_seconds", TORCH, "weights", 10**7),
        least=True,
    ),
    Figure("Weighted, memory beside 1e9 weights, from that for 1e8", 12, "GB", _of_a_billion),
    Figure(
        "Mixture of 30 shuffled sources, an index, against Megatron's blending, not shuffled",
        0.5,
        "times as fast",
        against("ns", "Megatron blending", "mixture", num=30),
        least=True,
    ),
    Figure(
        "Mixture of 30 shuffled sources, an index, against Grain's mix",
        20,
        "times faster",
        against("ns", GRAIN, "mixture", num=30),
        least=True,
    ),
    Figure(
        "Mixture of 30 sources, to the first batch, against Grain's mix",
        1,
        "times sooner",
        against("first_seconds", GRAIN, "mixture", num=30),
        least=True,
    ),
    Figure(
        "Mixture of 30 sources, a batch of the middle, against Grain's mix",
        5,
        "times faster",
        against("middle_us", GRAIN, "mixture", num=30),
        least=True,
    ),
    Figure(
        "ClassBatches, an index, against MPerClassSampler",
        40,
        "times faster",
        against("ns", "pytorch-metric-learning MPerClassSampler", "class batches"),
        least=True,
    ),
    Figure(
        "Mixtures, a source's distance from its share, anywhere",
        3.36,
        "reads",
        lambda data: _worst(data, lambda record: record.get("deviation", 0)),
        below=True,
    ),
    Figure(
        "Mixtures, how unevenly ranks get the sources",
        4,
        "standard deviations of chance",
        lambda data: _worst(data, lambda record: record.get("rank_bias", 0)),
        below=True,
    ),
    Figure(
        "a batch of the middle against the first, once built, the worst of all",
        1.5,
        "times as long",
        lambda data: _worst(data, lambda record: record["middle_us"] / record["start_us"]),
    ),
)


def losses(data: Any) -> list[losing.Loss]:
    """Return every cell in which a rival is ahead of ours in the same case."""
    found = []
    for record in data["orders"]["records"]:
        ours = records(data, record["need"], record["n"], record["num"])[:1]
        if NAMES[record["dealer"]].ours or "stop" in record:
            continue
        for mine in ours:
            found += [
                losing.Loss(
                    f"orders: {column.key}",
                    column.title[0].upper() + column.title[1:],
                    record["dealer"],
                    f"{NEEDS[record['need']]}, {case_of(record)}",
                    column.show(record[column.key]),
                    column.show(mine[column.key]),
                )
                for column in COLUMNS
                if column.key in record
                and record[column.key] < mine[column.key]
                and mine[column.key] > column.same_below
            ]
    return found


def case_of(record: Record) -> str:
    """Say how large a case is."""
    sources = f", {record['num']} sources" * (record["need"] in MIXTURES)
    return f"n = {power(record['n'])}{sources}"


def cell(column: Column, record: Record) -> str:
    """Write one number of a dealer."""
    if column.key in record:
        return column.show(record[column.key])
    return "cannot" if column.key == "middle_us" else ""


def table(data: Any, need: str) -> list[Block]:
    """Return the table of a need, the reason below of whoever could not answer."""
    columns = [each for each in COLUMNS if need in MIXTURES or each.key not in OF_MIXTURES]
    rows: list[list[Any]] = []
    stops: list[Block] = []
    for record in records_of(data, need):
        ours = next(iter(records(data, need, record["n"], record["num"])), {})
        start = [case_of(record), record["dealer"]]
        if "stop" in record:
            rows.append([*start, "error", *[""] * len(columns)])
            stops.append(f"{record['dealer']}, {case_of(record)}: `{record['stop']}`")
            continue
        ratio = number(record["ns"] / ours["ns"]) if ours else ""
        cells = [cell(column, record) for column in columns]
        rows.append([*start, *cells[:3], ratio, *cells[3:]])
    titles = [column.title for column in columns]
    header = " | ".join(["case", "who", *titles[:3], "x ours", *titles[3:]])
    return tabular(header, rows, "llr") + stops


def records_of(data: Any, need: str) -> list[Record]:
    """Return all that was found for a need."""
    return [record for record in data["orders"]["records"] if record["need"] == need]


INSTALLED = " && ".join(
    [INSTALL, *(dealer.cure for dealer in DEALERS if "--no-deps" in dealer.cure)]
)


def blocks(data: Any) -> list[Block]:
    """Return the page's blocks."""
    found = data["orders"]
    runs = max(record.get("runs", 1) for record in found["records"])
    words = (
        f"A number is the median of up to {runs} processes, fewer where they take long, each of "
        "one library, which ran on few samples before. Times are of one thread's CPU."
    )
    parts = section("What is measured", words, tabular("column | is", MEASURED.items(), "l"))
    parts += who(found["dealers"])
    for need, title in NEEDS.items():
        if records_of(data, need):
            parts += section(title, WORDS[need], table(data, need))
    return parts
