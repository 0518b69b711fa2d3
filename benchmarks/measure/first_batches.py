"""What the first batch of each order costs a process, its imports included: for fresh processes.

Orders have columns of 48,000 samples, so their tables are not shared, and NumPy sorts them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure.fresh import run_fresh

NUM = 48_000


def orders() -> dict[str, Callable[[], Any]]:
    """Return how each order is made; in two ways where the kernels depend on the arguments."""
    import numpy as np

    import indexplan as ip

    def column(stop: int) -> Any:
        return np.arange(NUM) * 7919 % stop + 1

    def mixture(num: int) -> ip.Order:
        sources = {str(k): ip.Shuffle(1000 * (k + 1), seed=k) for k in range(num)}
        return ip.Mixture(sources, {name: float(name) + 1 for name in sources})

    shuffle, lengths, labels = ip.Shuffle(NUM), column(4000), column(100)
    shares = {"a": 9, "b": 1}
    return {
        "Sequential": lambda: ip.Sequential(NUM),
        "Shuffle": lambda: shuffle,
        "BlockShuffle": lambda: ip.BlockShuffle(NUM, block_size=1024, window=16),
        "LocalShuffle": lambda: ip.LocalShuffle(NUM, window=1024),
        "ShardShuffle": lambda: ip.ShardShuffle([NUM // 100] * 100),
        "TokenWindows": lambda: ip.TokenWindows(num_tokens=10**8, length=2048),
        "DocumentWindows": lambda: ip.DocumentWindows(lengths, 2048),
        "Weighted": lambda: ip.Weighted(1.0 * lengths),
        "Distinct": lambda: ip.Distinct(labels, 32),
        "ClassBalanced": lambda: ip.ClassBalanced(labels),
        "ClassBatches": lambda: ip.ClassBatches(labels, 8, 4),
        "Grouped": lambda: ip.Grouped(labels, 32),
        "LengthGrouped": lambda: ip.LengthGrouped(lengths, 32),
        "TokenBudget": lambda: ip.TokenBudget(lengths, 8192),
        "Packed": lambda: ip.Packed(lengths, 4096),
        "Mixture, 2 sources": lambda: mixture(2),
        "Mixture, 30 sources": lambda: mixture(30),
        "Split": lambda: ip.Split(NUM, shares)["a"],
        "Split, by groups": lambda: ip.Split(NUM, shares, groups=labels)["a"],
        "Without": lambda: ip.Without(shuffle, [1, 2, 3]),
        "Subset": lambda: ip.Subset(shuffle, 2 * np.arange(NUM), 2 * NUM),
        "Repeat": lambda: ip.Repeat(shuffle, 2),
        "Epochs": lambda: ip.Epochs(shuffle, 10_000),
        "Batched": lambda: ip.Batched(shuffle, 32),
        "Flat": lambda: ip.Flat(ip.Batched(shuffle, 32)),
    }


def first_batch(name: str) -> dict[str, float]:
    """Return this process's CPU seconds up to an order's first batch, and the kernels it ran."""
    import indexplan as ip

    plan = ip.Plan(orders()[name](), world_size=8, batch_size=2)
    plan.batch(0, step=1, rank=2)
    seconds = time.process_time()
    from indexplan.kernels.compiling import KERNELS

    return {"seconds": seconds, "kernels": sum(kernel.origin is not None for kernel in KERNELS)}


def measured(name: str) -> dict[str, float]:
    """Return the seconds with an empty cache, and the least of two runs with what it then holds."""
    with tempfile.TemporaryDirectory() as cache:
        job, where = f"{__name__}.first_batch", {"NUMBA_CACHE_DIR": cache}
        cold, *warm = (run_fresh(job, name, **where) for _ in range(3))
    least = min(each["seconds"] for each in warm)
    return {**cold, "cold_seconds": cold["seconds"], "warm_seconds": least}
