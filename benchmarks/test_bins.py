"""Bins of samples: packing, length grouping, balance and windows, each in a fresh process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.conftest import TIMES, Effort, told
from benchmarks.contenders.binners import NAMES, Case
from benchmarks.measure import bins

pytestmark = pytest.mark.benchmark(timer=told)
HERE = [name for name, binner in NAMES.items() if not binner.standing()["missing"]]
TELLING = {
    "packing": ("chats", 10**5),
    "batches": ("chats", 10**6),
    "budget": ("chats", 10**5),
    "balance": ("chats", 10**5),
    "windows": ("documents", 10**6),
}
"""Lengths that are always run; the others are nightly."""
LONG = "Grain first fit"  # which takes half a minute for these
ALL = bins.asked(HERE)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask all for all; in a quick run for one length a need, as all are cut to few samples."""
    quick = metafunc.config.getoption("--quick")
    asked = [(case, name, (case.kind, case.n) == TELLING[case.need]) for case, name in ALL]
    cases = [
        pytest.param(
            case,
            name,
            id=f"{case.need}, {case.kind}, {name}",
            marks=[pytest.mark.nightly] * (not telling or name == LONG),
        )
        for case, name, telling in asked
        if telling or not quick
    ]
    metafunc.parametrize(("case", "name"), cases)


def test_bins(
    case: Case,
    name: str,
    found: Callable[..., Any],
    fresh: Callable[..., Any],
    effort: Effort,
    cache: str,
) -> None:
    """Time what is built, an epoch and a step; what bins hold is checked after that."""
    most = 4 * bins.FEW if effort.quick else 2**62

    def ask() -> Any:
        job = "benchmarks.measure.bins.answer"
        numbers = fresh(job, name, case._asdict(), most, NUMBA_CACHE_DIR=cache)
        return {"seconds": numbers[TIMES["bins"]], **numbers}

    size = bins.size_of(case, most)
    found(ask, case.need, case=size, who=name)
