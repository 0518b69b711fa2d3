"""What an index costs: `python -m benchmarks.measure.index_kernels [--code AVX2]`.

The kernels of this checkout and of a former commit (`--former`) take turns in one process; so
variants of a kernel are compared as commits. Printed are this checkout's nanoseconds an index, and
how many times as fast it is by the median of all turns: for positions in a row, for positions far
apart, and for `find`. Needs git and the project's history, and compiles the former kernels each
time.
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
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import indexplan
from benchmarks.measure.surroundings import INSTRUCTIONS, surroundings

FORMER = "3b0ce2b"  # the last one that chose the lesser of two numbers alike for all machines
NUM, TURNS, TIMES = 2**14, 21, 5
SIZES = (100, 5_000, 1_000_000, 10**8, 10**9, 10**12, 2**62, 2**63 - 1)


def former(folder: Path, commit: str) -> Any:
    """Return a former commit's library, as a package of its own name."""
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
    return import_module("former")


def compiled_for(code: str | None) -> None:
    """Run this process's command again, unless its kernels are compiled for these instructions."""
    wanted = INSTRUCTIONS[code] if code else {}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        command = [sys.executable, *sys.orig_argv[1:]]
        sys.exit(subprocess.run(command, env=os.environ | wanted, check=False).returncode)


def seconds(job: Callable[[], Any]) -> float:
    """Return how long a job takes at best, as somebody else may use the core."""
    best = float("inf")
    for _ in range(TIMES):
        begin = process_time()
        job()
        best = min(best, process_time() - begin)
    return best


def orders(package: ModuleType, n: int = 10**8) -> dict[str, Any]:
    """Return orders of one of the two packages, by name."""
    shuffles = {f"Shuffle({size:.0e})": package.Shuffle(size) for size in SIZES}
    weights = np.random.default_rng(0).exponential(size=2**20)
    return shuffles | {
        "BlockShuffle(1024, 64)": package.BlockShuffle(n, 1024, 64),
        "BlockShuffle(64, 1024)": package.BlockShuffle(n, 64, 1024),
        "LocalShuffle(65536)": package.LocalShuffle(n, 65536),
        "LocalShuffle(256)": package.LocalShuffle(n, 256),
        "ShardShuffle": package.ShardShuffle([10_000] * (n // 10_000)),
        "Weighted(2**20)": package.Weighted(weights),
    }


def jobs_of(order: Any) -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return what to time of an order, each with what it has to give."""
    num = order.num_units(0)
    first = num // 3 if num > 3 * NUM else 0
    runs = np.full(max(1, NUM // num), first)
    ends = runs + min(num, NUM)
    apart = np.random.default_rng(1).integers(0, num, NUM)
    there = np.empty(NUM, np.int64)

    def filled(place: NDArray[np.int64], starts: Any, stops: Any) -> NDArray[np.int64]:
        order.fill(0, starts, stops, place)
        return place

    out = order.take(0, runs, ends)
    jobs: dict[str, Callable[[], Any]] = {
        "in a row": lambda: filled(out, runs, ends),
        "apart": lambda: filled(there, apart, apart + 1),
        "find": lambda: order.find(0, out)[1],
    }
    return {name: (job, job().copy()) for name, job in jobs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--code", choices=INSTRUCTIONS, help="compile for these instructions")
    parser.add_argument("--only", default="", help="only orders whose name begins so")
    parser.add_argument("--former", default=FORMER, help="the commit to compare with")
    options = parser.parse_args()
    compiled_for(options.code)
    print({name: surroundings()[name] for name in ("machine", "instructions", "commit")})
    with tempfile.TemporaryDirectory() as folder:
        before = former(Path(folder), options.former)
        pairs = zip(orders(indexplan).items(), orders(before).values(), strict=True)
        for (name, now), then in pairs:
            if name.startswith(options.only):
                compare(name, now, then)


def compare(name: str, now: Any, then: Any) -> None:
    """Print the times of an order, and how many times as fast it is as the former one."""
    words = []
    former_jobs = jobs_of(then)
    for job, (run, given) in jobs_of(now).items():
        run_former, wanted = former_jobs[job]
        np.testing.assert_array_equal(given, wanted)
        pairs = [[seconds(each) for each in (run, run_former)] for _ in range(TURNS)]
        ratio = statistics.median(other / one for one, other in pairs)
        time = statistics.median(one for one, _ in pairs) * 1e9 / len(given)
        words.append(f"{job} {time:6.2f} ns {ratio:.2f}x")
    print(f"{name:<24}{'   '.join(words)}", flush=True)


if __name__ == "__main__":
    main()
