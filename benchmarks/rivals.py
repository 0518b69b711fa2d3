"""Who is compared, at which job: the one table that feeds the comparisons.

A new rival is a new line in `COMPARISONS`, a new job is a new `Comparison`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import indexplan as ip

Job = Callable[[], Any]


@dataclass(frozen=True)
class Contender:
    """One way to do a job.

    `prepare(n)` sets up and returns the job, a function without arguments: only that is timed.
    """

    name: str
    version: str
    prepare: Callable[[int], Job]


@dataclass(frozen=True)
class Comparison:
    """A job that several can do; `check(output, n)` asserts, after timing, that it was done."""

    job: str
    sizes: tuple[int, ...]
    check: Callable[[Any, int], None]
    contenders: tuple[Contender, ...]


def prepare_shuffle(n: int) -> Job:
    """Set up a whole epoch of `Shuffle`; its kernel is compiled before, on another size."""
    ip.Shuffle(1000).take(0, 0, 1000)
    order = ip.Shuffle(n, seed=1)
    return lambda: order.take(0, 0, n)


def prepare_permutation(n: int) -> Job:
    """Set up NumPy's shuffle of the integers below n."""
    generator = np.random.default_rng(1)
    return lambda: generator.permutation(n)


def prepare_randperm(n: int) -> Job:
    """Set up torch's shuffle, with a generator of its own, as its samplers do."""
    generator = torch.Generator().manual_seed(1)
    return lambda: torch.randperm(n, generator=generator)


def check_permutation(output: Any, n: int) -> None:
    """Assert that `output` is int64 and holds every integer below n once."""
    array = np.asarray(output)
    assert array.dtype == np.int64
    assert array.shape == (n,)
    assert array.min() == 0
    assert array.max() == n - 1
    seen = np.zeros(n, np.bool_)
    seen[array] = True
    assert seen.all()


# All of them return n int64 in an array of their own, which is what a sampler keeps for an epoch.
# Nobody else's job is smaller: none of the rivals can compute one rank's share alone.
COMPARISONS = (
    Comparison(
        job="whole permutation",
        sizes=(10**3, 10**4, 10**5, 10**6, 10**7, 10**8),
        check=check_permutation,
        contenders=(
            Contender("indexplan.Shuffle", ip.__version__, prepare_shuffle),
            Contender("torch.randperm", torch.__version__, prepare_randperm),
            Contender("numpy Generator.permutation", np.__version__, prepare_permutation),
        ),
    ),
)
