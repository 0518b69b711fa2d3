"""How long a new mixture takes to its first batch: `python -m benchmarks.measure.new_mixtures`.

Printed is the median of milliseconds from the sizes and weights of 30 shuffled sources to a batch
of 256, over mixtures made one after another in one process, each with other sizes and weights: of
four decimals, and any. They are made in memory that the process has had before. Run it with
`NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=` for kernels as on a machine with AVX2 alone.
"""

from __future__ import annotations

import statistics
from time import perf_counter

import numpy as np

import indexplan as ip
from benchmarks.measure.memory import keep

MIXTURES, SOURCES, BATCH = 60, 30, 256
WARM = 5  # mixtures that are not counted


def milliseconds(random: np.random.Generator, decimals: int | None) -> float:
    """Return how long one mixture takes, of drawn sizes and weights."""
    sizes = random.integers(500_000, 1_500_000, SOURCES).tolist()
    weights = random.dirichlet(np.ones(SOURCES)).tolist()
    if decimals is not None:
        weights = [round(weight, decimals) for weight in weights]
    begin = perf_counter()
    sources = {f"{j}": ip.Shuffle(size, seed=j) for j, size in enumerate(sizes)}
    mixture = ip.Mixture(sources, dict(zip(sources, weights, strict=True)))
    ip.Plan(mixture, world_size=8, batch_size=BATCH).batch(epoch=0, step=0, rank=0)
    return (perf_counter() - begin) * 1e3


def main() -> None:
    keep(2**27)
    random = np.random.default_rng(0)
    for name, decimals in (("four decimals", 4), ("any", None)):
        times = [milliseconds(random, decimals) for _ in range(MIXTURES)][WARM:]
        print(f"weights: {name:<14}{statistics.median(times):6.2f} ms")


if __name__ == "__main__":
    main()
