"""Sorts samples by integers in linear time, 16 bits at a time, the lowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import INT64, READ_INT64, READ_UINT32, WRITE_UINT32, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]

DIGIT = 16
LAST = 2**DIGIT - 1


@kernel(READ_INT64, INT64, READ_UINT32, WRITE_UINT32)
def sort_by_digit(keys: Int64s, shift: int, rows: UInt32s, out: UInt32s) -> Int64s:
    """Write samples sorted by 16 bits of their keys, from bit `shift` on; the sort is stable.

    Parameters
    ----------
    keys : int64 (n,)
        The key of each sample, at least 0.
    shift : int
        The first bit.
    rows : uint32 (n,)
        The samples, in some order.
    out : uint32 (n,)
        Gets the sorted samples.

    Returns
    -------
    ends : int64 (2**16,)
        Where the samples of each digit end in `out`.
    """
    ends = np.zeros(LAST + 2, np.int64)
    for k in range(len(rows)):
        ends[(keys[rows[k]] >> shift & LAST) + 1] += 1
    for digit in range(LAST):
        ends[digit + 1] += ends[digit]
    for k in range(len(rows)):
        digit = keys[rows[k]] >> shift & LAST
        out[ends[digit]] = rows[k]
        ends[digit] += 1
    return ends[:-1]


@kernel(READ_INT64, READ_UINT32)
def cut_runs(keys: Int64s, rows: UInt32s) -> Int64s:
    """Return where the samples of each key start in `rows`, which is sorted by key, and its end."""
    num = 1
    for k in range(1, len(rows)):
        num += keys[rows[k]] != keys[rows[k - 1]]
    places = np.zeros(num + 1, np.int64)
    places[num] = len(rows)
    num = 1
    for k in range(1, len(rows)):
        if keys[rows[k]] != keys[rows[k - 1]]:
            places[num] = k
            num += 1
    return places
