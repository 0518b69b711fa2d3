"""Weights, classes and mixtures: what deals samples, each in fresh processes, by the CPU's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.conftest import TIMES, Effort, told
from benchmarks.contenders.dealers import DEALERS, Case
from benchmarks.measure import orders

pytestmark = pytest.mark.benchmark(timer=told)
TELLING = {("weights", 10**6), ("class batches", 10**6), ("mixture", 3 * 10**6)}
"""Needs and sizes that are always run; the others are nightly."""
HERE = [dealer for dealer in DEALERS if not dealer.standing()["missing"]]
CASES = [
    pytest.param(
        case, dealer.name, id=f"{case.need}, {orders.size_of(case)}, {dealer.name}",
        marks=[pytest.mark.nightly] * ((case.need, case.n) not in TELLING),
    )
    for case in orders.CASES
    for dealer in HERE
    if case.need in dealer.needs
]  # fmt: skip


@pytest.mark.parametrize(("case", "name"), CASES)
def test_orders(
    case: Case,
    name: str,
    found: Callable[..., Any],
    fresh: Callable[..., Any],
    effort: Effort,
    cache: str,
) -> None:
    """Time the first batch, an epoch, and a batch of the middle; outputs are checked after that."""
    asked = orders.small(case) if effort.quick else case

    def ask() -> Any:
        answer = fresh(
            "benchmarks.measure.orders.answer", name, asked._asdict(), NUMBA_CACHE_DIR=cache
        )
        return answer if "stop" in answer else {"seconds": answer[TIMES["orders"]], **answer}

    rounds = 1 if effort.quick else effort.rounds
    found(ask, case.need, case=orders.size_of(case), who=name, rounds=rounds)
