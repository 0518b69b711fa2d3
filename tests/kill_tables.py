"""Kill processes that write and read shared tables: `python -m tests.kill_tables 200`.

Up to three at a time build or map the table of an order in one cache, and die by SIGKILL after a
random share of the time that this takes. After each kill another process has to read what the
order gives, within a minute. Exits with 1 at the first difference.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from random import Random

import numpy as np

from tests.support.shared_tables import ORDERS, check, reads

SAMPLES = 300_000


def kill(times: int, root: Path) -> int:
    """Kill that many processes; return how many of them had not ended by themselves."""
    random, context = Random(times), get_context("forkserver")  # noqa: S311
    column = root / "column.npy"
    np.save(column, np.random.default_rng(0).integers(1, 60, SAMPLES))
    expected = {name: reads(name, str(column)) for name in ORDERS}
    killed = 0
    for number in range(times):
        name = random.choice(sorted(ORDERS))
        folder = root / f"cache-{number // 4}"  # of up to four kills, the later ones find a table
        arguments = (str(folder), name, str(column), expected[name])
        alive = [context.Process(target=check, args=arguments) for _ in range(random.randint(1, 3))]
        began = time.monotonic()
        for process in alive:
            process.start()
        victim = alive[0]
        victim.join(random.random() * 1.5)
        killed += victim.is_alive()
        victim.kill()
        victim.join()
        alive[0] = context.Process(target=check, args=arguments)
        alive[0].start()
        for process in alive:
            process.join(60)
            if process.exitcode != 0:
                process.kill()
                raise SystemExit(f"{name}: ended with {process.exitcode} after a kill at {began}")
        if number % 4 == 3:
            shutil.rmtree(folder)
    return killed


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        number = kill(int((sys.argv[1:] or ["200"])[0]), Path(place))
    sys.stdout.write(f"{number} killed at work; all read right\n")
