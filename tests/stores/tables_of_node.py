"""How many tables a node holds: `python -m tests.stores.tables_of_node [--processes 2 8]`.

In each way of starting them, processes read a batch of one order in an empty cache and wait; then
the kernel's own count says what share of each page is theirs (PSS of /proc/PID/smaps). Printed are
the bytes of all of them together, in files of the cache and in memory without a file, beyond those
of the same processes that read a small order, as a multiple of the table's size.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip
from benchmarks.measure.fresh import ROOT
from benchmarks.measure.tables import ORDERS, read

WAYS = ("forked", "spawned", "torchrun", "DataLoader, fork", "DataLoader, spawn")
SAMPLES, SMALL = 10_000_000, 1_000
WAIT = 600  # seconds at most, on a machine that others use


def multiple(way: str, num: int, name: str, samples: int = SAMPLES) -> float:
    """Return how many tables so many processes hold together, of an order of that many samples."""
    column = np.random.default_rng(0).integers(1, 4000, samples)
    column = column.astype(np.float64 if name == "Weighted" else np.uint32)
    read(ORDERS[name](column[:SMALL]))  # compiles what would take memory
    held = []
    with tempfile.TemporaryDirectory() as folder:
        for part in (column[:SMALL], column):
            path, cache = f"{folder}/{len(part)}.npy", f"{folder}/cache-{len(part)}"
            np.save(path, part)
            held.append(share(way, num, name, path, cache, Path(folder, f"ready-{len(part)}")))
    return (held[1] - held[0]) / ORDERS[name](column).ip_table_bytes


def share(way: str, num: int, name: str, column: str, cache: str, ready: Path) -> int:
    """Return the bytes that processes hold of an order's tables, and in memory without a file."""
    ready.mkdir()
    module = ["-m", "tests.stores.tables_of_node", "--member", way, str(num), name, column]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(num)]
    path = os.pathsep.join([str(ROOT), str(ROOT / "adapters"), os.environ.get("PYTHONPATH", "")])
    node = subprocess.Popen(
        [sys.executable, *(torchrun if way == "torchrun" else []), *module, str(ready)],
        env={**os.environ, "INDEXPLAN_CACHE": cache, "PYTHONPATH": path},
        cwd=ROOT,
    )
    try:
        began = time.monotonic()
        while len(members := [each.name for each in ready.iterdir()]) < num:
            if node.poll() is not None or time.monotonic() - began > WAIT:
                raise RuntimeError(f"{way}: ended before {num} processes had a batch")
            time.sleep(0.05)
        held = sum(memory(pid, cache) for pid in members)
        (ready / "go").touch()
        if node.wait(WAIT):
            raise RuntimeError(f"{way}: exit code {node.returncode}")
        return held
    finally:
        node.kill()


def memory(pid: str, folder: str) -> int:
    """Return a process's share of mapped files in a folder, and of memory that has no file."""
    found, path = 0, ""
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-", line):
            path = [*line.split(maxsplit=5), ""][5]
        elif line.startswith("Pss:") and (path.startswith((folder, "[")) or not path):
            found += int(line.split()[1]) * 1024
    return found


class Batches:
    """A dataset whose items are steps: whoever reads one says so, and waits for the others."""

    def __init__(self, order: ip.Order, ready: str) -> None:
        self.order, self.ready = order, Path(ready)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, step: int) -> int:
        read(self.order)
        (self.ready / str(os.getpid())).touch()
        while not (self.ready / "go").exists():
            time.sleep(0.05)
        return step


def start(way: str, num: int, name: str, column: str, ready: str) -> None:
    """Read batches of an order in processes that are started in some way."""
    batches = Batches(ORDERS[name](ip.Column(column)), ready)
    if way == "torchrun":
        batches[0]
    elif way.startswith("DataLoader"):
        from torch.utils.data import DataLoader

        loader: Any = DataLoader(
            batches,  # type: ignore[arg-type]
            sampler=range(num),
            num_workers=num,
            prefetch_factor=1,
            multiprocessing_context=way.rpartition(" ")[2],
        )
        list(loader)
    else:
        context: Any = get_context("fork" if way == "forked" else "spawn")
        members = [context.Process(target=batches.__getitem__, args=(0,)) for _ in range(num)]
        for each in members:
            each.start()
        for each in members:
            each.join()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 8], metavar="NUM")
    parser.add_argument("--orders", nargs="+", default=["Weighted", "Split", "Packed"])
    parser.add_argument("--member", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.member:
        its_way, its_num, *rest = options.member
        start(its_way, int(its_num), *rest)
    else:
        for each_name in options.orders:
            for each_way in WAYS:
                for count in options.processes:
                    times = multiple(each_way, count, each_name)
                    sys.stdout.write(f"{each_name:<12}{each_way:<20}{count:>3} {times:.2f}\n")
                    sys.stdout.flush()
