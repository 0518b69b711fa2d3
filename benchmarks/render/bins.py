"""Bins of samples by their lengths, compared with other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.contenders.binners import BINNERS, DRAWN, NAMES, NEEDS
from benchmarks.measure.real_lengths import KINDS
from benchmarks.render import losing
from benchmarks.render.page import Block
from benchmarks.render.writer import INSTALL, Figure, number, power, section, tabular, time, who

OURS = BINNERS[0].name
Record = dict[str, Any]


class Column(NamedTuple):
    """A column of numbers; `better` says which of two is ahead, None where that is no matter."""

    key: str
    title: str
    show: Callable[[float], str]
    better: Callable[[float, float], bool] | None = None


def less(one: float, other: float) -> bool:
    """Return whether one is below another."""
    return one < other


def more(one: float, other: float) -> bool:
    """Return whether one is above another."""
    return one > other


def nearer(one: float, other: float) -> bool:
    """Return whether one is nearer to 0, by more than chance is: 5 deviations of 650 bins."""
    return abs(one) < abs(other) - 0.2


def small(one: float, other: float) -> bool:
    """Return whether one is below another by more than chance, which is above a shuffle's."""
    return one < 0.9 * other and other > 1


COLUMNS = {
    column.key: column
    for column in (
        Column("num_bins", "bins", lambda n: f"{n:,.0f}"),
        Column("fill", "fill", "{:.4f}".format, more),
        Column("padding", "padding", "{:.1%}".format, less),
        Column("fullest", "fullest / budget", "{:.3f}".format),
        Column("build_seconds", "to build", time),
        Column("first_seconds", "with the first epoch", time, less),
        Column("epoch_seconds", "an epoch", time, less),
        Column("lag", "lag-1", "{:+.2f}".format, nearer),
        Column("variance", "variance / i.i.d.", number, small),
        Column("again", "pairs again", "{:.1e}".format, less),
        Column("step_seconds", "a step", time, less),
        Column("uneven", "dearest / mean", "{:.3f}".format, less),
        Column("as_dealt", "as dealt", "{:.3f}".format),
        Column("bound", "at best", "{:.3f}".format),
        Column("window_seconds", "a window", time, less),
        Column("num_windows", "windows", lambda n: f"{n:,.0f}"),
    )
}
TIMES = ("build_seconds", "first_seconds", "epoch_seconds")
SHOWN = {
    "packing": ("num_bins", "fill", *TIMES, "lag", "variance", "again"),
    "batches": ("padding", *TIMES, "lag", "variance", "again"),
    "budget": ("num_bins", "padding", "fullest", *TIMES, "lag", "again"),
    "balance": ("uneven", "as_dealt", "bound", "step_seconds"),
    "windows": ("num_windows", *TIMES, "window_seconds"),
}
MEASURED = {
    "to build": "what all epochs share, from the lengths",
    "with the first epoch": "that, and all bins of one epoch",
    "an epoch": "all bins of a later one",
    "fill": "tokens by what all bins could hold",
    "lag-1": "the correlation of the mean lengths of neighbouring bins, as they are dealt",
    "variance / i.i.d.": (
        "the variance of the mean length of global batches of many bins picked at random, by that "
        "of batches of as many samples picked one by one; batches of 32 samples of one length "
        "come to 32"
    ),
    "pairs again": (
        "how often a sample and one that shares its bin share one again in the next epoch"
    ),
}
WORDS = {
    "packing": "A bin holds at most 4,096 tokens, 8,192 of documents and pages; the rest is cut.",
    "batches": "Padding is to the longest of a batch.",
    "budget": (
        "The longest sample of a batch times its number of samples is within the budget: 16,384 "
        "tokens, or 80 s of speech. Batches of more than 8 samples have a multiple of 8, but for "
        "Lhotse. A fullest batch above 1 is above the budget."
    ),
    "balance": (
        "Steps of 32 samples for each of 32 ranks, of speech 4 for each of 16; a sample costs "
        "24,576 for each token and 1 for its square. All ranks get as many samples."
    ),
    "windows": "Windows of 4,096 tokens and one more; an epoch is until its first window.",
}


def records(data: Any, need: str) -> list[Record]:
    """Return all that was found for a need."""
    return [record for record in data["bins"]["records"] if record["need"] == need]


def found_of(data: Any, need: str, kind: str, name: str = OURS, n: int = 0) -> Record:
    """Return what was found of one binner in one case."""
    return next(
        record
        for record in records(data, need)
        if (record["kind"], record["binner"]) == (kind, name) and n in {0, record["n"]}
    )


def of(key: str, *case: Any) -> Callable[[Any], float]:
    """Return a figure's measure: one number of ours."""
    return lambda data: float(found_of(data, *case)[key])


def against(
    key: str, need: str, kind: str, rival: str, ours: str = OURS, n: int = 0
) -> Callable[[Any], float]:
    """Return a figure's measure: a rival's number by ours."""
    return lambda data: float(
        found_of(data, need, kind, rival, n)[key] / found_of(data, need, kind, ours, n)[key]
    )


