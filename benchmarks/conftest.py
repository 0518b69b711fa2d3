"""Shared by all benchmarks: how much is done, how a job is timed, and what a run is compared with.

`pytest benchmarks` times the telling sizes and keeps nothing; `-m nightly` runs the rest, and
`--quick` all of it on small sizes, for the outputs. `--benchmark-compare` puts the committed rows
of benchmarks/results next to the new times. `python -m benchmarks.report` keeps the rows of a run.
"""

from __future__ import annotations

import gc
import importlib
import json
import statistics
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch

from benchmarks.measure.fresh import ROOT, run_fresh
from benchmarks.measure.surroundings import surroundings
from benchmarks.render import rows as kept
from benchmarks.render.pages import PAGES

Record = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How much a benchmark does, so that `--quick` runs the same code on less."""

    num_indices: int
    """Indices per call where throughput is measured."""
    rounds: int
    """Timings per benchmark, of which minimum and median are reported."""
    calls: int
    """Calls per timing where latency is measured."""
    largest: int
    """The largest whole permutation."""
    long: float
    """Seconds after which nobody is asked again, nor whoever stopped: the last answer counts."""
    quick: bool


FULL = Effort(num_indices=2**20, rounds=5, calls=200, largest=10**9, long=5, quick=False)
KEPT = replace(FULL, long=30)  # rows that are kept are of all rounds, of whoever takes seconds
QUICK = Effort(num_indices=2**16, rounds=3, calls=5, largest=10**5, long=5, quick=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption("--quick", action="store_true", help="small sizes: outputs, not figures")


def pytest_configure(config: pytest.Config) -> None:
    """Let `--benchmark-compare` without a name mean the committed rows."""
    if getattr(config.option, "benchmark_compare", None) is True:
        config.option.benchmark_compare = str(committed(surroundings()["instructions"]))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, unless something is asked for by its marker, or all is quick."""
    if config.option.markexpr or config.option.quick:
        return
    late = [item for item in items if item.get_closest_marker("nightly")]
    config.hook.pytest_deselected(items=late)
    items[:] = [item for item in items if item not in late]


def pytest_benchmark_update_machine_info(machine_info: dict[str, Any]) -> None:
    """Keep the host's name out of the results."""
    machine_info.pop("node", None)


@pytest.hookimpl(tryfirst=True)
def pytest_benchmark_compare_machine_info(
    benchmarksession: Any, machine_info: Record, compared_benchmark: Record
) -> None:
    """Say of which machines the committed rows are, in place of a warning that they differ."""
    machines = compared_benchmark["machine_info"].pop("machines", None)
    if machines:
        benchmarksession.logger.info(f"The rows that are kept are of: {'; '.join(machines)}")
        compared_benchmark["machine_info"] = machine_info


def name_of(page: str, table: str, row: Record) -> str:
    """Return the name by which runs of one row are compared."""
    return ", ".join(filter(None, (f"{page}: {table}", row.get("case"), row.get("who"))))


TIMES = {"orders": "first_seconds", "bins": "build_seconds"}
"""What is a benchmark's time where its rows have several."""


