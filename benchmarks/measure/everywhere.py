"""Time shuffle-v1 in C beside the package, in turns: `python -m benchmarks.measure.everywhere`.

A line for each size, in ns an index, the best of many turns, in one thread: the package's kernels,
and the C header by gcc; for this processor and for one without AVX-512.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import indexplan as ip

NUM = 10**6  # indices at a time
TURNS = 40
SIZES = (10**6, 10**9, 10**15)
# what numba and gcc are told of the processor
PROCESSORS = {
    "this processor": ({}, "native"),
    "with AVX2 only": (
        {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+bmi,+bmi2,+fma"},
        "haswell",
    ),
}
SOURCE = """
#include <indexplan/shuffle_v1.h>
void indices(uint64_t n, uint64_t seed, uint32_t epoch, size_t num, uint64_t *out) {
  const shuffle_v1 s = shuffle_v1_make(n, seed, 0, epoch);
  shuffle_v1_fill(&s, 0, num, out);
}
"""


def compiled(folder: Path, processor: str, optimise: str) -> Callable[[int], Any]:
    """Return a function of n that writes the indices at the first positions, in C."""
    source, library = folder / "indices.c", folder / f"indices{optimise}.so"
    source.write_text(SOURCE)
    flags = [
        optimise,
        f"-march={processor}",
        "-shared",
        "-fPIC",
        f"-I{Path(ip.__file__).parent / 'include'}",
    ]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library)], check=True)  # noqa: S607
    function = ctypes.CDLL(str(library)).indices
    out = np.zeros(NUM, np.int64)  # written once, so that its pages are there
    wide = ctypes.c_uint64

    def indices(n: int) -> Any:
        function(wide(n), wide(5), ctypes.c_uint32(9), ctypes.c_size_t(NUM), wide(out.ctypes.data))
        return out

    return indices


def best_of_turns(calls: dict[str, Callable[[], Any]], turns: int = TURNS) -> dict[str, float]:
    """Return the best time of each, in ns an index; they take turns, as machines are shared."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(turns):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - start) / NUM * 1e9)
    return best


def time_c(processor: str) -> None:
    """Print a line for each size."""
    with tempfile.TemporaryDirectory() as folder:
        in_c = {each: compiled(Path(folder), processor, each) for each in ("-O2", "-O3")}
        for n in SIZES:
            order = ip.Shuffle(n, seed=5)
            calls: dict[str, Callable[[], Any]] = {"package": lambda o=order: o.take(9, 0, NUM)}
            calls |= {f"gcc {each}": lambda f=f, n=n: f(n) for each, f in in_c.items()}
            report(f"n = {n:.0e}", best_of_turns(calls), "package")
            for call in calls.values():
                assert np.array_equal(call(), order.take(9, 0, NUM))


def report(what: str, times: dict[str, float], beside: str) -> None:
    """Print times, and how they compare with one of them."""
    said = (f"{name} {ns:.2f} ns ({ns / times[beside]:.3f})" for name, ns in times.items())
    print(f"{what}: {', '.join(said)}", flush=True)


def main() -> None:
    """Time all; each processor in a process of its own, as numba looks at it once."""
    for name, (environment, processor) in PROCESSORS.items():
        print(f"{name}:", flush=True)
        command = [sys.executable, "-m", __spec__.name, processor]
        subprocess.run(command, env={**os.environ, **environment}, check=True)


if __name__ == "__main__":
    time_c(sys.argv[1]) if len(sys.argv) > 1 else main()
