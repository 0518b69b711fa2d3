"""What `find` returns, written as other shapes of the same answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]


def at(positions: Int64) -> tuple[Int64, Int64]:
    """Return the reads of samples of which each has one position, or -1."""
    which = np.flatnonzero(positions >= 0)
    return which, positions[which]
