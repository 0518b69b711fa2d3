"""Marks the samples that were seen, with one bit each, as a numba kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, WRITE_INT64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel(INT64, READ_INT64, WRITE_INT64)
def mark(n: int, indices: NDArray[np.int64], words: NDArray[np.int64]) -> int:
    """Set the bits of indices in [0, n), and return how many of them were not set before."""
    new = 0
    for index in indices:
        if 0 <= index < n:
            bit = np.int64(1) << (index & 63)
            word = words[index >> 6]
            if not word & bit:
                new += 1
            words[index >> 6] = word | bit
    return new
