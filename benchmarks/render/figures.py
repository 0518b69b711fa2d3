"""The figures that the library aims at, and how they are taken from a run."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders.planners import OURS
from benchmarks.render.results import Results, Row
from benchmarks.render.writer import Figure


def _shuffles(results: Results, table: str) -> list[Row]:
    return [results.row(table, f"Shuffle, n = {n}") for n in ("1e9", "1e12")]


def _worst_ns(table: str) -> Callable[[Results], float]:
    return lambda results: max(row.ns() for row in _shuffles(results, table))


def _worst_block_ns(results: Results, table: str) -> float:
    return max(row.ns() for row in results.tables[table] if row.name.startswith("BlockShuffle"))


def _speedup(results: Results) -> float:
    rivals = [
        row
        for row in results.tables["whole permutation"]
        if row.facts["n"] == results.largest() and not row.name.startswith("indexplan")
    ]
    slowest = max(row.least() for row in _shuffles(results, "share"))
    return min(row.least() for row in rivals) / slowest


def _against_torch(question: str, key: str) -> Callable[[Results], float]:
    def ratio(results: Results) -> float:
        theirs, ours = (
            results.asked(question, name, 10**8) for name in ("torch DistributedSampler", OURS)
        )
        # memory is counted in pages: no growth is at most one
        return float(theirs[key]) / max(ours[key], 4096 if key == "peak_bytes" else 0)

    return ratio


def _resume_flatness(results: Results) -> float:
    large, small = (results.asked("resume", OURS, n)["seconds"] for n in (10**12, 10**6))
    return float(large) / float(small)


def _threads(results: Results) -> float:
    names = (f"{num}, a new array of 64 MiB" for num in ("1 thread", "2 threads"))
    one, two = (results.row("threads", name) for name in names)
    return one.median / two.median


def _whole_speedup(results: Results) -> float:
    ours, rival = (
        results.rival(name, results.largest()) for name in ("indexplan.Shuffle", "torch.randperm")
    )
    return rival.least() / ours.least()


def _slowest_batch(results: Results) -> float:
    batches = [row.median for row in results.tables["batch"] if not row.name.startswith("first")]
    return max(batches) * 1e6


def _growth(results: Results) -> float:
    ours = [row for row in results.growth if row["row"].startswith("indexplan.Plan")]
    return sum(row["peak_bytes"]["median"] for row in ours) / 1e6


def _sampler_speed(results: Results) -> float:
    return 1e3 / results.row("sampler", "indexplan PlanBatchSampler").ns()


def _loader_ratio(results: Results) -> float:
    ours = results.row("loader", "indexplan PlanLoader, 0 workers")
    return results.row("loader", "torch DistributedSampler, 0 workers").median / ours.median


def _slowest_of(words: str, factor: float) -> Callable[[Results], float]:
    return lambda results: (
        factor * max(row.median for row in results.tables["first"] if words in row.name)
    )


def _sampler_growth(results: Results) -> float:
    row = next(row for row in results.growth if row["row"].startswith("indexplan PlanBatchSampler"))
    return float(row["peak_bytes"]["median"]) / 1e6


# What each includes: those of the comparison (first batch, growth, resume, sub-epoch, share at 1e8)
# are of fresh processes after a small job: without imports and compilation, with all objects made,
# but for a sub-epoch's plan. Costs per index are of repeated calls on one plan. Only those of a
# fresh process's start have imports in them; none has compilation, which has its own table.
FIGURES = (
    Figure(
        "time to the first batch at 1e8, against DistributedSampler",
        1000,
        "times shorter",
        _against_torch("first_batch", "seconds"),
        least=True,
    ),
    Figure(
        "growth for the first batch at 1e8, against DistributedSampler",
        1000,
        "times smaller",
        _against_torch("first_batch", "peak_bytes"),
        least=True,
    ),
    Figure(
        "one rank's share of 64 at 1e8, against DistributedSampler",
        1000,
        "times faster",
        _against_torch("share", "seconds"),
        least=True,
    ),
    Figure(
        "an index of a rank's share against the fastest whole permutation's, at 1e8",
        15,
        "times faster",
        _speedup,
        least=True,
    ),
    Figure("resume at the middle: 1e12 by 1e6", 1.5, "times", _resume_flatness),
    Figure(
        "Shuffle, one rank's share of 64, n = 1e9 and 1e12, one thread",
        2,
        "ns per index",
        _worst_ns("share"),
    ),
    Figure(
        "Shuffle, two threads against one, into memory that is there, taking turns",
        1.8,
        "times faster",
        lambda results: results.row("threads", "2 threads, 64 MiB that are there").facts["ratio"],
        least=True,
        loss=(
            "This machine's second core is not always fully available: in six processes of 41 "
            "turns each, the ratio was 1.71 to 1.93, with a median of 1.87."
        ),
    ),
    Figure(
        "Shuffle, two threads against one, as a new array of 64 MiB",
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
        "the next of 40 sub-epochs, its first batch, n = 1e8",
        0.1,
        "ms",
        lambda results: 1e3 * results.asked("sub_epochs", OURS, 10**8)["seconds"],
    ),
    Figure(
        "import to first batch, warm cache, without the interpreter's start",
        0.6,
        "s",
        lambda results: results.starts["first_batch_warm"]["seconds"]["median"],
    ),
    Figure(
        "Shuffle, a stretch of an epoch into memory that is there, n = 1e9 and 1e12, one thread",
        2,
        "ns per index",
        lambda results: max(
            row.ns() for row in results.tables["stretch"] if row.name.endswith("that is there")
        ),
    ),
    Figure(
        "Shuffle, a stretch of an epoch as a new array of 8 MiB, n = 1e9 and 1e12",
        2,
        "ns per index",
        _worst_ns("stretch"),
        loss=(
            "The system zeroes a new array's pages before the kernel fills them: compare the row "
            "into memory that is there."
        ),
    ),
    Figure(
        "the whole permutation against torch.randperm at 1e8",
        10,
        "times faster",
        _whole_speedup,
        least=True,
    ),
    Figure(
        "BlockShuffle, a stretch of an epoch, worst of four shapes",
        9,
        "ns per index",
        lambda results: _worst_block_ns(results, "stretch"),
    ),
    Figure(
        "BlockShuffle, one rank's share of 64, worst of four shapes",
        9,
        "ns per index",
        lambda results: _worst_block_ns(results, "share"),
    ),
    Figure("plan.batch of 256, slowest row below but the new epoch", 15, "us", _slowest_batch),
    Figure(
        "cost of a batch flat in n, world and step: dearest by cheapest",
        1.25,
        "times",
        Results.flatness,
    ),
    Figure("growth by a plan of 1e12 and all questions to it", 2, "MB", _growth),
    Figure(
        "import indexplan",
        0.15,
        "s",
        lambda results: results.starts["import_indexplan"]["seconds"]["median"],
        loss=(
            "More than half is NumPy's own import, which is needed. The rest is modules of the "
            "standard library and the dataclasses of this one."
        ),
    ),
    Figure(
        "first batch in a fresh process, warm cache, the interpreter included",
        1,
        "s",
        lambda results: results.starts["first_batch_warm"]["process"]["median"],
    ),
    Figure(
        "batches of 256 as lists, from PlanBatchSampler",
        60,
        "million indices per s",
        _sampler_speed,
        least=True,
    ),
    Figure(
        "a pass over PlanLoader against torch's sampler, trivial dataset, 0 workers",
        0.95,
        "times as fast",
        _loader_ratio,
        least=True,
    ),
    Figure("a new loader's first batch, n = 1e8 to 1e12", 5, "ms", _slowest_of("PlanLoader", 1e3)),
    Figure("resume at any step of 1e12, and its batch", 1, "ms", _slowest_of("resume", 1e3)),
    Figure(
        "growth by a PlanBatchSampler of 1e12 and 1,000 of its batches", 2, "MB", _sampler_growth
    ),
)
