"""Marks the samples that were seen, with one bit each, as a numba kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, WRITE_INT64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel(INT64, READ_INT64, WRITE_INT64)
def mark(n: int, indices: NDArray[np.int64], words: NDArray[np.int64]) -> tuple[int, int, int, int]:
    """Set the bits of indices in [0, n), and return what was wrong.

    That is how many were set already, the smallest of these (n if none), how many are outside
    [0, n), and the smallest of these (0 if none).
    """
    repeated = outside = example = 0
    first = n
    for index in indices:
        if index < 0 or index >= n:
            example = index if outside == 0 else min(example, index)
            outside += 1
            continue
        bit = np.int64(1) << (index & 63)
        word = words[index >> 6]
        if word & bit:
            repeated += 1
            first = min(first, index)
        words[index >> 6] = word | bit
    return repeated, first, outside, example
