"""What the library aims at: ratios of one run, of comparisons and of repeated timings."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contenders.planners import OURS
from benchmarks.render.results import Results, Row
from benchmarks.render.writer import Figure

TORCH = "torch DistributedSampler"


def _shuffles(results: Results, table: str) -> list[Row]:
    """Return the rows of Shuffle at 1e9 and 1e12."""
    return [row for row in results.tables[table] if row.name.startswith("Shuffle, n = 1e9")] + [
        row for row in results.tables[table] if row.name.startswith("Shuffle, n = 1e12")
    ]


def _against_permutations(table: str) -> Callable[[Results], float]:
    """Return how much less an index costs than the fastest rival's, of its whole permutation."""

    def ratio(results: Results) -> float:
        rivals = [
            row.least()
            for row in results.tables["whole permutation"]
            if row.facts["n"] == results.largest() and not row.name.startswith("indexplan")
        ]
        return min(rivals) / max(row.least() for row in _shuffles(results, table))

    return ratio


def _blocks(table: str) -> Callable[[Results], float]:
    return lambda results: max(results.block_ratios(table).values())


def _against(question: str, key: str, rival: str = TORCH) -> Callable[[Results], float]:
    def ratio(results: Results) -> float:
        theirs, ours = (results.asked(question, name, 10**8) for name in (rival, OURS))
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


def _batch_against_lists(results: Results) -> float:
    slowest = max(row.ns() for row in results.tables["batch"] if not row.name.startswith("first"))
    return slowest / results.row("sampler", TORCH).ns()


def _medians(table: str, ours: str, rival: str) -> Callable[[Results], float]:
    return lambda results: results.row(table, rival).median / results.row(table, ours).median


def _flat(words: str) -> Callable[[Results], float]:
    def ratio(results: Results) -> float:
        times = [row.median for row in results.tables["first"] if words in row.name]
        return max(times) / min(times)

    return ratio


def _growth(name: str) -> Callable[[Results], float]:
    return lambda results: sum(
        row["peak_bytes"]["median"] / 1e6 for row in results.growth if row["row"].startswith(name)
    )


def _starts(name: str) -> Callable[[Results], float]:
    return lambda results: float(
        results.starts[name]["seconds"]["median"]
        / results.starts["import_numpy"]["seconds"]["median"]
    )


# Those of the comparison are of fresh processes after a small job: without imports and compilation,
# with all objects made. Costs per index are of repeated calls on one plan.
PLANNING = (
    Figure(
        "time to the first batch at 1e8, against DistributedSampler",
        1000,
        "times shorter",
        _against("first_batch", "seconds"),
        least=True,
    ),
    Figure(
        "growth for the first batch at 1e8, against DistributedSampler",
        1000,
        "times smaller",
        _against("first_batch", "peak_bytes"),
        least=True,
    ),
    Figure(
        "one rank's share of 64 at 1e8, against DistributedSampler",
        1000,
        "times faster",
        _against("share", "seconds"),
        least=True,
    ),
    Figure(
        "the next of 40 sub-epochs at 1e8, against EfficientViT-style sub-epochs",
        1000,
        "times sooner",
        _against("sub_epochs", "seconds", "EfficientViT-style sub-epochs"),
        least=True,
    ),
    Figure("resume at the middle: 1e12 by 1e6", 1.5, "times", _resume_flatness),
)

TIMINGS = (
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
        lambda results: results.row("threads", "2 threads, 64 MiB that are there").facts["ratio"],
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
        Results.flatness,
    ),
    Figure(
        "batches of 256 as lists, PlanBatchSampler against DistributedSampler",
        3,
        "times faster",
        _medians("sampler", "indexplan PlanBatchSampler", TORCH),
        least=True,
    ),
    Figure(
        "a pass over PlanLoader against torch's sampler, trivial dataset, 0 workers",
        0.95,
        "times as fast",
        _medians("loader", "indexplan PlanLoader, 0 workers", f"{TORCH}, 0 workers"),
        least=True,
    ),
    Figure(
        "a new loader's first batch, 1e8 to 1e12: dearest by cheapest",
        1.25,
        "times",
        _flat("PlanLoader"),
    ),
    Figure("resume at any step of 1e12: dearest by cheapest", 1.25, "times", _flat("resume")),
    Figure("import indexplan, by NumPy's own import", 2.5, "times", _starts("import_indexplan")),
    Figure(
        "import to first batch, warm cache, by NumPy's own import",
        10,
        "times",
        _starts("first_batch_warm"),
    ),
    Figure("growth by a plan of 1e12 and all questions to it", 2, "MB", _growth("indexplan.Plan")),
    Figure(
        "growth by a PlanBatchSampler of 1e12 and 1,000 of its batches",
        2,
        "MB",
        _growth("indexplan PlanBatchSampler"),
    ),
)
