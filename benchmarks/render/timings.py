"""Costs of calls, mostly of this library, and of fresh processes: the page."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.render import rows as kept
from benchmarks.render.rows import Row
from benchmarks.render.tables import (
    IMAGES,
    INSTALL,
    Column,
    Figure,
    Page,
    Table,
    less,
    times,
)

TORCH = "torch DistributedSampler"
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
OURS = "indexplan PlanLoader", "indexplan PlanBatchSampler", "indexplan.Shuffle"
RIVALS = {
    "labels": (("question", "{who}, {case}"),),
    "ours": lambda _: [(name, "") for name in OURS],
}
TABLES = (
    Table("stretch", "A stretch of an epoch", "A contiguous interval.", PER_INDEX, ORDER),
    Table(
        "share",
        "One rank's share of 64, again and again",
        "`plan.indices`: batches of 256 of one rank of 64, so runs of 256 positions in strides.",
        PER_INDEX,
        ORDER,
    ),
    Table(
        "threads",
        "Threads",
        "`plan.indices(..., num_threads=...)`: one rank's share of 64, n = 1e9.",
        CALLS,
        QUESTION,
    ),
    Table("inverse", "The inverse", "`order.locate` of neighbours in the order.", PER_INDEX, ORDER),
    Table(
        "whole permutation",
        "Whole permutations",
        "All n at once as int64 in memory, on one thread: the one job that all can do. NumPy and "
        "torch redo it for every epoch, in every process, to read a slice. Who takes too long is "
        "not shown at large sizes.",
        (
            NS[0],
            NS[1]._replace(better=less, unit=" ns per index"),
            Column(_faster_than_torch, "faster than torch.randperm", "{:.2f}".format),
        ),
        (("who", "{who}"), ("n", "{case}")),
        align="lr",
        place="n = {case}",
        ours=lambda _: [("indexplan.Shuffle", "")],
        picture=f"![cost per index against size]({IMAGES}/cost_per_index.svg)",
    ),
    Table(
        "batch",
        "One batch",
        "`plan.batch`, batch size 256; rows name what differs from the first.",
        CALLS,
        QUESTION,
    ),
    Table(
        "stream",
        "A stream of batches",
        "`plan.batches`, batch size 256, one rank of 64, all kept in a list.",
        (
            Column("batches", "batches", "{:,}".format),
            Column("indices_per_second", "million indices per s, median", times(1e-6)),
            Column("batch_seconds", "us per batch, median", times(1e6)),
        ),
        (("plan", "{case}"),),
    ),
    Table("locate", "Where is a sample read?", "`plan.locate`.", CALLS, QUESTION),
    Table(
        "columns",
        "Columns",
        "The sha256 of a mapped file, and how much a spawned worker grows that gets it.",
        (
            Column("bytes_per_cpu_second", "MB per CPU second", times(1e-6)),
            Column("plain_per_cpu_second", "hashlib.sha256 of the same bytes", times(1e-6)),
            Column("ratio", "ratio", "{:.2f}".format),
            Column("grown_bytes", "worker, MB", times(1e-6), absent="-"),
        ),
        (("column", "{case}"),),
    ),
    Table(
        "sampler",
        "Torch samplers",
        "Batches of 256 as lists, one rank, after the first batch, before which the rivals shuffle "
        "and list the whole epoch.",
        AGAINST,
        place="{indices:,} indices",
        **RIVALS,
    ),
    Table(
        "loader",
        "DataLoaders",
        "A whole pass over samples that cost nothing, everything included.",
        AGAINST,
        place="{case}, {indices:,} indices",
        **RIVALS,
    ),
    Table("first", "First batches of loaders", "", CALLS, QUESTION),
    Table(
        "verify",
        "Verification",
        "`verify` checks a plan's arithmetic here, not its indices.",
        (
            CALLS[0],
            Column("seconds", "min, s"),
            Column("median_seconds", "median"),
        ),
        QUESTION,
    ),
    Table(
        "starts",
        "The first batch of a process",
        "Each number has its own processes. Cold is an empty folder for numba's cache.",
        (
            Column("seconds", "min, s"),
            Column("median_seconds", "median, s"),
            Column("process_seconds", "whole process, s"),
            Column("processes", "processes"),
        ),
        (("in a fresh process", "{case}"),),
    ),
    Table(
        "first calls",
        "",
        "",
        (
            Column("cold_seconds", "cold cache (compiles), ms", times(1e3)),
            Column("warm_seconds", "warm cache, ms", times(1e3)),
        ),
        (("first call", "{case}"),),
    ),
    Table(
        "growth",
        "Memory of all questions",
        "Time, and growth of the process, after a first small job, so without imports. Where a "
        "virtual machine must first be given memory, the time includes that, user CPU does not.",
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
)


def _against_permutations(table: str) -> Callable[[list[Row]], float]:
    """Return how much less an index costs than the fastest rival's, of its whole permutation."""

    def ratio(rows: list[Row]) -> float:
        whole = kept.of(rows, "whole permutation", case=LARGEST)
        rivals = [row["ns"] for row in whole if not row["who"].startswith("indexplan")]
        ours = [
            row["ns"]
            for row in kept.of(rows, table)
            if row["case"].startswith(("Shuffle, n = 1e9", "Shuffle, n = 1e12"))
        ]
        return float(min(rivals) / max(ours))

    return ratio


def _blocks(table: str) -> Callable[[list[Row]], float]:
    return lambda rows: max(
        _to_shuffle(row, rows)
        for row in kept.of(rows, table)
        if row["case"].startswith("BlockShuffle")
    )


