"""Easy samples first: a mixture of bins of difficulty, of which more and more are open."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from indexplan.errors import integer, wrong
from indexplan.orders.columns import Column
from indexplan.orders.mixture import Mixture
from indexplan.orders.shares import PERIOD
from indexplan.orders.shuffle import Shuffle
from indexplan.orders.subset import Subset
from indexplan.seeds import MIXTURE, check_seed, key_words

BINS = 100
MOST_BINS = 2**12
STAGES = "pass [(0, 0.3), (10**6, 1)]: from sample 0 on the easiest 0.3, later all"


def curriculum(
    difficulty: Column | ArrayLike | str | os.PathLike[str],
    stages: Sequence[tuple[int, float]],
    *,
    num_bins: int | None = None,
    epoch_size: int | str | None = None,
    seed: int = 0,
) -> Subset:
    """Return an order that reads the easiest samples first, and harder ones later.

    Samples are sorted by difficulty and cut into bins whose sizes differ by at most one. A stage
    opens the first of them; their samples are read equally often, shuffled. No sample of a bin is
    read again before all of the bin were, whatever opens meanwhile; a bin that was closed continues
    where it stood.

    Parameters
    ----------
    difficulty : Column, array_like or path, shape (num_samples,)
        For each sample; equal ones keep the dataset's order.
    stages : sequence of (int, number)
        Units of the whole run, all epochs one after another, rising from 0; and which part of the
        samples is open from there on, above 0 and at most 1: so many bins of the num_bins, rounded
        up. As bins differ by a sample, they hold less than one sample less than the part, or more.
    num_bins : int, optional
        1 <= num_bins <= 4,096, at most num_samples; by default 100, if there are as many samples.
    epoch_size, seed
        As of a `Mixture`.

    Returns
    -------
    Subset
        Over a `Mixture` of the bins, in the field `order`.

    Raises
    ------
    IndexPlanError
        If one of them is something else, or a difficulty is NaN.

    Notes
    -----
    Bin i of b holds the samples [n * i // b, n * (i + 1) // b) of the n that are sorted, and reads
    them by a `Shuffle` whose seed is the first four key words of purpose 6 and "epoch" 1 + i, the
    lowest first. Bins are weighted by their sizes up to 65,536 samples, and equally beyond: there
    an exact period would be too long, and the sizes differ by next to nothing.

    For one pass from easy to hard, mixed among neighbours, sort by hand:
    `Subset(LocalShuffle(n, window), np.argsort(difficulty, kind="stable"), n)`.

    Examples
    --------
    >>> import indexplan as ip
    >>> lengths = np.array([9, 1, 5, 3, 7, 2, 8, 4, 6, 10])
    >>> order = ip.curriculum(lengths, [(0, 0.4), (8, 1)], num_bins=5, epoch_size=8)
    >>> sorted(lengths[order.take(0, 0, 8)].tolist())
    [1, 1, 2, 2, 3, 3, 4, 4]
    >>> int(lengths[order.take(1, 0, 8)].max())
    10
    """
    column, seed = Column.of(difficulty), check_seed(seed)
    n, numbers = len(column), column.array
    if not n or (numbers.dtype.kind == "f" and np.isnan(numbers).any()):
        got = "a NaN" if n else "none"
        raise wrong("difficulty", "a number for each sample", got, "give each sample one")
    most = min(n, MOST_BINS)
    bins = min(n, BINS) if num_bins is None else num_bins
    bins = integer("num_bins", bins, 1, most + 1, "leave it out")
    ends = [n * i // bins for i in range(bins + 1)]
    sizes = [stop - start for start, stop in pairwise(ends)]
    weights = sizes if n <= PERIOD else [1] * bins
    phases = [
        (place, {f"bin {i}": weights[i] * (i < opened) for i in range(bins)})
        for place, opened in _opened(stages, bins)
    ]
    sources = {f"bin {i}": Shuffle(size, seed=_seed(seed, i)) for i, size in enumerate(sizes)}
    mixture = Mixture(sources, phases, epoch_size=epoch_size, seed=seed)
    by_difficulty = np.argsort(numbers, kind="stable")
    short = by_difficulty.astype("<u4") if n <= 2**32 else by_difficulty
    return Subset(mixture, Column(short), n)


def _opened(stages: Any, bins: int) -> list[tuple[Any, int]]:
    """Return where stages begin, and how many bins are open in each."""
    rule = "places, each with a part of the samples, above 0 and at most 1"
    try:
        parts = [(place, Fraction(repr(float(part)))) for place, part in stages]
    except Exception:  # whatever somebody's classes raise
        raise wrong("stages", rule, stages, STAGES) from None
    if not parts or not all(0 < part <= 1 for _, part in parts):
        raise wrong("stages", rule, stages, STAGES)
    return [(place, math.ceil(part * bins)) for place, part in parts]


def _seed(seed: int, number: int) -> int:
    """Return the seed of a bin."""
    words = key_words(seed, MIXTURE, 1 + number, 4).tolist()
    return sum(word << 32 * i for i, word in enumerate(words))
