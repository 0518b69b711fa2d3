"""Sorts samples by integers in linear time, some bits at a time, the lowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_UINT32,
    WRITE_INT64,
    WRITE_UINT32,
    kernel,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    UInt32s: TypeAlias = NDArray[np.uint32]

DIGIT = 12  # so that all places that are written to stay in the cache
LAST = 2**DIGIT - 1
FEW = 2**16  # keys that NumPy sorts within 8 ms; to load a kernel takes 20 ms, to compile it 700


def _sort_by_digit(
    keys: NDArray[Any], rows: UInt32s, shift: int, new_keys: NDArray[Any], new_rows: UInt32s
) -> None:
    """Write keys and their rows sorted by 12 bits of the keys; the sort is stable.

    Keys are carried along, and read in turn: to look up the key of each row would take twice as
    long, and far more where the keys exceed the cache.

    Parameters
    ----------
    keys : int64 or uint32 (n,)
    rows : uint32 (n,)
    shift : int
        The first bit.
    new_keys, new_rows : int64 or uint32 (n,), uint32 (n,)
        Get the sorted keys and rows.
    """
    ends = np.zeros(LAST + 2, np.int64)
    for k in range(len(keys)):
        ends[(keys[k] >> shift & LAST) + 1] += 1
    for digit in range(LAST):
        ends[digit + 1] += ends[digit]
    for k in range(len(keys)):
        digit = keys[k] >> shift & LAST
        new_keys[ends[digit]], new_rows[ends[digit]] = keys[k], rows[k]
        ends[digit] += 1


_sort_int64 = kernel(READ_INT64, READ_UINT32, INT64, WRITE_INT64, WRITE_UINT32)(_sort_by_digit)
_sort_uint32 = kernel(READ_UINT32, READ_UINT32, INT64, WRITE_UINT32, WRITE_UINT32)(_sort_by_digit)


def sort_rows(keys: NDArray[Any], bits: int) -> tuple[NDArray[Any], NDArray[np.integer]]:
    """Return some keys sorted, and the row of each; rows of equal keys in turn.

    It takes two arrays of keys and two of rows, together 16 bytes a row for uint32.

    Parameters
    ----------
    keys : int64 or uint32 (n,)
        Integers from 0 to 2**bits - 1, without a sign. They are overwritten.
    bits : int
        1 <= bits <= 64.

    Returns
    -------
    keys : int64 or uint32 (n,)
    rows : uint32, or int64 from more than 2**32 on, shape (n,)
    """
    if not FEW < len(keys) <= 2**32:
        rows = np.argsort(keys.view(f"u{keys.itemsize}"), kind="stable")
        return keys[rows], rows.astype(np.uint32) if len(keys) <= 2**32 else rows
    sort = _sort_uint32 if keys.dtype == np.uint32 else _sort_int64
    rows = np.arange(len(keys), dtype=np.uint32)
    new_keys, new_rows = np.empty_like(keys), np.empty_like(rows)
    for shift in range(0, bits, DIGIT):
        sort(keys, rows, shift, new_keys, new_rows)
        keys, rows, new_keys, new_rows = new_keys, new_rows, keys, rows
    return keys, rows
