"""What a process pays before its first batch: imports, compilation, memory.

Every figure is from `repeats` fresh processes, of which minimum and median are kept. numba's cache
is in a temporary folder, empty ("cold") or filled by an earlier process ("warm").
"""

from __future__ import annotations

import statistics
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure.fresh import run_fresh

TOGETHER = 8
"""Processes that start at once, as on a node of eight ranks."""


def run_timed(cache: str, name: str, *arguments: int) -> dict[str, Any]:
    """Return what a function of starts.py measures in a process of its own.

    Its "process" is the time from the process's start to its end, the interpreter included.
    """
    start = perf_counter()
    result = run_fresh(f"benchmarks.measure.starts.{name}", *arguments, NUMBA_CACHE_DIR=cache)
    return {**result, "process": perf_counter() - start}


def run_together(cache: str, num: int) -> dict[str, Any]:
    """Return what processes at once take, from the first's start to the last's end."""
    start = perf_counter()
    with ThreadPoolExecutor(num) as pool:
        runs = list(pool.map(lambda _: run_timed(cache, "first_batch", 10**12), range(num)))
    assert all(run["batch"] == runs[0]["batch"] for run in runs)
    return {"seconds": max(run["seconds"] for run in runs), "process": perf_counter() - start}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return minimum and median of every number of several runs."""
    return {
        key: {"min": min(values), "median": statistics.median(values), "runs": len(values)}
        for key in runs[0]
        if isinstance(runs[0][key], int | float)
        for values in [[run[key] for run in runs]]
    }


def measure_starts(repeats: int) -> dict[str, Any]:
    """Measure imports, and first calls with a cold and a warm cache."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        warm = str(Path(folder) / "warm")
        imports = ("import_numpy", "import_indexplan")
        rounds = [[run_timed(warm, name) for name in imports] for _ in range(repeats + 1)]
        for name, runs in zip(imports, zip(*rounds, strict=True), strict=True):
            result[name] = summary(list(runs[1:]))  # the first may have waited for the disk
        colds = [f"{folder}/cold-{i}" for i in range(max(1, repeats // 3))]
        cold = [run_timed(cache, "first_batch", 10**12) for cache in colds]
        run_timed(warm, "first_batch", 10**12)
        hot = [run_timed(warm, "first_batch", 10**12) for _ in range(repeats)]
        assert all(run["batch"] == cold[0]["batch"] for run in cold + hot)
        result["first_batch_cold"], result["first_batch_warm"] = summary(cold), summary(hot)
        colds = [f"{folder}/together-{i}" for i in range(max(1, repeats // 3))]
        num = TOGETHER if repeats > 1 else 2
        cold = [run_together(cache, num) for cache in colds]
        hot = [run_together(warm, num) for _ in colds]
        result["together_cold"], result["together_warm"] = summary(cold), summary(hot)
        colds = [f"{folder}/calls-{i}" for i in range(max(1, repeats // 3))]
        calls = [run_timed(cache, "first_calls", 10**12) for cache in colds]
        result["first_calls_cold"] = summary(calls)
        calls = [run_timed(colds[0], "first_calls", 10**12) for _ in range(repeats)]
        result["first_calls_warm"] = summary(calls)
    return result


def measure_growth(repeats: int) -> list[dict[str, Any]]:
    """Measure time and memory of all questions to 1e12, and of a sampler's first batches."""
    with tempfile.TemporaryDirectory() as cache:
        run_timed(cache, "first_calls", 1000)  # fills numba's cache
        plans = [run_timed(cache, "grow_plan", 10**12) for _ in range(repeats)]
        samplers = [run_timed(cache, "grow_sampler", 10**12) for _ in range(1 + (repeats > 1))]
    named = {
        "indexplan.Plan": plans,
        "indexplan.Plan, all its questions after that": [run["all_questions"] for run in plans],
        "indexplan PlanBatchSampler, 1,000 batches": samplers,
    }
    return [{"row": row, "n": 10**12, **summary(runs)} for row, runs in named.items()]


STARTS = {
    "import_numpy": "import numpy",
    "import_indexplan": "import indexplan, NumPy's import included",
    "first_batch_warm": "import to first batch of 1e12, warm cache",
    "first_batch_cold": "import to first batch of 1e12, cold cache",
    "together_warm": "8 processes at once, the slowest, warm cache",
    "together_cold": "8 processes at once, the slowest, cold cache",
}


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Measure all; `quick` few times. Return rows."""
    repeats = 1 if quick else 9
    starts, rows = measure_starts(repeats), []
    for key, case in STARTS.items():
        seconds = starts[key]["seconds"]
        of_start = {"seconds": seconds["min"], "median_seconds": seconds["median"]}
        of_start["process_seconds"] = starts[key]["process"]["median"]
        rows.append({"table": "starts", "case": case, **of_start, "processes": seconds["runs"]})
    cold, warm = starts["first_calls_cold"], starts["first_calls_warm"]
    for call in cold:
        if call != "process":
            both = {"cold_seconds": cold[call]["median"], "warm_seconds": warm[call]["median"]}
            rows.append({"table": "first calls", "case": call, **both})
    for row in measure_growth(repeats):
        found = {f"{key}_seconds": row["seconds"][key] for key in ("median",)}
        found |= {key: row[key]["min"] for key in ("seconds", "user_seconds")}
        found |= {key: row[key]["median"] for key in ("peak_bytes", "held_bytes")}
        rows.append({"table": "growth", "case": "1e12", "who": row["row"], **found})
    return rows
