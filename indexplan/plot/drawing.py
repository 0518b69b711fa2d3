"""What all pictures share: choosing what to draw, and writing numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import IndexPlanError
from indexplan.orders.columns import Column
from indexplan.plan.plan import Plan, layout_of


def first_of(plan: Plan, epoch: int | None, sub_epoch: int | None = None) -> tuple[int, int]:
    """Return which sub-epoch to draw: by default the first that is left to read."""
    resume = layout_of(plan).partition.resume
    begins = (0, 0) if resume is None else resume[:2]
    epoch = begins[0] if epoch is None else epoch
    first = begins[1] if epoch == begins[0] else 0
    return epoch, first if sub_epoch is None else sub_epoch


def evenly(start: int, stop: int, most: int) -> list[int]:
    """Return at most `most` of the integers in [start, stop), evenly spread, ends included."""
    if stop - start <= most:
        return list(range(start, stop))
    count = stop - start - 1
    return [start + count * i // (most - 1) for i in range(most)]


def rounded(start: int, stop: int, most: int) -> list[int]:
    """Return at most `most` integers of [start, stop): its ends, and round numbers between them.

    These are the multiples of the first of 1, 2, 5, 10, 20, 50, ... that gives few enough.
    """
    if stop - start <= most:
        return list(range(start, stop))
    each = -(-(stop - start) // (most - 3))
    power = 10 ** (len(str(each)) - 1)
    step = next(power * k for k in (1, 2, 5, 10) if power * k >= each)
    return [start, *range((start // step + 1) * step, stop - 1, step), stop - 1]


def short(number: float) -> str:
    """Write a number so short that a dozen fit below a picture: 953,675 or 1.25M; 1B is 10**9."""
    size = abs(number)
    if round(size) < 10**6:
        return f"{number:,.0f}"
    for unit, letter in ((10**6, "M"), (10**9, "B"), (10**12, "T")):
        if float(f"{size / unit:.3g}") < 1000:
            return f"{float(f'{number / unit:.3g}'):g}{letter}"
    return f"{number:.3g}".replace("e+", "e")


def labelled(count: int, most: int) -> list[int]:
    """Return which of `count` things to label: about `most`, equally far apart, and the last."""
    each = -(-count // most)
    chosen = list(range(0, count, each))
    if 2 * (count - 1 - chosen[-1]) < each:  # no room for both
        chosen.pop()
    return [*chosen, count - 1] if chosen[-1:] != [count - 1] else chosen


def of_many(shown: int, total: int, what: str) -> str:
    """Write how many of something a picture shows."""
    if shown == total:
        return f"{short(total)} {what}{'s' * (total != 1)}"
    return f"{short(shown)} of {short(total)} {what}s"


def values_of(plan: Plan, values: Any) -> NDArray[Any]:
    """Return a number for each sample; integers or floats, shape (num_samples,).

    Raises
    ------
    IndexPlanError
        If they are no numbers, or not one finite number for each sample.
    """
    found, num_samples = Column(values).array, plan.order.num_samples
    finite = np.count_nonzero(np.isfinite(found))
    if not len(found) == num_samples == finite:
        cure = "pass an array, or the path of a .npy file"
        rule = f"must be one finite number for each of {num_samples} samples"
        raise IndexPlanError("values", rule, f"{len(found)}, of which {finite} are finite", cure)
    return found
