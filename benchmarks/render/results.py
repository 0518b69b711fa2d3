"""All measurements of a run, by table and row."""

from __future__ import annotations

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
        cold = data.get("cold", {})
        self.starts: dict[str, Any] = cold.get("starts", {})
        self.growth: list[dict[str, Any]] = cold.get("growth", [])
        self.contest: dict[str, list[dict[str, Any]]] = data.get("contest", {})
        self.tables: dict[str, list[Row]] = {}
        for entry in data.get("pytest", {}).get("benchmarks", []):
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

    def asked(self, question: str, name: str, n: int) -> dict[str, Any]:
        """Return what the comparison measured of one rival."""
        answers = {(r["rival"], r["n"]): r for r in self.contest[question] if "stop" not in r}
        return answers[name, n]

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
