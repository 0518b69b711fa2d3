"""What a process pays before its first batch: imports and compilation, in fresh processes.

numba's cache is in a temporary folder, empty ("cold") or filled by an earlier process ("warm").
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from benchmarks.conftest import Effort, told
from benchmarks.measure.fresh import run_fresh

PAGE = "timings"
pytestmark = pytest.mark.benchmark(timer=told)
TOGETHER = 8
"""Processes that start at once, as on a node of eight ranks."""
FIRST = "import to first batch of 1e12"
STARTS = {  # case: the function, whether its cache is cold, processes at once
    "import numpy": ("import_numpy", False, 1),
    "import indexplan, NumPy's import included": ("import_indexplan", False, 1),
    f"{FIRST}, warm cache": ("first_batch", False, 1),
    f"{FIRST}, cold cache": ("first_batch", True, 1),
    f"{TOGETHER} processes at once, the slowest, warm cache": ("first_batch", False, TOGETHER),
    f"{TOGETHER} processes at once, the slowest, cold cache": ("first_batch", True, TOGETHER),
}


def start(name: str, cache: str) -> dict[str, float]:
    """Return what a function of starts.py measures, and how long its whole process took."""
    begin = perf_counter()
    found = run_fresh(f"benchmarks.measure.starts.{name}", NUMBA_CACHE_DIR=cache)
    return {**found, "process_seconds": perf_counter() - begin}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.nightly] * (num > 1))
        for case, (_, _, num) in STARTS.items()
    ],
)
def test_start(
    case: str, found: Callable[..., Any], effort: Effort, cache: str, tmp_path: Path
) -> None:
    """Time an import, or all until the first batch; of processes at once the slowest counts."""
    name, cold, num = STARTS[case]
    num = min(num, 2) if effort.quick else num
    start(name, cache)  # what waits for the disk, and fills the warm cache
    folders = iter(range(100))

    def ask() -> dict[str, float]:
        folder = str(tmp_path / str(next(folders))) if cold else cache
        with ThreadPoolExecutor(num) as pool:
            runs = list(pool.map(lambda _: start(name, folder), range(num)))
        return {key: max(run[key] for run in runs) for key in runs[0]}

    rounds = 1 if effort.quick else 3 if cold or num > 1 else 9
    found(ask, "starts", case=case, rounds=rounds, processes=rounds)
