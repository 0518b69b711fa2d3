"""Kill processes that write and read shared tables: `python -m tests.kill_tables 200`.

Up to three at a time build or map the table of an order in one cache. One of them dies by SIGKILL
after a random share of the time that this took alone. After each kill another process has to read
what the order gives, within a minute. Exits with 1 at the first difference.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from tests.support.shared_tables import ORDERS, check, kept, reads

SAMPLES = 300_000


def kill(times: int, root: Path) -> Counter[tuple[str, str]]:
    """Kill that many processes; count those that had not ended, by order and what they did."""
    random, context = Random(times), get_context("forkserver")  # noqa: S311
    # imported before the clock starts, so that most die while they build or map
    context.set_forkserver_preload(["indexplan.kernels.compiling", "tests.support.shared_tables"])
    column = root / "column.npy"
    np.save(column, np.random.default_rng(0).integers(1, 60, SAMPLES))

    @cache
    def expected(name: str) -> list[Any]:
        return reads(name, str(column))

    def start(name: str, folder: Path) -> Any:
        process = context.Process(
            target=check, args=(str(folder), name, str(column), expected(name))
        )
        process.start()
        return process

    def end(process: Any, name: str) -> None:
        process.join(60)
        if process.exitcode != 0:
            process.kill()
            raise SystemExit(f"{name}: a process ended with {process.exitcode}")

    @cache
    def seconds(name: str, doing: str) -> float:
        expected(name)
        if doing == "reading":
            seconds(name, "building")
        began = time.monotonic()
        end(start(name, root / "timed" / name), name)
        return time.monotonic() - began

    killed: Counter[tuple[str, str]] = Counter()
    for number in range(times):
        if number % 2 == 0:  # the second of two finds what others built after the first
            name, folder = random.choice(sorted(ORDERS)), root / "cache"
            shutil.rmtree(folder, ignore_errors=True)
        doing = "reading" if kept(folder) else "building"
        patience = seconds(name, doing) * random.random()
        victim, *others = [start(name, folder) for _ in range(random.randint(1, 3))]
        victim.join(patience)
        killed[name, doing] += victim.is_alive()
        victim.kill()
        victim.join()
        for process in [*others, start(name, folder)]:
            end(process, name)
    return killed


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        found = kill(int((sys.argv[1:] or ["200"])[0]), Path(place))
    for (who, doing), number in sorted(found.items()):
        sys.stdout.write(f"{who}: {number} killed {doing}\n")
    sys.stdout.write(f"{found.total()} killed at work; all read right\n")
