"""What tables of orders cost a node's first process, and the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.conftest import Effort, told
from benchmarks.measure.tables import ORDERS, measured
from benchmarks.render.tables import power

pytestmark = [pytest.mark.benchmark(timer=told), pytest.mark.nightly]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask for all sizes; in a quick run, which cuts each to as few samples, for one."""
    quick = metafunc.config.getoption("--quick")
    metafunc.parametrize("n", [10**6] if quick else [10**6, 10**7, 10**8])
    metafunc.parametrize("name", ORDERS)


def test_tables(name: str, n: int, found: Callable[..., Any], effort: Effort) -> None:
    """Time the first batch of two processes, and look at their memory and files."""
    num = min(n, 10**5) if effort.quick else n  # fewer have classes of too few samples
    found(lambda: measured(name, num), "tables", case=power(n), who=name)