FIGURES = (
    Figure(
        "Packed, 1e6 chats, fill",
        0.999,
        "of all",
        of("fill", "packing", "chats", OURS, 10**6),
        least=True,
    ),
    Figure(
        "Packed, 1e6 chats, to build, against axolotl's multipack",
        50,
        "times sooner",
        against("build_seconds", "packing", "chats", "axolotl multipack", n=10**6),
        least=True,
    ),
    Figure(
        "Packed, 1e6 chats, an epoch, against axolotl's multipack",
        10,
        "times faster",
        against("epoch_seconds", "packing", "chats", "axolotl multipack", n=10**6),
        least=True,
    ),
    Figure(
        "Packed, variance of global batches by that of random ones, real lengths, the worst",
        1,
        "",
        lambda data: max(
            record["variance"]
            for record in records(data, "packing")
            if record["binner"] == OURS and record["kind"] in KINDS
        ),
    ),
    Figure(
        "Balance of 1,024 samples, a step, against VERL's",
        5,
        "times faster",
        against("step_seconds", "balance", "chats", "VERL Karmarkar-Karp", "indexplan, balance"),
        least=True,
    ),
    Figure(
        "DocumentWindows, 1e6 documents, to the first window, against Megatron's indices",
        3,
        "times sooner",
        against("first_seconds", "windows", "documents", "Megatron indices", "indexplan, windows"),
        least=True,
    ),
    Figure(
        "LengthGrouped of 1e6 chats, padding", 0.03, "of all", of("padding", "batches", "chats")
    ),
    Figure(
        "LengthGrouped of 1e6 chats, with the first epoch, against transformers",
        5,
        "times sooner",
        against("first_seconds", "batches", "chats", "transformers LengthGroupedSampler"),
        least=True,
    ),
    Figure(
        "LengthGrouped of 1e6 chats, an epoch, against transformers",
        10,
        "times faster",
        against("epoch_seconds", "batches", "chats", "transformers LengthGroupedSampler"),
        least=True,
    ),
    Figure(
        "neighbouring batches of similar length, correlation, the worst of all",
        0.05,
        "",
        lambda data: max(
            abs(record["lag"])
            for need in ("batches", "budget")
            for record in records(data, need)
            if record["binner"] == OURS and record["num_bins"] > 1000
        ),
    ),
)


def case_of(record: Record) -> str:
    """Say what a case is of."""
    return f"{record['kind']}, n = {power(record['n'])}"


def losses(data: Any) -> list[losing.Loss]:
    """Return every cell in which a rival is ahead of ours in the same case."""
    found = []
    for record in data["bins"]["records"]:
        entry, need = NAMES[record["binner"]], record["need"]
        mine = [
            each
            for each in records(data, need)
            if each["binner"] in {entry.beside, OURS} and each["kind"] == record["kind"]
            if each["n"] == record["n"]
        ]
        if entry.ours or not mine:
            continue
        ours = min(mine, key=lambda each: each["binner"] != entry.beside)
        for column in (COLUMNS[key] for key in SHOWN[need]):
            theirs, own = record[column.key], ours[column.key]
            if column.better and column.better(theirs, own):
                title = column.title[0].upper() + column.title[1:]
                shown = column.show(theirs), column.show(own)
                row = entry.name, case_of(record)
                loss = losing.Loss(f"bins: {column.key}", title, *row, *shown)
                found.append(loss)
    return found


def table(data: Any, need: str) -> list[Block]:
    """Return the table of a need."""
    columns = [COLUMNS[key] for key in SHOWN[need]]
    rows = [
        [
            case_of(record),
            record["binner"],
            *(column.show(record[column.key]) for column in columns),
        ]
        for record in records(data, need)
    ]
    header = " | ".join(["lengths", "who", *(column.title for column in columns)])
    return tabular(header, rows, "llr")


def lengths_of() -> list[Block]:
    """Return the table of which lengths there are."""
    rows = [
        (kind, source, " ".join(str(of.__doc__).split()).removesuffix("."))
        for source, kinds in {"drawn": DRAWN, "real": KINDS}.items()
        for kind, of in kinds.items()
    ]
    return tabular("lengths | are | of", rows, "l")


CURES = dict.fromkeys(binner.cure for binner in BINNERS if "--no-deps" in binner.cure)
INSTALLED = " && ".join([INSTALL, *CURES])
ABOUT = "A number is of one process, which made bins of few samples before; times are of its CPU."


def blocks(data: Any) -> list[Block]:
    """Return the page's blocks."""
    parts = section("What is measured", ABOUT, tabular("column | is", MEASURED.items(), "l"))
    parts += who(data["bins"]["binners"])
    words = "Real ones are of packages: see benchmarks/measure/real_lengths.py."
    parts += section("Lengths", words, lengths_of())
    for need, title in NEEDS.items():
        if records(data, need):
            parts += section(title, WORDS[need], table(data, need))
    return parts
