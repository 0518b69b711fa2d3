"""What the first batch of each order costs a process, with numba's cache empty and full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.conftest import told
from benchmarks.measure.first_batches import measured, orders

pytestmark = [pytest.mark.benchmark(timer=told), pytest.mark.nightly]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Ask all orders; in a quick run two, as each compiles its kernels in a cache of its own."""
    names = list(orders())
    metafunc.parametrize("name", names[:2] if metafunc.config.getoption("--quick") else names)


def test_first_batch(name: str, found: Callable[..., Any]) -> None:
    """Time fresh processes: CPU seconds from their start to the first batch."""
    found(lambda: measured(name), "first batches", case="", who=name)
