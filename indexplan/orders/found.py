"""The reads that an order has found, (which of the samples, position), by sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import Cure, IndexPlanError, wrong

Int64 = NDArray[np.int64]

MOST_READS = 2**27  # most reads that one call lists: 1 GiB of positions
MOST_TOLD = 2**16  # most reads of a sample that are put into words


def by_sample(which: Int64, positions: Int64, count: int) -> tuple[Int64, Int64]:
    """Return the positions of each of `count` samples, rising, and the offsets between samples."""
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(which, minlength=count), out=offsets[1:])
    if (which[1:] > which[:-1]).all():  # at most one read of each, sorted already
        return positions, offsets
    rising = np.lexsort((positions, which))
    return positions[rising], offsets


def first_of(which: Int64, positions: Int64, count: int) -> Int64:
    """Return the first position of each of `count` samples; -1 where there is none."""
    if len(which) == count and (which[1:] > which[:-1]).all():
        return positions
    none = np.iinfo(np.int64).max
    first = np.full(count, none)
    np.minimum.at(first, which, positions)
    first[first == none] = -1
    return first


def too_many(reads: int) -> IndexPlanError:
    """Return the error that there are more reads than one call lists."""
    cure = "ask for fewer samples at a time, or for their count, or use smaller epochs"
    return wrong("the number of reads to list", f"at most {MOST_READS}", reads, cure)


def check_told(reads: int) -> None:
    """Raise `IndexPlanError` if a sample has more reads than are put into words."""
    if reads > MOST_TOLD:
        cure = Cure("call plan.locate_all or plan.order.count", "call plan.order.count in Python")
        rule = f"at most {MOST_TOLD} in an epoch, to be explained"
        raise wrong("the reads of a sample", rule, reads, cure)
