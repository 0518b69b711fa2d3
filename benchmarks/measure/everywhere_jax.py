"""Time `indexplan_jax.shuffle` beside `jax.random.permutation` and the package.

A line for each size, in ns an index, the best of many turns; everything is compiled before, and
compared with the package. `python -m benchmarks.measure.everywhere_jax` uses one thread under
`XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import indexplan as ip
from benchmarks.measure.everywhere import NUM, best_of_turns, report
from indexplan_jax import shuffle

SIZES = (10**6, 10**6 + 1, 2**31 - 1)


def main() -> None:
    """Print a line for each size; JAX's permutation is always that of NUM."""
    positions = jnp.arange(NUM)
    permutation = jax.jit(lambda key: jax.random.permutation(key, NUM))
    key = jax.random.key(0)
    for n in SIZES:
        order = ip.Shuffle(n, seed=5)
        ours = jax.jit(partial(shuffle, n, 5))
        assert np.array_equal(ours(9, positions), order.take(9, 0, NUM))
        calls: dict[str, Callable[[], Any]] = {
            "jax.random.permutation": lambda: permutation(key).block_until_ready(),
            "indexplan_jax.shuffle": lambda f=ours: f(9, positions).block_until_ready(),
            "package": lambda o=order: o.take(9, 0, NUM),
        }
        assert len(calls["jax.random.permutation"]()) == NUM
        report(f"n = {n}", best_of_turns(calls, 10), "jax.random.permutation")


if __name__ == "__main__":
    main()
