"""Results as they are kept: raw rows, in benchmarks/results/*.jsonl, a file for each page.

A line says what a run found of one of those that are compared in one case: `{"run": "AVX2",
"table": "share", "case": "n = 1e8", "who": "indexplan", "seconds": 0.0393}`. Tables, losses and
pictures are made of these lines when they are looked at. Two tables have other things in them:
"run" where, when and with what a run was, and "who" the versions of what is compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
Row = dict[str, Any]
UNKNOWN = "not recorded"
"""Instructions of the first runs; elsewhere they are empty where they change nothing."""


def of(rows: Iterable[Row], table: str, **fields: str) -> list[Row]:
    """Return the rows of a table that have these fields."""
    fields["table"] = table
    return [row for row in rows if all(row.get(key) == fields[key] for key in fields)]


def one(rows: Iterable[Row], table: str, **fields: str) -> Row:
    """Return the row of a table that has these fields; KeyError if there is none."""
    found = of(rows, table, **fields)
    if not found:
        raise KeyError(f"{table}: {fields}")
    return found[0]


def run_of(data: dict[str, Any]) -> Row:
    """Say where, when and with what a run was, as a row."""
    machine, versions = data["machine"], data["versions"]
    name = f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB"
    return {
        "run": data["instructions"],
        "table": "run",
        "instructions": data["instructions"],
        "machine": f"{name}, {machine['system']}",
        "load average at the start": f"{data['load']:.2f}",
        "date": data["date"],
        "commit": data["commit"],
        "versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


def runs(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the rows of each run, AVX2 first."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["run"], []).append(row)
    return [found[name] for name in sorted(found, reverse=True)]


def read(name: str, folder: Path = RESULTS) -> list[Row]:
    """Return the rows of a page."""
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def keep(name: str, rows: list[Row], folder: Path = RESULTS) -> None:
    """Write the rows of one run, in the place of those of the last with its instruction set."""
    path = folder / f"{name}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    known = runs(read(name, folder)) if path.exists() else []
    others = [run for run in known if run[0]["run"] not in {rows[0]["run"], "", UNKNOWN}]
    lines = [json.dumps(row, ensure_ascii=False) for run in runs(sum(others, rows)) for row in run]
    path.write_text("\n".join(lines) + "\n")
