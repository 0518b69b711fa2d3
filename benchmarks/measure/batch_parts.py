"""Where a batch spends its time: `python -m benchmarks.measure.batch_parts [--code AVX2]`.

Of a batch of 256 in a row, of one of 256 single positions far apart, and of one position: the
microseconds of each kernel that it calls, called again alone with the same arguments, and of the
rest, which is Python. Medians of repeated calls in one process.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from time import process_time_ns
from typing import Any

import numpy as np

import indexplan as ip
from benchmarks.measure.index_kernels import orders
from benchmarks.measure.mixture_kernels import compiled_for
from benchmarks.measure.surroundings import INSTRUCTIONS, surroundings
from indexplan.kernels.compiling import Kernel

BATCH, TURNS, TIMES = 256, 15, 20


def micros(job: Callable[[], Any]) -> float:
    """Return the microseconds of a job, the median of some turns."""
    found = []
    for _ in range(TURNS):
        begin = process_time_ns()
        for _ in range(TIMES):
            job()
        found.append((process_time_ns() - begin) / TIMES / 1e3)
    return statistics.median(found)


def parts(job: Callable[[], Any]) -> dict[str, float]:
    """Return the time of a job, of each kernel that it calls, and of the rest."""
    calls: list[tuple[Kernel, tuple[Any, ...]]] = []
    call = Kernel.__call__

    def noted(kernel: Kernel, *values: Any) -> Any:
        calls.append((kernel, values))
        return call(kernel, *values)

    job()
    setattr(Kernel, "__call__", noted)  # noqa: B010
    try:
        job()
    finally:
        setattr(Kernel, "__call__", call)  # noqa: B010
    found = {"all": micros(job)}
    for kernel, values in calls:
        took = micros(partial(kernel, *values))
        found[kernel.name] = found.get(kernel.name, 0.0) + took
    return found | {"rest": 2 * found["all"] - sum(found.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--code", choices=INSTRUCTIONS, help="compile for these instructions")
    parser.add_argument("--only", default="", help="only orders whose name begins so")
    options = parser.parse_args()
    compiled_for(options.code)
    print({name: surroundings()[name] for name in ("machine", "instructions", "commit")})
    drawn = np.random.default_rng(0).dirichlet(np.full(30, 0.7)).tolist()
    sources = {str(j): ip.Shuffle(10**7 + j, seed=j) for j in range(30)}
    mixture = ip.Mixture(sources, dict(zip(sources, drawn, strict=True)))
    for name, order in {"Mixture(30)": mixture, **orders(ip)}.items():
        if not name.startswith(options.only):
            continue
        num = order.num_units(0)
        apart = np.sort(np.random.default_rng(1).choice(num, min(BATCH, num), replace=False))
        starts = {"in a row": np.array([num // 3]), "apart": apart, "one": np.array([num // 3])}
        for kind, begin in starts.items():
            size = min(BATCH, num - num // 3) if kind == "in a row" else 1
            found = parts(partial(order.take, 0, begin, begin + size))
            words = "  ".join(f"{part} {took:.1f}" for part, took in found.items())
            print(f"{name:<24}{kind:<10}{words}", flush=True)


if __name__ == "__main__":
    main()
