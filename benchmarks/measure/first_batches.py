"""What a process pays for its first batch: `python -m benchmarks.measure.first_batches`.

For each order, fresh processes with a folder of numba's cache that is empty, and then filled by the
first. Printed are CPU seconds of the whole process, imports included, and what numba compiled: how
many functions, and, with `--functions`, the seconds of each, without those that it called.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from benchmarks.measure.fresh import run_fresh

SAMPLES = 10_000
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "Sequential": lambda ip, _: ip.Sequential(SAMPLES),
    "Shuffle": lambda ip, _: ip.Shuffle(SAMPLES),
    "BlockShuffle": lambda ip, _: ip.BlockShuffle(SAMPLES, block_size=64, window=4),
    "LocalShuffle": lambda ip, _: ip.LocalShuffle(SAMPLES, window=256),
    "ShardShuffle": lambda ip, _: ip.ShardShuffle([100] * (SAMPLES // 100)),
    "Weighted": lambda ip, column: ip.Weighted(column),
    "Mixture": lambda ip, _: ip.Mixture(
        {"a": ip.Shuffle(SAMPLES), "b": ip.Shuffle(SAMPLES, seed=1)}, {"a": 7, "b": 3}
    ),
    "ClassBalanced": lambda ip, column: ip.ClassBalanced(column),
    "ClassBatches": lambda ip, column: ip.ClassBatches(column, 8, 4),
    "Grouped": lambda ip, column: ip.Grouped(column, 32),
    "LengthGrouped": lambda ip, column: ip.LengthGrouped(column, 32),
    "TokenBudget": lambda ip, column: ip.TokenBudget(column, 1024),
    "Packed": lambda ip, column: ip.Packed(column, 512),
    "DocumentWindows": lambda ip, column: ip.DocumentWindows(column, 128),
    "Split": lambda ip, column: ip.Split(SAMPLES, {"a": 9, "b": 1}, groups=column)["a"],
}


def first_batch(name: str) -> dict[str, Any]:
    """Read a batch; return this process's CPU seconds."""
    import indexplan as ip

    read(ip, name)
    return {"seconds": time.process_time()}


def compiled(name: str) -> dict[str, Any]:
    """Read a batch; return this process's CPU seconds, and those of each function compiled."""
    from numba.core import event

    import indexplan as ip

    class Listener(event.Listener):
        def on_start(self, _: event.Event) -> None:
            began.append((time.process_time(), 0.0))

        def on_end(self, each: event.Event) -> None:
            at, inner = began.pop()
            took = time.process_time() - at
            found[each.data["dispatcher"].py_func.__name__] += took - inner
            count[each.data["dispatcher"].py_func.__name__] += 1
            if began:
                began[-1] = began[-1][0], began[-1][1] + took

    began: list[tuple[float, float]] = []
    found: dict[str, float] = defaultdict(float)
    count: Counter[str] = Counter()
    event.register("numba:compile", Listener())  # type: ignore[no-untyped-call]
    read(ip, name)
    return {
        "functions": {
            each: [count[each], took]
            for each, took in sorted(found.items(), key=lambda row: -row[1])
        }
    }


def read(ip: Any, name: str) -> None:
    """Read a batch of an order."""
    import numpy as np

    column = np.random.default_rng(0).integers(1, 100, SAMPLES)
    order = ORDERS[name](ip, column * 1.0 if name == "Weighted" else column)
    ip.Plan(order, world_size=8, batch_size=4).batch(0, step=0, rank=0)


def main(names: list[str], times: int, *, functions: bool) -> None:
    """Print a row for each order."""
    print(f"{'order':<16}{'cold, s':>9}{'warm, s':>9}{'functions':>11}")
    for name in names or ORDERS:
        job = "benchmarks.measure.first_batches.first_batch"
        pairs = []
        for _ in range(times):
            with tempfile.TemporaryDirectory() as cache:
                pairs.append([run_fresh(job, name, NUMBA_CACHE_DIR=cache) for _ in range(2)])
        cold, warm = (
            statistics.median(run["seconds"] for run in runs) for runs in zip(*pairs, strict=True)
        )
        with tempfile.TemporaryDirectory() as cache:
            every = "benchmarks.measure.first_batches.compiled"
            found = run_fresh(every, name, NUMBA_CACHE_DIR=cache)["functions"]
        num = sum(each[0] for each in found.values())
        print(f"{name:<16}{cold:>9.2f}{warm:>9.2f}{num:>11}", flush=True)
        for each, (many, took) in found.items() if functions else ():
            print(f"    {each:<36}{many:>3}{took:>8.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orders", nargs="*", default=[], choices=[*ORDERS, []], metavar="ORDER")
    parser.add_argument("--times", type=int, default=3, help="fresh processes of each kind")
    parser.add_argument("--functions", action="store_true", help="print what was compiled")
    options = parser.parse_args()
    main(options.orders, options.times, functions=options.functions)
