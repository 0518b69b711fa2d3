"""Orders that deal samples, compared with other libraries: the page."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders.dealers import DEALERS, MIXTURES, NAMES, NEEDS
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
    number,
    size,
    time,
    who,
)

OURS = DEALERS[0].name


def _by_ours(row: Row, rows: list[Row]) -> float | str:
    ours = kept.of(rows, row["table"], case=row["case"], who=OURS)
    return row["ns"] / ours[0]["ns"] if ours else ""


def _above(least: float) -> Callable[[float, float], bool]:
    """Return whether a number is below ours, where ours is above what is no matter."""
    return lambda theirs, ours: theirs < ours and ours > least


COLUMNS = (
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
TABLES = [
    Table(
        need,
        title,
        WORDS[need],
        COLUMNS + OF_MIXTURES * (need in MIXTURES),
        align="llr",
        place=title + ", {case}",
    )
    for need, title in NEEDS.items()
]


def of(key: str, need: str, case: str, name: str = OURS) -> Callable[[list[Row]], float]:
    """Return a figure's measure: one number of a dealer."""
    return lambda rows: float(kept.one(rows, need, case=case, who=name)[key])


def against(key: str, rival: str, need: str, case: str) -> Callable[[list[Row]], float]:
    """Return a figure's measure: a rival's number by ours."""
    return lambda rows: of(key, need, case, rival)(rows) / of(key, need, case)(rows)


def _memory_of_a_billion(rows: list[Row]) -> float:
    return (of("first_bytes", "weights", "n = 1e8")(rows) / 10**8 - 8) * 1e9 / 1e9


def _worst(rows: list[Row], measure: Callable[[Row], float]) -> float:
    ours = [row for row in rows if row.get("who") == OURS and "start_seconds" in row]
    return max(map(measure, ours))


TORCH, GRAIN = "torch WeightedRandomSampler", "Grain mix"
CURES = dict.fromkeys(dealer.cure for dealer in DEALERS if "--no-deps" in dealer.cure)
ORDERS = Page(
    "orders",
    "Weights, classes and mixtures",
    "Orders that repeat samples, and those of several datasets, beside other libraries.",
    (
        lambda _: means(
            "What is measured",
            "A number is the median of up to 5 processes, fewer where they take long, each of one "
            "library, which ran on few samples before. Times are of one thread's CPU.",
            "column | is",
            MEASURED,
        ),
        who({name: entry.note for name, entry in NAMES.items()}),
        *TABLES,
    ),
    (
        Figure(
            "Weighted, 1e7 samples, an index, against torch",
            10,
            "times faster",
            against("ns", TORCH, "weights", "n = 1e7"),
            least=True,
        ),
        Figure(
            "Weighted, 1e7 samples, to the first batch, against torch",
            10,
            "times sooner",
            against("first_seconds", TORCH, "weights", "n = 1e7"),
            least=True,
        ),
        Figure(
            "Weighted, memory beside 1e9 weights, from that for 1e8", 12, "GB", _memory_of_a_billion
        ),
        Figure(
            "Mixture of 30 shuffled sources, an index, against Megatron's blending, not shuffled",
            0.5,
            "times as fast",
            against("ns", "Megatron blending", "mixture", "n = 30,000,000, 30 sources"),
            least=True,
        ),
        Figure(
            "Mixture of 30 shuffled sources, an index, against Grain's mix",
            20,
            "times faster",
            against("ns", GRAIN, "mixture", "n = 30,000,000, 30 sources"),
            least=True,
        ),
        Figure(
            "Mixture of 30 sources, to the first batch, against Grain's mix",
            1,
            "times sooner",
            against("first_seconds", GRAIN, "mixture", "n = 30,000,000, 30 sources"),
            least=True,
        ),
        Figure(
            "Mixture of 30 sources, a batch of the middle, against Grain's mix",
            5,
            "times faster",
            against("middle_seconds", GRAIN, "mixture", "n = 30,000,000, 30 sources"),
            least=True,
        ),
        Figure(
            "ClassBatches, an index, against MPerClassSampler",
            40,
            "times faster",
            against("ns", "pytorch-metric-learning MPerClassSampler", "class batches", "n = 1e6"),
            least=True,
        ),
        Figure(
            "Mixtures, a source's distance from its share, anywhere",
            3.36,
            "reads",
            lambda rows: _worst(rows, lambda row: row.get("deviation", 0)),
            below=True,
        ),
        Figure(
            "Mixtures, how unevenly ranks get the sources",
            4,
            "standard deviations of chance",
            lambda rows: _worst(rows, lambda row: row.get("rank_bias", 0)),
            below=True,
        ),
        Figure(
            "a batch of the middle against the first, once built, the worst of all",
            1.5,
            "times as long",
            lambda rows: _worst(rows, lambda row: row["middle_seconds"] / row["start_seconds"]),
        ),
    ),
    " && ".join([INSTALL, *CURES]) + "\n",
)
