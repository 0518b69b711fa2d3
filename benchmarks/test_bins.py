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
CASES = [
    pytest.param(
        case,
        name,
        id=f"{case.need}, {case.kind}, {name}",
        marks=[pytest.mark.nightly] * ((case.kind, case.n) != TELLING[case.need] or name == LONG),
    )
    for case, name in bins.asked(HERE)
]


@pytest.mark.parametrize(("case", "name"), CASES)
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
