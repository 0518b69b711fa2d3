"""Cost per index of the orders: a stretch of an epoch, one rank's share of 64, and locating."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import indexplan as ip
from benchmarks.conftest import Effort
from benchmarks.contenders.planners import Rival, present
from benchmarks.render.tables import power
from indexplan.plan.draw import fill_in_threads

WORLD, BATCH, RANK = 64, 256, 7
WHOLE = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)

ORDERS = [
    pytest.param(order, id=label)
    for label, order in {
        "Shuffle, n = 1e6": ip.Shuffle(10**6),
        "Shuffle, n = 1e9": ip.Shuffle(10**9),
        "Shuffle, n = 1e12": ip.Shuffle(10**12),
        "Sequential, n = 1e9": ip.Sequential(10**9),
        **{
            f"BlockShuffle, n = 1e9, block {size}, window {window}": ip.BlockShuffle(
                10**9, block_size=size, window=window
            )
            for size in (1024, 65536)
            for window in (4, 16)
        },
    }.items()
]


def label_of(request: pytest.FixtureRequest) -> str:
    """Return the name of the parameters, which is the row's name in the report."""
    return str(request.node.callspec.id)


@pytest.mark.parametrize("order", ORDERS)
def test_stretch(
    order: ip.Order, timed: Callable[..., Any], effort: Effort, request: pytest.FixtureRequest
) -> None:
    """Time a contiguous interval from the middle of an epoch."""
    count = min(effort.num_indices, order.num_samples)
    start = (order.num_samples - count) // 2
    indices = timed(
        lambda: order.take(0, start, start + count),
        "stretch",
        rounds=effort.rounds,
        case=label_of(request),
        indices=count,
    )
    np.testing.assert_array_equal(order.locate(0, indices), np.arange(start, start + count))


@pytest.mark.parametrize("n", [10**9, 10**12])
def test_stretch_into_memory_that_is_there(
    n: int, timed: Callable[..., Any], effort: Effort
) -> None:
    """Time the same without the pages that the system has to zero first, as builds fill them."""
    order, count = ip.Shuffle(n), effort.num_indices
    runs = np.array([n // 2]), np.array([n // 2 + count])
    out = np.zeros(count, np.int64)
    timed(
        lambda: order.fill(0, *runs, out),
        "stretch",
        rounds=effort.rounds,
        case=f"Shuffle, n = 1e{len(str(n)) - 1}, into memory that is there",
        indices=count,
    )
    np.testing.assert_array_equal(order.take(0, n // 2, n // 2 + count), out)


@pytest.mark.parametrize("order", ORDERS)
def test_share(
    order: ip.Order, timed: Callable[..., Any], effort: Effort, request: pytest.FixtureRequest
) -> None:
    """Time one rank's share of 64, of as many steps as make the same number of indices."""
    plan = ip.Plan(order, world_size=WORLD, batch_size=BATCH)
    stop = min(plan.steps(0).stop, effort.num_indices // BATCH)
    sizes = plan.batch_sizes(0, rank=RANK, stop_step=stop)
    indices = timed(
        lambda: plan.indices(0, rank=RANK, stop_step=stop),
        "share",
        rounds=effort.rounds,
        case=label_of(request),
        indices=int(sizes.sum()),
    )
    where = plan.locate(indices, epoch=0)
    np.testing.assert_array_equal(where.rank, RANK)
    np.testing.assert_array_equal(where.step, np.repeat(np.arange(stop), sizes))


@pytest.mark.parametrize("order", ORDERS)
def test_inverse(
    order: ip.Order, timed: Callable[..., Any], effort: Effort, request: pytest.FixtureRequest
) -> None:
    """Time the positions of indices that lie next to each other in the epoch."""
    count = min(effort.num_indices, order.num_samples)
    indices = order.take(0, 0, count)
    positions = timed(
        lambda: order.locate(0, indices),
        "inverse",
        rounds=effort.rounds,
        case=label_of(request),
        indices=count,
    )
    np.testing.assert_array_equal(positions, np.arange(count))


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("factor", [1, 2, 8])
def test_threads(factor: int, num_threads: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time a rank's share drawn by several threads; large enough for each to have many pieces."""
    plan = ip.Plan(ip.Shuffle(10**9), world_size=WORLD, batch_size=BATCH)
    stop = factor * effort.num_indices // BATCH
    share = plan.indices(0, rank=RANK, stop_step=stop)
    indices = timed(
        lambda: plan.indices(0, rank=RANK, stop_step=stop, num_threads=num_threads),
        "threads",
        rounds=effort.rounds,
        case=f"{threads(num_threads)}, a new array of {8 * factor} MiB",
        indices=len(share),
    )
    np.testing.assert_array_equal(share, indices)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_threads_into_memory_that_is_there(
    num_threads: int, timed: Callable[..., Any], effort: Effort
) -> None:
    """Time the same without the pages that the system has to zero first.

    The two take turns besides, for a ratio that is not of two moments of a shared machine.
    """
    order, count = ip.Shuffle(10**9), 8 * effort.num_indices
    where = [(0, np.array([10**8]), np.array([10**8 + count]))]
    out = np.zeros(count, np.int64)
    turns: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(effort.rounds):
        for num, seconds in turns.items():
            start = perf_counter()
            fill_in_threads(order, where, num, out)
            seconds.append(perf_counter() - start)
    timed(
        lambda: fill_in_threads(order, where, num_threads, out),
        "threads",
        rounds=effort.rounds,
        case=f"{threads(num_threads)}, 64 MiB that are there",
        indices=count,
        ratio=statistics.median(one / two for one, two in zip(*turns.values(), strict=True)),
    )
    np.testing.assert_array_equal(order.take(0, 10**8, 10**8 + count), out)


def threads(num: int) -> str:
    """Write 1 thread, or 2 threads."""
    return f"{num} thread{'s' * (num > 1)}"


def check_permutation(order: Any, n: int) -> None:
    """Assert that `order` is int64 and holds every integer below n once."""
    assert (order.dtype, order.shape) == (np.int64, (n,))
    assert (order.min(), order.max()) == (0, n - 1)
    seen = np.zeros(n, np.bool_)
    seen[order] = True
    assert seen.all()


# All of them return n int64 in an array of their own, which is what a sampler keeps for an epoch.
# Sizes are even, as Grain's shuffle leaves out indices at some others; see Quality.
@pytest.mark.parametrize(
    ("rival", "size"),
    [
        pytest.param(rival, size, id=f"{rival.order_name}, n = 1e{len(str(size)) - 1}")
        for size in WHOLE
        for rival in present()
        if rival.order_name and size <= rival.largest_order
    ],
)
def test_whole(rival: Rival, size: int, timed: Callable[..., Any], effort: Effort) -> None:
    """Time whole permutations, the one job that all can do.

    At 1e8, memory that a virtual machine has not touched before costs more than the permutation
    (3.1 s against 0.25 s), so the two arrays that are alive at a time are touched first.
    """
    n = min(size, effort.largest)
    np.full(2 * n, 1)
    order = rival.load().order
    order(1000, 1)
    output = timed(
        lambda: order(n, 1),
        "whole permutation",
        rounds=min(effort.rounds, 5 if n > 10**7 else 9),
        calls=max(1, min(10**6, rival.largest_order) // n),
        case=power(n),
        who=rival.order_name,
        version=rival.version(),
        indices=n,
    )
    check_permutation(output, n)
