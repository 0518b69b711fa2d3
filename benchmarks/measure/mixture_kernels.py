"""What exact weights cost: `python -m benchmarks.measure.mixture_kernels [--code AVX2]`.

The kernels of this checkout and those of FORMER, which rounded weights to shares of a period and
dealt them in blocks, take turns in one process. Printed are this checkout's time and the median of
the ratios of all turns: to stream a million units, to draw a batch of 256 (512 one after another,
as the same one again is drawn faster than any other), and to find where 1,000 units are read. Needs
git and the project's history, and compiles the former kernels each time.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.measure.surroundings import INSTRUCTIONS, surroundings
from indexplan.orders.phases import Pattern
from indexplan.orders.shares import phases_of

FORMER = "2046e7f"  # the last commit that rounded weights
KEY = np.array([1, 2], np.uint32)
PLACE = 10**12 + 12_345
STREAM, BATCH, BATCHES, FOUND = 2**20, 256, 512, 1_000
TURNS = 21


def former(folder: Path, commit: str, *modules: str) -> list[Any]:
    """Return modules of a former commit's library, as a package of its own name."""
    command = ["git", "archive", commit, "indexplan"]
    root = Path(__file__).parents[2]
    packed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.name.endswith(".py"):
                path = folder / member.name.replace("indexplan", "former", 1)
                path.parent.mkdir(parents=True, exist_ok=True)
                if (file := archive.extractfile(member)) is not None:
                    path.write_text(re.sub(r"\bindexplan\b", "former", file.read().decode()))
    sys.path.insert(0, str(folder))
    return [import_module(f"former.{name}") for name in modules]


def compiled_for(code: str | None) -> None:
    """Run this process's command again, unless its kernels are compiled for these instructions."""
    wanted = INSTRUCTIONS[code] if code else {}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        command = [sys.executable, *sys.orig_argv[1:]]
        sys.exit(subprocess.run(command, env=os.environ | wanted, check=False).returncode)


def cases() -> dict[str, list[Any]]:
    """Return weights by name."""
    random = np.random.default_rng(0)
    drawn = {k: random.dirichlet(np.full(k, 0.7)).tolist() for k in (30, 500)}
    return {
        "1:1": [1, 1],
        "7:1": [7, 1],
        "25:26:49": [25, 26, 49],
        "1:1e9": [1, 10**9],
        "1,000,003:4": [1_000_003, 4],
        "30 of 1e9": [int(each * 1e9) + 1 for each in drawn[30]],
        "30 floats": drawn[30],
        "500 of 1e9": [int(each * 1e9) + 1 for each in drawn[500]],
        "500 floats": drawn[500],
    }


def seconds(job: Callable[[], Any], times: int) -> float:
    """Return how long a job takes at best, as somebody else may use the core."""
    best = float("inf")
    for _ in range(times):
        begin = process_time()
        job()
        best = min(best, process_time() - begin)
    return best


def jobs_of(pattern: Any, k: int) -> dict[str, tuple[Callable[[], Any], int, float]]:
    """Return what to time of a pattern: a job, how often, and its time in the unit printed."""
    base, zero = np.zeros(k, np.int64), np.zeros(1, np.int64)
    sources, numbers = np.empty(STREAM, np.int32), np.empty(STREAM, np.int64)

    def deal(num: int, shift: int = PLACE) -> None:
        pattern.deal(shift, base, zero, np.array([num]), sources[:num], numbers[:num])

    deal(STREAM)
    most = int(np.bincount(sources).argmax())
    some = sorted({int(sources[0]), int(np.median(sources)), most})
    units = [(j, numbers[np.flatnonzero(sources == j)[: FOUND // len(some)]]) for j in some]
    num_found = sum(len(each) for _, each in units)
    deal(BATCH)

    def batches() -> None:
        for i in range(BATCHES):
            deal(BATCH, PLACE + i * BATCH)

    def find() -> None:
        for j, each in units:
            pattern.find(j, 0, each)

    return {
        "stream": (lambda: deal(STREAM), 1, 1e9 / STREAM),
        "batch": (batches, 1, 1e6 / BATCHES),
        "find": (find, 3, 1e6 / num_found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--code", choices=INSTRUCTIONS, help="compile for these instructions")
    parser.add_argument("--only", default="", help="only weights whose name begins so")
    options = parser.parse_args()
    compiled_for(options.code)
    print({name: surroundings()[name] for name in ("machine", "instructions", "commit")})
    print(f"{'weights':<14}{'ns a unit':>10}{'':6}{'us a batch':>11}{'':6}{'us a find':>10}")
    with tempfile.TemporaryDirectory() as folder:
        pattern, shares = former(Path(folder), FORMER, "orders.pattern", "orders.shares")
        for name, weights in cases().items():
            if name.startswith(options.only):
                compare(name, weights, pattern.Pattern, shares)


def compare(name: str, weights: Sequence[Any], before: Any, shares: Any) -> None:
    """Print the times of some weights, and their ratios to the former ones."""
    names = [str(j) for j in range(len(weights))]
    given = dict(zip(names, weights, strict=True))
    ((_, exact),) = phases_of(given, names)
    ((_, rounded),) = shares.phases_of(given, names, None)
    now, then = (
        jobs_of(make(each, 0, KEY), len(each))
        for make, each in ((Pattern, exact), (before, rounded))
    )
    words = []
    for job, (_, _, unit) in now.items():
        pairs = [[seconds(*side[job][:2]) for side in (now, then)] for _ in range(TURNS)]
        ratio = statistics.median(one / other for one, other in pairs)
        words.append(f"{statistics.median(one for one, _ in pairs) * unit:>10.2f} {ratio:.2f}x")
    print(f"{name:<14}{''.join(words)}", flush=True)


if __name__ == "__main__":
    main()
