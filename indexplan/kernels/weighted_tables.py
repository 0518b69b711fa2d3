"""The tables in which weighted draws look up samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexplan.kernels.thresholds import add_up, fill_guide, fill_thresholds

NO_LIMIT = 2**63 - 1  # no scaled weight is above it


@dataclass(frozen=True, eq=False)
class Table:
    """Where each sample's share of an epoch begins, in the order of the keyed row.

    Attributes
    ----------
    thresholds : numpy.ndarray
        uint64, shape (n + 1,): T_0 to T_n.
    guide : numpy.ndarray
        uint32, shape (num_cells + 1,): for each cell of 2**shift numbers the last j with T_j up to
        the cell's first number, without the `coarse` lowest bits of j.
    shift, coarse : int
        The bits of a number inside a cell, and the bits that the guide leaves out.
    """

    thresholds: NDArray[np.uint64]
    guide: NDArray[np.uint32]
    shift: int
    coarse: int


def built(
    weights: NDArray[np.float64], size: int, max_repeats: int | None, words: NDArray[np.uint32]
) -> Table:
    """Build the table of some weights.

    Parameters
    ----------
    weights : numpy.ndarray
        float64, shape (n,), not negative and finite, some of them positive.
    size, max_repeats : int
        Draws in an epoch, and the most draws of a sample.
    words : numpy.ndarray
        uint32, shape (2 * num_rounds(n),): the key words of the row.
    """
    weights = np.require(weights, requirements="A").view(np.ndarray)
    n, bits = len(weights), 62 - size.bit_length()
    power = 62 - n.bit_length() - math.frexp(float(weights.max()))[1]
    _, total = add_up(weights, *_factors(power), NO_LIMIT)
    factors = _factors(power + max(0, 61 - total.bit_length()))
    _, total = add_up(weights, *factors, NO_LIMIT)
    limit, left, num_capped = NO_LIMIT, size, 0
    if max_repeats is not None:
        # samples above the limit are capped; the others share what is left, and the limit sinks
        # until no other sample is above it
        while (lower := max_repeats * total // left) < limit:
            limit = lower
            num_capped, total = add_up(weights, *factors, limit)
            left = size - max_repeats * num_capped
    thresholds = np.empty(n + 1, np.uint64)
    step = max_repeats << bits if max_repeats is not None and num_capped else 0
    fill_thresholds(weights, words, *factors, limit, step, left << bits, total, thresholds)
    shift, coarse = 62 - (n - 1).bit_length(), max(0, (n - 1).bit_length() - 32)
    guide = np.empty((((size << bits) - 1) >> shift) + 2, np.uint32)
    fill_guide(thresholds, shift, coarse, guide)
    return Table(thresholds, guide, shift, coarse)


def _factors(power: int) -> tuple[float, float]:
    """Return two powers of two whose product is 2**power, which may be no float itself."""
    return math.ldexp(1.0, power // 2), math.ldexp(1.0, power - power // 2)
