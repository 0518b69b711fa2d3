"""What JAX computes, compared with the package."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from indexplan_jax import shuffle
from tests.everywhere.drawn import Run
from tests.support.shuffle_cases import CASES, Case

KNOWN = [case for case in CASES if case.n < 2**31]


def differences(runs: Sequence[Run]) -> int:
    """Return at how many positions JAX and the package differ."""
    num = 0
    for run in runs:
        positions = run.start + np.arange(run.num)
        expected = run.indices()
        found = shuffle(run.n, run.seed, run.epoch, jnp.asarray(positions, jnp.uint32))
        num += int((np.asarray(found) != expected).sum())
    return num


def known_differences(cases: Sequence[Case]) -> int:
    """Return how many cases have other indices."""
    num = 0
    for n, seed, epoch, start, indices in cases:
        positions = jnp.asarray(start + np.arange(len(indices)), jnp.uint32)
        num += indices != shuffle(n, seed, epoch, positions).tolist()
    return num
