"""Units of several sources, sorted by source and put back where they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from indexplan.kernels.compiling import READ_INT32, READ_INT64, WRITE_INT64, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32s: TypeAlias = NDArray[np.int32]
    Int64s: TypeAlias = NDArray[np.int64]


@kernel(
    READ_INT32,
    READ_INT64,
    READ_INT64,
    WRITE_INT64,
    WRITE_INT64,
    WRITE_INT64,
    WRITE_INT64,
    WRITE_INT64,
    WRITE_INT64,
)
def by_source(
    sources: Int32s,
    numbers: Int64s,
    sizes: Int64s,
    begins: Int64s,
    parts: Int64s,
    epochs: Int64s,
    cuts: Int64s,
    starts: Int64s,
    stops: Int64s,
) -> None:
    """Sort units by their source, as runs of positions of the sources' epochs.

    Parameters
    ----------
    sources, numbers : int32 and int64 (num,)
        The source of each unit in order of reading, and the unit's number in its stream.
    sizes : int64 (k,)
        Units in an epoch of each source.
    begins : int64 (k + 1,)
        Gets where the units of each source begin among all, and where the last ones end.
    parts : int64 (k + 1,)
        Gets where the epochs of each source begin among all, and where the last ones end.
    epochs, cuts : int64 (num,), int64 (num + 1,)
        Get the epochs, source by source, and where the runs of each begin and the last ones end.
    starts, stops : int64 (num,)
        Get the runs.
    """
    k, num = len(sizes), len(sources)
    ends = np.zeros(k, np.int64)
    for j in sources:
        ends[j] += 1
    total = 0
    for j in range(k):
        begins[j] = total
        total += ends[j]
        ends[j] = begins[j]
    begins[k] = total
    ordered = np.empty(num, np.int64)
    for i in range(num):
        j = sources[i]
        ordered[ends[j]] = numbers[i]
        ends[j] += 1
    runs = pieces = 0
    for j in range(k):
        parts[j] = pieces
        size, last, edge, of = sizes[j], -2, -1, -1
        for i in range(begins[j], ends[j]):
            number = ordered[i]
            if number == last + 1 and number != edge:
                stops[runs - 1] += 1
            else:
                epoch, position = divmod(number, size)
                edge = number - position + size
                if epoch != of:
                    epochs[pieces], cuts[pieces], of = epoch, runs, epoch
                    pieces += 1
                starts[runs], stops[runs] = position, position + 1
                runs += 1
            last = number
    parts[k], cuts[pieces] = pieces, runs


@kernel(READ_INT32, READ_INT64, READ_INT64, READ_INT64, WRITE_INT64)
def put_back(sources: Int32s, begins: Int64s, offsets: Int64s, drawn: Int64s, out: Int64s) -> None:
    """Write indices that were drawn source by source to the places of their units.

    Parameters
    ----------
    sources, begins
        As for `by_source`.
    offsets : int64 (k,)
        What to add to the indices of each source.
    drawn, out : int64 (num,)
        The indices by source; gets them by place.
    """
    at = begins.copy()
    for i in range(len(sources)):
        j = sources[i]
        out[i] = drawn[at[j]] + offsets[j]
        at[j] += 1