def committed(instructions: str) -> Path:
    """Write the times of the committed rows as pytest-benchmark keeps a run; return the file."""
    found = []
    for page in PAGES:
        for row in kept.read(page):
            least = row.get("seconds", row.get(TIMES.get(page, "")))
            if row["table"] == "whole permutation" and "seconds" not in row:
                least = row["ns"] * float(row["case"]) / 1e9
            if row["run"] not in {instructions, ""} or not isinstance(least, int | float):
                continue
            median = row.get("median_seconds", least)
            stats = dict.fromkeys(("mean", "median", "q1", "q3", "max"), median)
            stats |= {"min": least, "ops": 1 / median if median else 0, "rounds": 1}
            stats |= dict.fromkeys(("stddev", "iqr", "iqr_outliers", "stddev_outliers"), 0)
            stats |= {"total": median, "iterations": 1, "outliers": "0;0", "ld15iqr": least}
            name = name_of(page, row["table"], row)
            stats |= {"hd15iqr": median}
            found.append({"name": name, "fullname": name, "group": row["table"], "stats": stats})
            found[-1] |= {"params": None, "param": None, "extra_info": {}, "options": {}}
    file = ROOT / "build" / "measured" / "committed.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    runs = [row for page in PAGES for row in kept.of(kept.read(page), "run")]
    machine = {"machines": sorted({row["machine"] for row in runs})}
    file.write_text(json.dumps({"machine_info": machine, "commit_info": {}, "benchmarks": found}))
    return file


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Hold the rivals to the one thread that an order uses."""
    torch.set_num_threads(1)
    gc.freeze()  # some collect garbage for each batch: 0.14 s, after all these imports


@pytest.fixture
def effort(request: pytest.FixtureRequest) -> Effort:
    """How much to do; all rounds where something is asked for by its marker."""
    if request.config.getoption("--quick"):
        return QUICK
    return KEPT if request.config.option.markexpr else FULL


def named(benchmark: Any, request: pytest.FixtureRequest, table: str, facts: Record) -> None:
    """Say which row of which table of which page a benchmark is; a file of tests is a page."""
    page = getattr(request.module, "PAGE", request.node.path.stem.removeprefix("test_"))
    benchmark.group = table
    benchmark.name = benchmark.fullname = name_of(page, table, facts)
    benchmark.extra_info.update(page=page, **facts)


@pytest.fixture
def timed(benchmark: Any, request: pytest.FixtureRequest, effort: Effort) -> Callable[..., Any]:
    """Return a function that times a job without arguments and returns the job's last result.

    `table` says where the page shows the timing; `facts` are what it shows next to it. The first
    calls are not timed.
    """

    def run(
        job: Callable[[], Any], table: str, *, rounds: int, calls: int = 1, **facts: Any
    ) -> Any:
        named(benchmark, request, table, facts)
        begin = perf_counter()
        for _ in range(calls):
            job()
        few = max(1, int(effort.long / (perf_counter() - begin)))
        return benchmark.pedantic(job, rounds=min(rounds, few), iterations=calls)

    return run


CLOCK = [0.0]


def told() -> float:
    """Return the seconds that fresh processes have said they took: a clock for pytest-benchmark."""
    return CLOCK[0]


@pytest.fixture
def found(benchmark: Any, request: pytest.FixtureRequest, effort: Effort) -> Callable[..., Record]:
    """Return a function that asks for numbers, `rounds` times, and keeps their medians as a row.

    What is asked measures itself, in a fresh process; the benchmark's time is `seconds` of its
    numbers. Tests that use this say `pytest.mark.benchmark(timer=told)`.
    """

    def run(ask: Callable[[], Record], table: str, *, rounds: int = 1, **facts: Any) -> Record:
        records: list[Record] = []
        begin = perf_counter()

        def once() -> None:
            if records and ("stop" in records[-1] or perf_counter() - begin > effort.long):
                CLOCK[0] += records[-1].get("seconds", 0)
            else:
                records.append(ask())
                CLOCK[0] += records[-1].get("seconds", 0)

        named(benchmark, request, table, facts)
        benchmark.pedantic(once, rounds=rounds)
        last = records[-1]
        if "stop" not in last:
            last = {key: statistics.median(each[key] for each in records) for key in last}
        benchmark.extra_info.update(last)
        return last

    return run


@pytest.fixture
def whole(benchmark: Any, request: pytest.FixtureRequest, effort: Effort) -> Callable[..., None]:
    """Return a function that measures all of a page at once, whose parts take turns: its rows."""

    def run(measure: Callable[..., list[Record]]) -> None:
        named(benchmark, request, "", {})
        benchmark.group = benchmark.extra_info["page"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some rivals' own
            rows = benchmark.pedantic(partial(measure, quick=effort.quick), rounds=1)
        benchmark.extra_info["rows"] = rows
        assert rows

    return run


@pytest.fixture
def fresh(effort: Effort) -> Callable[..., Any]:
    """Return what runs "module.function" in a fresh process; in this one where all is quick."""

    def run(job: str, *arguments: Any, **environment: str) -> Any:
        if not effort.quick:
            return run_fresh(job, *arguments, OMP_NUM_THREADS="1", **environment)
        module, _, function = job.rpartition(".")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as a process of its own would have them
            return getattr(importlib.import_module(module), function)(*arguments)

    return run


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder for numba's cache, which the fresh processes of a session fill."""
    return str(tmp_path_factory.mktemp("numba"))