def _threads(rows: list[Row]) -> float:
    names = (f"{num}, a new array of 64 MiB" for num in ("1 thread", "2 threads"))
    one, two = (kept.one(rows, "threads", case=name)["median_seconds"] for name in names)
    return float(one / two)


def _whole_speedup(rows: list[Row]) -> float:
    ours, rival = (
        kept.one(rows, "whole permutation", case=LARGEST, who=who)["ns"]
        for who in ("indexplan.Shuffle", "torch.randperm")
    )
    return float(rival / ours)


def _batch_against_lists(rows: list[Row]) -> float:
    batches = [row for row in kept.of(rows, "batch") if not row["case"].startswith("first")]
    slowest = max(row["median_seconds"] / row["indices"] for row in batches)
    theirs = kept.one(rows, "sampler", who=TORCH)
    return float(slowest / (theirs["median_seconds"] / theirs["indices"]))


def _flatness(rows: list[Row]) -> float:
    """Return the dearest batch of 256 by the cheapest, over sizes, worlds and steps."""
    batches = kept.of(rows, "batch")
    costs = [row["seconds"] for row in batches if not row["case"].startswith(("rem", "first"))]
    return float(max(costs) / min(costs))


def _medians(table: str, ours: str, case: str = "") -> Callable[[list[Row]], float]:
    return lambda rows: float(
        kept.one(rows, table, case=case, who=TORCH)["median_seconds"]
        / kept.one(rows, table, case=case, who=ours)["median_seconds"]
    )


def _flat(words: str) -> Callable[[list[Row]], float]:
    def ratio(rows: list[Row]) -> float:
        found = [row["median_seconds"] for row in kept.of(rows, "first") if words in row["case"]]
        return float(max(found) / min(found))

    return ratio


def _growth(name: str) -> Callable[[list[Row]], float | None]:
    def grown(rows: list[Row]) -> float | None:
        found = [row for row in kept.of(rows, "growth") if row["who"].startswith(name)]
        return sum(row["peak_bytes"] / 1e6 for row in found) if found else None

    return grown


def _starts(case: str) -> Callable[[list[Row]], float]:
    return lambda rows: float(
        kept.one(rows, "starts", case=case)["median_seconds"]
        / kept.one(rows, "starts", case="import numpy")["median_seconds"]
    )


TIMINGS = Page(
    "timings",
    "Costs of calls",
    "One thread unless said otherwise. Times are medians; ratios are of minima, since noise only "
    "adds time.",
    TABLES,
    (
        Figure(
            "an index of a stretch, against the fastest whole permutation's at 1e8",
            15,
            "times faster",
            _against_permutations("stretch"),
            least=True,
        ),
        Figure(
            "an index of a rank's share, against the fastest whole permutation's at 1e8",
            15,
            "times faster",
            _against_permutations("share"),
            least=True,
        ),
        Figure(
            "the whole permutation, against torch.randperm at 1e8",
            10,
            "times faster",
            _whole_speedup,
            least=True,
        ),
        Figure(
            "two threads against one, into memory that is there, taking turns",
            1.8,
            "times faster",
            lambda rows: kept.one(rows, "threads", case="2 threads, 64 MiB that are there")[
                "ratio"
            ],
            least=True,
            loss="The second core of a virtual machine is not always fully there.",
        ),
        Figure(
            "two threads against one, as a new array of 64 MiB",
            1.8,
            "times faster",
            _threads,
            least=True,
            loss=(
                "The system zeroes new pages at the speed of the memory, which one thread uses up: "
                "here two threads fill 64 MiB no faster than one."
            ),
        ),
        Figure(
            "BlockShuffle, a stretch, by Shuffle's, worst of four shapes",
            3,
            "times",
            _blocks("stretch"),
        ),
        Figure(
            "BlockShuffle, a rank's share, by Shuffle's, worst of four shapes",
            3,
            "times",
            _blocks("share"),
        ),
        Figure(
            "plan.batch of 256, the slowest, by a batch of torch's sampler as a list",
            1,
            "times",
            _batch_against_lists,
        ),
        Figure(
            "cost of a batch flat in n, world and step: dearest by cheapest",
            1.25,
            "times",
            _flatness,
        ),
        Figure(
            "batches of 256 as lists, PlanBatchSampler against DistributedSampler",
            3,
            "times faster",
            _medians("sampler", "indexplan PlanBatchSampler"),
            least=True,
        ),
        Figure(
            "a pass over PlanLoader against torch's sampler, trivial dataset, 0 workers",
            0.95,
            "times as fast",
            _medians("loader", "indexplan PlanLoader", case="0 workers"),
            least=True,
        ),
        Figure(
            "a new loader's first batch, 1e8 to 1e12: dearest by cheapest",
            1.25,
            "times",
            _flat("PlanLoader"),
        ),
        Figure("resume at any step of 1e12: dearest by cheapest", 1.25, "times", _flat("resume")),
        Figure(
            "import indexplan, by NumPy's own import",
            2.5,
            "times",
            _starts("import indexplan, NumPy's import included"),
        ),
        Figure(
            "import to first batch, warm cache, by NumPy's own import",
            10,
            "times",
            _starts("import to first batch of 1e12, warm cache"),
        ),
        Figure(
            "growth by a plan of 1e12 and all questions to it", 2, "MB", _growth("indexplan.Plan")
        ),
        Figure(
            "growth by a PlanBatchSampler of 1e12 and 1,000 of its batches",
            2,
            "MB",
            _growth("indexplan PlanBatchSampler"),
        ),
    ),
    f"{INSTALL}\n",
)
