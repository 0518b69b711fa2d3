"""Sorts samples by integers in linear time, some bits at a time, the lowest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import (
    INT64,
    READ_INT64,
    READ_UINT32,
    WRITE_INT64,
    WRITE_UINT32,
    kernel,
)
from indexplan.kernels.philox import U64

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int64s: TypeAlias = NDArray[np.int64]
    UInt32s: TypeAlias = NDArray[np.uint32]

DIGIT = 16
LAST = 2**DIGIT - 1
CARRIED_DIGIT = 12  # so that all places that are written to stay in the cache
LAST_CARRIED = 2**CARRIED_DIGIT - 1


@kernel(READ_INT64, INT64, READ_UINT32, WRITE_UINT32, WRITE_INT64)
def sort_by_digit(keys: Int64s, shift: int, rows: UInt32s, out: UInt32s, ends: Int64s) -> None:
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
    ends : int64 (2**16,)
        Gets where the samples of each digit end in `out`.
    """
    ends[:] = 0
    for k in range(len(rows)):
        ends[keys[rows[k]] >> shift & LAST] += 1
    begin = 0
    for digit in range(len(ends)):
        num, ends[digit] = ends[digit], begin
        begin += num
    for k in range(len(rows)):
        digit = keys[rows[k]] >> shift & LAST
        out[ends[digit]] = rows[k]
        ends[digit] += 1


@kernel(READ_INT64, READ_UINT32)
def count_runs(keys: Int64s, rows: UInt32s) -> int:
    """Return how many different keys there are in `rows`, which is sorted by key."""
    num = 1
    for k in range(1, len(rows)):
        num += keys[rows[k]] != keys[rows[k - 1]]
    return num


@kernel(READ_INT64, READ_UINT32, WRITE_INT64)
def cut_runs(keys: Int64s, rows: UInt32s, places: Int64s) -> None:
    """Write where the samples of each key start in `rows`, which is sorted by key, and its end."""
    places[0], num = 0, 1
    for k in range(1, len(rows)):
        if keys[rows[k]] != keys[rows[k - 1]]:
            places[num] = k
            num += 1
    places[num] = len(rows)


@kernel(READ_INT64, READ_UINT32, INT64, WRITE_INT64, WRITE_UINT32)
def carry_by_digit(
    keys: Int64s, rows: UInt32s, shift: int, new_keys: Int64s, new_rows: UInt32s
) -> None:
    """Write keys and their rows sorted by 12 bits of the keys; the sort is stable.

    Keys that are carried along are read in turn. For keys of more than one digit, that takes half
    the time of `sort_by_digit`, which has to look each of them up.

    Parameters
    ----------
    keys : int64 (n,)
    rows : uint32 (n,)
    shift : int
        The first bit.
    new_keys, new_rows : int64 (n,), uint32 (n,)
        Get the sorted keys and rows.
    """
    ends = np.zeros(LAST_CARRIED + 2, np.int64)
    for k in range(len(keys)):
        ends[(keys[k] >> shift & LAST_CARRIED) + 1] += 1
    for digit in range(LAST_CARRIED):
        ends[digit + 1] += ends[digit]
    for k in range(len(keys)):
        digit = keys[k] >> shift & LAST_CARRIED
        new_keys[ends[digit]], new_rows[ends[digit]] = keys[k], rows[k]
        ends[digit] += 1


def sort_rows(keys: Int64s, bits: int) -> tuple[Int64s, NDArray[np.integer]]:
    """Return some keys sorted, and the row of each; rows of equal keys in turn.

    Parameters
    ----------
    keys : int64 (n,)
        Integers from 0 to 2**bits - 1, of 64 bits without a sign.
    bits : int
        1 <= bits <= 64.

    Returns
    -------
    keys : int64 (n,)
    rows : uint32, or int64 from more than 2**32 on, shape (n,)
    """
    if len(keys) > 2**32:
        rows = np.argsort(keys.view(U64), kind="stable")
        return keys[rows], rows
    rows = np.arange(len(keys), dtype=np.uint32)
    new_keys, new_rows = np.empty_like(keys), np.empty_like(rows)
    for shift in range(0, bits, CARRIED_DIGIT):
        carry_by_digit(keys, rows, shift, new_keys, new_rows)
        room = keys if shift else np.empty_like(keys)  # not the caller's keys
        keys, rows, new_keys, new_rows = new_keys, new_rows, room, rows
    return keys, rows
