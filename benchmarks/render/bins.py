"""Bins of samples by their lengths, compared with other libraries: the page."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders.binners import BINNERS, NAMES, NEEDS
from benchmarks.measure.lengths import DRAWN, REAL
from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import (
    INSTALL,
    Column,
    Figure,
    Page,
    Table,
    less,
    means,
    more,
    number,
    table,
    time,
    who,
)

OURS = BINNERS[0].name


def nearer(one: float, other: float) -> bool:
    """Return whether one is nearer to 0, by more than chance is: 5 deviations of 650 bins."""
    return abs(one) < abs(other) - 0.2


def small(one: float, other: float) -> bool:
    """Return whether one is below another by more than chance, which is above a shuffle's."""
    return one < 0.9 * other and other > 1


COLUMNS = {
    str(column.key): column
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


def _beside(row: Row) -> list[tuple[str, str]]:
    """Return whom a binner is compared with."""
    return [(name, "") for name in dict.fromkeys((NAMES[row["who"]].beside, OURS))]


TABLES = [
    Table(
        need,
        title,
        WORDS[need],
        tuple(COLUMNS[key] for key in SHOWN[need]),
        (("lengths", "{case}"), ("who", "{who}")),
        ours=_beside,
    )
    for need, title in NEEDS.items()
]


def of(key: str, need: str, case: str, name: str = OURS) -> Callable[[list[Row]], float]:
    """Return a figure's measure: one number of a binner."""
    return lambda rows: float(kept.one(rows, need, case=case, who=name)[key])


def against(
    key: str, need: str, case: str, rival: str, ours: str = OURS
) -> Callable[[list[Row]], float]:
    """Return a figure's measure: a rival's number by ours."""
    return lambda rows: of(key, need, case, rival)(rows) / of(key, need, case, ours)(rows)


def lengths(_: list[Row]) -> list[str]:
    """Return the table of which lengths there are."""
    drawn = {kind: str(of.__doc__).removesuffix(".") for kind, of in DRAWN.items()}
    lines = [(kind, "drawn", words) for kind, words in drawn.items()]
    lines += [(kind, "real", words) for kind, words in REAL.items()]
    words = "Real ones are of packages: see benchmarks/measure/lengths.py."
    return ["## Lengths", words, table(("lengths", "are", "of"), lines, "l")]


CURES = dict.fromkeys(binner.cure for binner in BINNERS if "--no-deps" in binner.cure)
BINS = Page(
    "bins",
    "Bins of samples",
    "Packing, length grouping, balance and windows, beside other libraries.",
    (
        lambda _: means(
            "What is measured",
            "A number is of one process, which made bins of few samples before; times are of its "
            "CPU.",
            "column | is",
            MEASURED,
        ),
        who({name: entry.note for name, entry in NAMES.items()}),
        lengths,
        *TABLES,
    ),
    (
        Figure(
            "Packed, 1e6 chats, fill",
            0.999,
            "of all",
            of("fill", "packing", "chats, n = 1e6"),
            least=True,
        ),
        Figure(
            "Packed, 1e6 chats, to build, against axolotl's multipack",
            50,
            "times sooner",
            against("build_seconds", "packing", "chats, n = 1e6", "axolotl multipack"),
            least=True,
        ),
        Figure(
            "Packed, 1e6 chats, an epoch, against axolotl's multipack",
            10,
            "times faster",
            against("epoch_seconds", "packing", "chats, n = 1e6", "axolotl multipack"),
            least=True,
        ),
        Figure(
            "Packed, variance of global batches by that of random ones, real lengths, the worst",
            1,
            "",
            lambda rows: max(
                row["variance"]
                for row in kept.of(rows, "packing", who=OURS)
                if row["case"].partition(",")[0] in REAL
            ),
        ),
        Figure(
            "Balance of 1,024 samples, a step, against VERL's",
            5,
            "times faster",
            against(
                "step_seconds",
                "balance",
                "chats, n = 99,328",
                "VERL Karmarkar-Karp",
                "indexplan, balance",
            ),
            least=True,
        ),
        Figure(
            "DocumentWindows, 1e6 documents, to the first window, against Megatron's indices",
            3,
            "times sooner",
            against(
                "first_seconds",
                "windows",
                "documents, n = 1e6",
                "Megatron indices",
                "indexplan, windows",
            ),
            least=True,
        ),
        Figure(
            "LengthGrouped of 1e6 chats, padding",
            0.03,
            "of all",
            of("padding", "batches", "chats, n = 1e6"),
        ),
        Figure(
            "LengthGrouped of 1e6 chats, with the first epoch, against transformers",
            5,
            "times sooner",
            against(
                "first_seconds", "batches", "chats, n = 1e6", "transformers LengthGroupedSampler"
            ),
            least=True,
        ),
        Figure(
            "LengthGrouped of 1e6 chats, an epoch, against transformers",
            10,
            "times faster",
            against(
                "epoch_seconds", "batches", "chats, n = 1e6", "transformers LengthGroupedSampler"
            ),
            least=True,
        ),
        Figure(
            "neighbouring batches of similar length, correlation, the worst of all",
            0.05,
            "",
            lambda rows: max(
                abs(row["lag"])
                for need in ("batches", "budget")
                for row in kept.of(rows, need, who=OURS)
                if row["num_bins"] > 1000
            ),
        ),
    ),
    " && ".join([INSTALL, *CURES]) + "\n",
)
