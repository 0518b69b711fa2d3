"""Runs through trainers and frameworks, each in a fresh process: what `row` counts of them."""

from __future__ import annotations

import importlib
from typing import Any

import indexplan as ip
from benchmarks.measure.fresh import run_fresh
from tests.runs.frameworks import FRAMEWORKS
from tests.runs.row import KINDS, PATIENCE, WAYS, counted


def both(module: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> dict[str, Any]:
    """Run a framework's own loader in each way that its module has, and ours."""
    (framework,) = (each for each in FRAMEWORKS if each.module == module)
    record: dict[str, Any] = framework.standing()
    if not record["missing"]:
        code = framework.load()
        importlib.import_module("torch._dynamo")  # as an optimizer's first step would in each rank
        ip.Plan(ip.Shuffle(8), world_size=1, batch_size=2).batch(
            0, step=0, rank=0
        )  # compiled before the forks
        for way in WAYS:
            if hasattr(code, way):  # what is usual may be what is recommended
                record[way] = counted(code, way, ours if way == "ours" else theirs)
    return record


def through(
    module: str, theirs: tuple[str, ...] = tuple(KINDS), ours: tuple[str, ...] = tuple(KINDS)
) -> dict[str, Any]:
    """Return `both` of a fresh process, from which ranks may be forked."""
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    job = "tests.runs.through.both"
    record: dict[str, Any] = run_fresh(job, module, theirs, ours, seconds=12 * PATIENCE, **quiet)
    return record


def wrong(name: str, record: dict[str, Any]) -> list[str]:
    """Return what has to hold of ours, and does not."""
    exact = {"lost": 0, "twice": 0, "uneven": 0, "refused": ""}
    ours = record.get("ours", {})
    return [f"{name}, {KINDS[kind]}: {ours[kind]}" for kind in ours if ours[kind] != exact]
