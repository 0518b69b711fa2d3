"""Copies runs of a mapped file's numbers, as a numba kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, READ_UINT32, WRITE_INT64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel(READ_UINT32, INT64, READ_INT64, READ_INT64, READ_INT64, WRITE_INT64)
def gather(
    words: NDArray[np.uint32],
    each: int,
    lows: NDArray[np.int64],
    sizes: NDArray[np.int64],
    begins: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Copy some runs of numbers, each of one word or two, from `lows` to `begins` of `out`."""
    for run in range(len(lows)):
        size = sizes[run]
        # slices, as what is indexed from 0 on becomes vector code
        here = out[begins[run] : begins[run] + size]
        there = words[each * lows[run] : each * (lows[run] + size)]
        if each == 1:
            for i in range(size):
                here[i] = there[i]
            continue
        for i in range(size):
            here[i] = np.int64(there[2 * i + 1]) << 32 | np.int64(there[2 * i])
