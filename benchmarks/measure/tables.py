"""What tables cost a node: for each order that derives one, two processes with one empty cache.

The first builds and writes the table, the second maps it. test_tables.py keeps the numbers: CPU
seconds to the first batch beyond those of a small order of the same kind, the most bytes a sample
that the process had of its own meanwhile, and the bytes a sample of the file. Columns are files
that are mapped. Of other sizes, `python -m benchmarks.measure.tables 1e9 Weighted Packed` prints
them, and refuses what memory or disk cannot hold.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from benchmarks.measure.fresh import run_fresh

# Bytes a sample: of memory 16 of the builder's own and 4 of its column, or 12 and 8 of Weighted; of
# disk its 8 and a table's 12.
MOST = 20

ORDERS: dict[str, Callable[[Any], ip.Order]] = {
    "ClassBalanced": ip.ClassBalanced,
    "ClassBatches": lambda column: ip.ClassBatches(column, 8, 4),
    "Distinct": lambda column: ip.Distinct(column, 32),
    "DocumentWindows": lambda column: ip.DocumentWindows(column, 2048),
    "Grouped": lambda column: ip.Grouped(column, 32),
    "LengthGrouped": lambda column: ip.LengthGrouped(column, 32),
    "Packed": lambda column: ip.Packed(column, 4096),
    "Split": lambda column: ip.Split(len(column), {"a": 9, "b": 1}, groups=column)["a"],
    "TokenBudget": lambda column: ip.TokenBudget(column, 16384),
    "Weighted": ip.Weighted,
}


def first_batch(name: str, path: str) -> tuple[float, int]:
    """Return CPU seconds to an order's first batch, and the most bytes of its own meanwhile."""
    warnings.simplefilter("error")  # such as that of a table that is not shared
    make, small = ORDERS[name], np.tile(np.arange(1, 100), 99)
    read(make(ip.Column(small if name != "Weighted" else small * 1.0)))
    began, before, most, done = time.process_time(), private(), 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(0.02):
            most = max(most, private() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        read(make(ip.Column(path)))
        seconds = time.process_time() - began
    finally:  # else the process would not end when an order refuses its column
        done.set()
        watcher.join()
    return seconds, max(most, private() - before)


def read(order: ip.Order) -> None:
    """Read a batch."""
    ip.Plan(order, world_size=8, batch_size=2).batch(0, step=0, rank=0)


def private() -> int:
    """Return the bytes of this process's pages that belong to no file."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))


def write(folder: str, name: str, n: int) -> str:
    """Write a column for an order; return its path."""
    random = np.random.default_rng(0)
    path = Path(folder, f"{name}.npy")
    dtype = np.float64 if name == "Weighted" else np.uint32
    column = np.lib.format.open_memmap(path, "w+", dtype, (n,))
    for start in range(0, n, 2**24):
        part = column[start : start + 2**24]
        if name == "Weighted":
            part[:] = random.exponential(size=len(part))
        else:
            part[:] = random.integers(1, n // 8 if name == "Split" else 4000, len(part))
    column.flush()
    return str(path)


def measured(name: str, n: int) -> dict[str, float]:
    """Return seconds and bytes a sample of the first process and the next, and of files."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    memory = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    disk = shutil.disk_usage(tempfile.gettempdir()).free
    for what, have in (("memory", memory), ("disk", disk)):
        if n * MOST > have:
            raise SystemExit(
                f"{n:,} samples need {n * MOST / 1e9:.1f} GB of {what}, and {have / 1e9:.1f} GB "
                "are free: free some, or measure fewer samples"
            )
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, name, n)
        job, cache = "benchmarks.measure.tables.first_batch", f"{folder}/cache"
        (first, own), (then, less) = (
            run_fresh(job, name, path, INDEXPLAN_CACHE=cache) for _ in range(2)
        )
        kept = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file())
    found = {"seconds": first, "first_seconds": first, "first_bytes": own / n}
    return {**found, "next_seconds": then, "next_bytes": less / n, "file_bytes": kept / n}


if __name__ == "__main__":
    for each in sys.argv[2:]:
        print(each, measured(each, int(float(sys.argv[1]))), flush=True)
