"""What each rank reads in a step, or in arrays of steps: the last part of the partition.

In a step, a rank gets as many units as there are positions congruent to it modulo world_size (under
"carry", places), and the ranks' shares are in rank order. The rule depends on positions only, so it
does not matter where a run was stopped. Positions may be past an epoch's end, as in a `Steps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexplan.errors import invalid
from indexplan.partition.steps import Int64, Steps

MOST_UNITS = 2**27  # units of a rank in a step that are listed: 1 GiB of positions

# The last step may end past 2**63, by less than a global batch, so int64 is too small.
UInt64 = NDArray[np.uint64]

# (epoch, starts, stops): intervals of positions of an epoch, in order of reading
Runs: TypeAlias = "list[tuple[int, Int64, Int64]]"


def below(number: int, rank: int, world_size: int) -> int:
    """Return how many of the numbers before `number` are less than `rank` modulo world_size."""
    return number // world_size * rank + min(number % world_size, rank)


def share(steps: Steps, world_size: int, rank: int, step: int) -> tuple[int, int]:
    """Return the positions [start, stop) that a rank reads in a step."""
    start, stop = steps.interval(step)
    low, high = start + steps.origin, stop + steps.origin
    before = start + below(high, rank, world_size) - below(low, rank, world_size)
    after = start + below(high, rank + 1, world_size) - below(low, rank + 1, world_size)
    return before, after


def step_bounds(steps: Steps, start_step: int, stop_step: int) -> tuple[int, UInt64]:
    """Return where the steps [start_step, stop_step) start, and where the last of them stops.

    Returns
    -------
    anchor : int
        The position at which `start_step` starts.
    bounds : numpy.ndarray
        uint64, shape (stop_step - start_step + 1,), distances from the anchor; bounds[0] == 0.
    """
    if start_step == stop_step:
        return steps.end, np.zeros(1, np.uint64)
    anchor = steps.interval(start_step)[0]
    parts = [np.zeros(1, np.uint64)]
    for span in steps.spans:
        low, high = max(start_step, span.step), min(stop_step, span.step + span.num_steps)
        if low >= high:
            continue
        size, num_large = divmod(span.length, span.num_steps)
        numbers = np.arange(1, high - low + 1, dtype=np.uint64)
        # split() of the steps past `low`, as distances from the one at which `low` starts
        large = np.minimum(numbers, np.uint64(max(0, num_large - (low - span.step))))
        start = np.uint64(span.bound(low) - anchor)
        parts.append(numbers * np.uint64(size) + large + start)
    return anchor, np.concatenate(parts)


def cuts(
    steps: Steps, world_size: int, ranks: Iterable[int], start_step: int, stop_step: int
) -> tuple[int, list[UInt64]]:
    """Return where the shares of some ranks start, in the steps [start_step, stop_step).

    Returns
    -------
    anchor : int
        The position at which `start_step` starts.
    starts : list of numpy.ndarray
        For each rank uint64, shape (stop_step - start_step,), distances from the anchor; for
        world_size, where the steps stop.
    """
    anchor, bounds = step_bounds(steps, start_step, stop_step)
    world = np.uint64(world_size)
    numbers = bounds + np.uint64((anchor + steps.origin) % world_size)
    whole, part = numbers // world, numbers % world
    before = (whole * r + np.minimum(part, r) for r in map(np.uint64, ranks))
    return anchor, [bounds[:-1] + each[1:] - each[:-1] for each in before]


def batch_sizes(steps: Steps, world_size: int, rank: int, start_step: int, stop_step: int) -> Int64:
    """Return how many positions a rank reads in each of the steps [start_step, stop_step)."""
    _, (starts, stops) = cuts(steps, world_size, (rank, rank + 1), start_step, stop_step)
    return (stops - starts).astype(np.int64)


def runs(
    steps: Steps,
    world_size: int,
    rank: int,
    start_step: int,
    stop_step: int,
    stop_rank: int | None = None,
) -> Runs:
    """Return the positions that a rank, or several consecutive ones, read in some steps.

    Parameters
    ----------
    rank, stop_rank : int
        The ranks [rank, stop_rank); by default, only `rank`.
    start_step, stop_step : int
        The steps [start_step, stop_step).

    Returns
    -------
    list of (epoch, starts, stops)
        In order of reading; starts and stops are int64, shape (num_runs,): intervals of
        positions of that epoch. One entry, or more where a step under "carry" leaves its epoch.
    """
    ranks = rank, rank + 1 if stop_rank is None else stop_rank
    anchor, (starts, stops) = cuts(steps, world_size, ranks, start_step, stop_step)
    _check_listed(int((stops - starts).max(initial=0)), ranks[1] - ranks[0])
    # Only the last step can run past the end of its sub-epoch; then it is cut into intervals.
    cut = stop_step == steps.num_steps > start_step and steps.end > steps.stop
    inside = len(starts) - 1 if cut else len(starts)
    pairs = [(array[:inside] + np.uint64(anchor)).astype(np.int64) for array in (starts, stops)]
    result = [(steps.epoch, pairs[0], pairs[1])]
    if not cut:
        return result
    last = grouped(steps.positions(anchor + int(starts[-1]), anchor + int(stops[-1])))
    if last and last[0][0] == steps.epoch:
        _, *more = last.pop(0)
        joined = [np.concatenate(both) for both in zip(pairs, more, strict=True)]
        result = [(steps.epoch, joined[0], joined[1])]
    return result + last


def batch_runs(steps: Steps, world_size: int, rank: int, step: int) -> Runs:
    """Return the positions that a rank reads in one step, as `runs` does, but faster."""
    start, stop = share(steps, world_size, rank, step)
    _check_listed(stop - start, 1)
    return grouped(steps.positions(start, stop))


def _check_listed(num_units: int, num_ranks: int) -> None:
    if num_units > MOST_UNITS * num_ranks:
        rule, got = f"at most {MOST_UNITS} units of each rank", num_units // num_ranks
        raise invalid("a step that is listed", rule, got, "use a smaller batch size")


def grouped(intervals: list[tuple[int, int, int]]) -> Runs:
    """Return intervals of positions as runs, with one entry for each epoch."""
    if not intervals:
        return []
    if len(intervals) == 1:
        epoch, start, stop = intervals[0]
        return [(epoch, np.array([start], np.int64), np.array([stop], np.int64))]
    epochs, starts, stops = np.array(intervals, np.int64).T.copy()
    cuts = [0, *(np.flatnonzero(np.diff(epochs)) + 1).tolist(), len(epochs)]
    return [(int(epochs[a]), starts[a:b], stops[a:b]) for a, b in pairwise(cuts)]
