"""The total of a step over all ranks: its samples, or the sum of a number for each sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import invalid
from indexplan.orders.columns import INTEGERS, Column
from indexplan.partition.steps import Int64, Steps
from indexplan.plan.draw import deal_offsets, take
from indexplan.plan.layout import Layout

AT_ONCE = 2**16  # units that are drawn at a time


def step_total(layout: Layout, column: Any, epoch: int, sub_epoch: int | None, step: int) -> int:
    """Return what `Plan.step_total` does."""
    if column is not None and layout.order.traits.cuts_samples:
        rule = "None, as the order cuts samples and a step reads parts of them"
        cure = (
            "multiply step_size by the order's length for tokens, or add up the spans of plan.units"
        )
        raise invalid("a column to sum", rule, column, cure)
    kept, numbers = (None, None) if column is None else _numbers(column, layout.order.num_samples)
    steps = layout.steps(epoch, sub_epoch)
    total = 0
    for where in valid_positions(steps, layout.step(steps, step)):
        if numbers is not None:
            total += _sum(numbers[take(layout.order, [where])])
        else:
            total += int(deal_offsets(layout.order, [where])[-1])
    if kept is not None:
        kept.check_file(gone=True)
    if not -(2**63) <= total < 2**63:
        cure = "count in larger units, or use smaller batches"
        raise invalid("the sum of a step", "from -2**63 to 2**63 - 1", total, cure)
    return total


def _numbers(column: Any, num_samples: int) -> tuple[Column | None, NDArray[Any]]:
    """Return a number for each sample, and their column; an array or mapped file is not copied."""
    array = isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray)
    plain = array and column.dtype.kind in "iu" and column.ndim == 1
    kept = None if plain else Column.of(column, INTEGERS, "a column to sum")
    row: NDArray[Any] = column if kept is None else kept.array
    if len(row) != num_samples:
        rule = f"{num_samples} numbers, one for each sample"
        cure = "pass a number for each sample of the dataset, or None to count samples"
        raise invalid("a column to sum", rule, len(row), cure)
    return kept, row


def valid_positions(steps: Steps, step: int) -> list[tuple[int, Int64, Int64]]:
    """Return the positions that all ranks read in a step, without padding: epoch, starts, stops."""
    start, stop = steps.interval(step)
    runs = []
    for epoch, first, last in steps.positions(start, start + steps.valid(start, stop)):
        for low in range(first, last, AT_ONCE):
            high = min(low + AT_ONCE, last)
            runs.append((epoch, np.array([low], np.int64), np.array([high], np.int64)))
    return runs


def _sum(numbers: NDArray[Any]) -> int:
    """Return the exact sum of integers, however large it is."""
    if numbers.dtype.kind == "u" and numbers.dtype.itemsize == 8:  # in either byte order
        return int((numbers >> 32).sum()) * 2**32 + int((numbers & (2**32 - 1)).sum())
    wide = numbers.astype(np.int64)
    return int((wide >> 32).sum()) * 2**32 + int((wide & (2**32 - 1)).sum())
