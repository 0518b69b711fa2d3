"""What tables cost a node: `python -m benchmarks.measure.tables [--sizes 1e6 1e7 1e8]`.

For each order that derives a table, two fresh processes with one empty cache: the first builds and
writes the table, the second maps it. Printed are CPU seconds to the first batch beyond those of a
small order of the same kind, the most bytes a sample that the process had of its own meanwhile, and
the bytes a sample of the file. Columns are files that are mapped; 1e9 needs some 30 GB of disk. The
rows take the place of former ones in benchmarks/results/tables.json.
"""

from __future__ import annotations

import argparse
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
from benchmarks.measure.surroundings import surroundings
from benchmarks.render.rows import run_of
from benchmarks.render.tables import power
from tests.runs import results

TITLE = "Tables of orders"
WORDS = (
    "For each order that [derives a table](../../docs/starting-up.md#large-tables), two fresh "
    "processes with one empty cache: the first builds and writes it, the next maps it. CPU seconds "
    "are those to the first batch beyond a small order's, bytes are a sample's: the most that the "
    "process had of its own meanwhile, and those of the files. From 16 MiB on a table is written."
)
COLUMNS = ("order", "samples", "first, s", "own, B", "next, s", "own, B", "files, B")

ORDERS: dict[str, Callable[[Any], ip.Order]] = {
    "ClassBalanced": ip.ClassBalanced,
    "ClassBatches": lambda column: ip.ClassBatches(column, 8, 4),
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
    read(make(ip.Column(path)))
    seconds = time.process_time() - began
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


def main(sizes: list[int], names: list[str]) -> None:
    """Print a row for each order and size, and keep it."""
    path = results.RESULTS / "tables.json"
    rows = results.read("tables")["runs"][0]["records"] if path.exists() else {}
    around = run_of(surroundings())
    print("".join(each.rjust(16) for each in COLUMNS))
    for name in names or ORDERS:
        for n in sizes:
            row = rows.setdefault(name, {})[str(n)] = measured(name, n)
            print("".join(each.rjust(16) for each in cells(name, n, row)), flush=True)
            table = [
                cells(each, int(size), rows[each][size])
                for each in sorted(rows)
                for size in sorted(rows[each], key=int)
            ]
            run: dict[str, Any] = {
                **{key: words for key, words in around.items() if key not in {"run", "table"}},
                "instructions": "",
                "figures": [],
                "records": rows,
            }
            run["command"] = "python -m benchmarks.measure.tables"
            run["blocks"] = results.tabular(" | ".join(COLUMNS), table)
            results.keep("tables", TITLE, WORDS, run)


def measured(name: str, n: int) -> list[float]:
    """Return seconds and bytes of the first process and the next, and the bytes of files."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(folder, name, n)
        job, cache = "benchmarks.measure.tables.first_batch", f"{folder}/cache"
        both = [run_fresh(job, name, path, INDEXPLAN_CACHE=cache) for _ in range(2)]
        kept = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file())
    return [number for seconds, own in both for number in (seconds, own / n)] + [kept / n]


def cells(name: str, n: int, row: list[float]) -> tuple[str, ...]:
    """Return a row as text."""
    first, own, then, less, kept = row
    return name, power(n), f"{first:.2f}", f"{own:.1f}", f"{then:.2f}", f"{less:.1f}", f"{kept:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=float, default=[1e6, 1e7, 1e8], metavar="N")
    parser.add_argument("--orders", nargs="*", default=[], choices=[*ORDERS, []], metavar="ORDER")
    options = parser.parse_args()
    main([int(size) for size in options.sizes], options.orders)
