"""Runs through trainers and frameworks, each in a fresh process: what `row` counts of them."""

from __future__ import annotations

from typing import Any

from benchmarks.measure.fresh import run_fresh
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.row import KINDS, PATIENCE, WAYS, counted


def both(name: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> dict[str, Any]:
    """Run a framework's own loader in each way that its module has, and ours."""
    (framework,) = (each for each in FRAMEWORKS if each.name == name)
    record: dict[str, Any] = framework.standing()
    if not record["missing"]:
        code = framework.load()
        for way in WAYS:
            function = f"{framework.variant}{way}"
            if hasattr(code, function):  # what is usual may be what is recommended
                record[way] = counted(code, function, ours if way == "ours" else theirs)
    return record


def through(
    name: str, theirs: tuple[str, ...] = tuple(KINDS), ours: tuple[str, ...] = tuple(KINDS)
) -> dict[str, Any]:
    """Return `both` of a fresh process, from which ranks may be forked."""
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    job = "tests.runs.through.both"
    record: dict[str, Any] = run_fresh(job, name, theirs, ours, seconds=12 * PATIENCE, **quiet)
    return record


def wrong(name: str, record: dict[str, Any]) -> list[str]:
    """Return what has to hold of ours, and does not."""
    exact = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
    ours = record.get("ours", {})
    return [f"{name}, {KINDS[kind]}: {ours[kind]}" for kind in ours if ours[kind] != exact]
