"""No rank gets more of a source than chance gives, over millions of places.

Of places, rank r of W ranks that read B units each reads those with (place // B) % W == r.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from indexplan.orders.base import Int64
from indexplan.orders.phases import Pattern
from tests.support.mixing import shares_of

PLACES = 3_000_000


class Case(NamedTuple):
    """Shares, W, B, and where the places begin."""

    shares: tuple[int, ...]
    world_size: int
    batch_size: int
    begin: int


IN_STEP = Case((25, 26, 49), 4, 1, 0), Case((10, 3, 72, 15), 8, 1, 0)


class Found(NamedTuple):
    """What counts say of a mixture: the chi-square of those by source and rank, and two z.

    These are of normal draws where it favours no rank. z_of_one is the largest of a single count,
    and z_of_steps of how often a rank meets the same source one, two or three steps later.
    """

    chi_square: float
    freedom: int
    z_of_one: float
    z_of_steps: float


def dealt(case: Case, seed: int) -> Iterator[Int64]:
    """Yield the sources of some 65,536 places at a time, whole steps, as the library deals them."""
    some = Pattern(case.shares, 0, np.array([seed, 1], np.uint32))
    step = case.world_size * case.batch_size
    size = max(4, 2**16 // step) * step
    for place in range(case.begin, case.begin + PLACES, size):
        sources, numbers = np.empty(size, np.int32), np.empty(size, np.int64)
        base = np.zeros(len(case.shares), np.int64)
        some.deal(place, base, np.array([0]), np.array([size]), sources, numbers)
        yield sources.astype(np.int64)


def counted(case: Case, seed: int) -> Found:
    """Count what ranks get."""
    step = case.world_size * case.batch_size
    odds = np.array(case.shares) / sum(case.shares)
    k = len(odds)
    counts = np.zeros((k, case.world_size))
    equal, compared = np.zeros(3), np.zeros(3)
    for sources in dealt(case, seed):
        rank = np.arange(len(sources)) // case.batch_size % case.world_size
        cells = np.bincount(sources * case.world_size + rank, minlength=k * case.world_size)
        counts += cells.reshape(k, case.world_size)
        for later in (1, 2, 3):
            equal[later - 1] += np.count_nonzero(
                sources[later * step :] == sources[: -later * step]
            )
            compared[later - 1] += len(sources) - later * step
    expected = counts.sum(axis=1, keepdims=True) / case.world_size
    z = (counts - expected) / np.sqrt(np.maximum(expected * (1 - 1 / case.world_size), 1e-9))
    some = expected[:, 0] >= 5
    chi = float((((counts - expected) ** 2)[some] / expected[some]).sum())
    freedom = int(some.sum()) * (case.world_size - 1)
    same = float((odds**2).sum())
    off = (equal - compared * same) / np.sqrt(np.maximum(compared * same * (1 - same), 1))
    largest = float(abs(z[some]).max(initial=0))
    return Found(chi, freedom, largest, float(off.max()) if same < 1 else 0.0)


def cases(num: int) -> Iterator[Case]:
    """Draw cases: weights of all kinds, some of them in step with the ranks."""
    rng = np.random.default_rng(1)
    for _ in range(num):
        world_size = int(rng.choice([2, 3, 4, 5, 7, 8, 12, 16, 32, 64]))
        batch_size = int(rng.choice([1, 1, 2, 4, 8, 32]))
        k = int(rng.choice([2, 2, 3, 3, 4, 5, 8, 12, 30, 100, 500]))
        kind = rng.integers(6)
        weights = rng.dirichlet(np.full(k, rng.choice([0.5, 1, 5])))
        if kind < 4:  # one to four decimals
            scale = 10 ** max(int(kind) + 1, len(str(k)))
        else:  # multiples of 1 / W or 1 / (W * B)
            scale = world_size * (batch_size if kind == 5 else 1)
            scale *= -(-k // scale)
        whole = np.maximum(1, np.rint(weights * scale)).astype(int).tolist()
        if rng.random() < 0.2:  # any numbers
            whole = np.maximum(1, (weights * 2**30)).astype(int).tolist()
        begin = int(rng.choice([0, 0, 2**40 + 12345])) // (world_size * batch_size)
        shares = shares_of(whole)
        yield Case(shares, world_size, batch_size, begin * world_size * batch_size)


def test_no_rank_is_favoured_in_millions_of_places() -> None:
    """What is too little to be seen in 65,536 places would be seen here."""
    chi_square = freedom = 0.0
    for number, case in enumerate([*cases(60), *IN_STEP]):
        found = counted(case, number)
        chance = chi2.sf(found.chi_square, found.freedom) if found.freedom else 1.0
        assert chance > 3e-7, (case, found)  # which is not seen in thousands of cases
        assert found.z_of_one <= 6.5, (case, found)
        assert found.z_of_steps <= 6, (case, found)
        chi_square, freedom = chi_square + found.chi_square, freedom + found.freedom
    assert 0.8 < chi_square / freedom < 1.01
