"""The figures that the library set itself, and whether a run reached them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One benchmark's result: times are seconds per call, `facts` what it noted down."""

    name: str
    minimum: float
    median: float
    num_indices: int
    facts: dict[str, Any]

    def ns(self) -> float:
        """Return the median time per index, in nanoseconds."""
        return self.median / self.num_indices * 1e9

    def least(self) -> float:
        """Return the minimum per index, in nanoseconds: for ratios, since noise only adds time."""
        return self.minimum / self.num_indices * 1e9


class Results:
    """All measurements of a run, by table."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.starts: dict[str, Any] = data["cold"]["starts"]
        self.growth: list[dict[str, Any]] = data["cold"]["growth"]
        self.tables: dict[str, list[Row]] = {}
        for entry in data["pytest"]["benchmarks"]:
            facts, stats = entry["extra_info"], entry["stats"]
            row = Row(
                facts["row"], stats["min"], stats["median"], facts["num_indices"], dict(facts)
            )
            self.tables.setdefault(entry["group"], []).append(row)

    def row(self, table: str, name: str) -> Row:
        """Return the row of that name."""
        return next(row for row in self.tables[table] if row.name == name)

    def rival(self, name: str, n: int) -> Row:
        """Return how long a contender takes to permute n integers."""
        rows = self.tables["whole permutation"]
        return next(row for row in rows if row.name == name and row.facts["n"] == n)

    def largest(self) -> int:
        """Return the largest size at which all contenders were run."""
        return max(row.facts["n"] for row in self.tables["whole permutation"])

    def block_ratios(self, table: str) -> dict[str, float]:
        """Return how much more an index costs from each BlockShuffle than from Shuffle."""
        base = self.row(table, "Shuffle, n = 1e9").least()
        rows = [row for row in self.tables[table] if row.name.startswith("BlockShuffle")]
        return {row.name: row.least() / base for row in rows}

    def flatness(self) -> float:
        """Return the dearest batch of 256 by the cheapest, over sizes, worlds and steps."""
        known = [row for row in self.tables["batch"] if not row.name.startswith(("rem", "first"))]
        costs = [row.minimum for row in known]
        return max(costs) / min(costs)


class Figure(NamedTuple):
    """A target: `measure` returns the number to be at most (or, if `least`, at least) `limit`."""

    name: str
    limit: float
    unit: str
    measure: Callable[[Results], float]
    least: bool = False
    loss: str = ""
    """Why it was missed, if it ever was."""

    def reached(self, results: Results) -> bool:
        """Return whether the run reached the target."""
        value = self.measure(results)
        return value >= self.limit if self.least else value <= self.limit


def _shuffles(results: Results, table: str) -> list[Row]:
    return [results.row(table, f"Shuffle, n = {n}") for n in ("1e9", "1e12")]


def _worst_ns(table: str) -> Callable[[Results], float]:
    return lambda results: max(row.ns() for row in _shuffles(results, table))


def _worst_block_ns(results: Results, table: str) -> float:
    return max(row.ns() for row in results.tables[table] if row.name.startswith("BlockShuffle"))


def _speedup(results: Results) -> float:
    rows = _shuffles(results, "stretch") + _shuffles(results, "share")
    rival = results.rival("torch.randperm", results.largest())
    return rival.least() / max(row.least() for row in rows)


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


FIGURES = (
    Figure(
        "Shuffle, a stretch of an epoch, n = 1e9 and 1e12", 3, "ns per index", _worst_ns("stretch")
    ),
    Figure(
        "Shuffle, one rank's share of 64, n = 1e9 and 1e12", 3, "ns per index", _worst_ns("share")
    ),
    Figure(
        "either of these against torch.randperm at 1e8", 10, "times faster", _speedup, least=True
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
            "NumPy's own import, which cannot be spared, is more than half of it. The rest is "
            "modules of the standard library and the dataclasses of this one."
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
