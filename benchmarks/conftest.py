"""Shared by all benchmarks: how much work they do, and how a job is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch


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


FULL = Effort(num_indices=2**20, rounds=40, calls=200, largest=10**9)
QUICK = Effort(num_indices=2**16, rounds=3, calls=5, largest=10**5)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`."""
    parser.addoption("--quick", action="store_true", help="small sizes: outputs, not figures")


def pytest_benchmark_update_machine_info(
    config: pytest.Config,  # noqa: ARG001 (the hook's signature)
    machine_info: dict[str, Any],
) -> None:
    """Keep the host's name out of the results."""
    machine_info.pop("node", None)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Hold the rivals to the one thread that an order uses."""
    torch.set_num_threads(1)


@pytest.fixture
def effort(request: pytest.FixtureRequest) -> Effort:
    """How much to do."""
    return QUICK if request.config.getoption("--quick") else FULL


@pytest.fixture
def timed(benchmark: Any) -> Callable[..., Any]:
    """Return a function that times a job without arguments and returns the job's last result.

    `table` says where the report shows the timing; `facts` are what it shows beside it.
    """

    def run(
        job: Callable[[], Any],
        table: str,
        *,
        rounds: int,
        calls: int = 1,
        warmup: int = 1,
        **facts: Any,
    ) -> Any:
        benchmark.group = table
        benchmark.extra_info.update(facts)
        return benchmark.pedantic(job, rounds=rounds, iterations=calls, warmup_rounds=warmup)

    return run
