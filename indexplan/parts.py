"""Things spread over parts as evenly as can be: sub-epochs of an epoch, steps of a span."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integer = TypeVar("Integer", np.int64, np.uint64)


def split(total: int, parts: int, part: int) -> int:
    """Return where `part` starts when `total` things are spread over `parts` parts.

    The first `total % parts` parts get one thing more than the others.
    """
    return part * (total // parts) + min(part, total % parts)


def part_of(total: int, parts: int, things: NDArray[Integer]) -> NDArray[Integer]:
    """Return the part, by the rule of `split`, that holds each of `things`.

    With the shape of `things`, and their dtype, int64 or uint64.
    """
    if parts == 1:
        return np.zeros_like(things)
    as_theirs = things.dtype.type
    small, num_large = divmod(total, parts)
    bound = as_theirs(num_large * (small + 1))
    after = as_theirs(num_large) + (things - bound) // as_theirs(max(small, 1))
    found: NDArray[Integer] = np.where(things < bound, things // as_theirs(small + 1), after)
    return found
