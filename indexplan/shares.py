"""What each rank reads: the partition's last cut, for one step or for arrays of steps.

Within a step, a rank gets as many units as there are places congruent to it modulo world_size,
and the ranks' shares lie in rank order. The rule looks at places alone, so it does not matter
where a run was cut.
"""

from __future__ import annotations

import numpy as np

from indexplan.partition import Int64, Layout


def below(place: int, rank: int, world_size: int) -> int:
    """Return how many places before `place` are, modulo world_size, smaller than `rank`."""
    return place // world_size * rank + min(place % world_size, rank)


def share(layout: Layout, world_size: int, rank: int, step: int) -> tuple[int, int]:
    """Return the places [start, stop) that a rank reads in a step."""
    start, stop = layout.interval(step)
    low, high = start + layout.origin, stop + layout.origin
    before = start + below(high, rank, world_size) - below(low, rank, world_size)
    after = start + below(high, rank + 1, world_size) - below(low, rank + 1, world_size)
    return before, after


def step_bounds(layout: Layout, start_step: int, stop_step: int) -> tuple[int, Int64]:
    """Return where the steps [start_step, stop_step) start, and where the last of them stops.

    Returns
    -------
    anchor : int
        The place at which `start_step` starts.
    bounds : numpy.ndarray
        int64, shape (stop_step - start_step + 1,), distances from the anchor; bounds[0] == 0.
    """
    if start_step == stop_step:
        return layout.end, np.zeros(1, np.int64)
    anchor = layout.interval(start_step)[0]
    parts = [np.zeros(1, np.int64)]
    for span in layout.spans:
        low, high = max(start_step, span.step), min(stop_step, span.step + span.num_steps)
        if low >= high:
            continue
        size, num_large = divmod(span.length, span.num_steps)
        numbers = np.arange(1, high - low + 1, dtype=np.int64)
        # split() of the steps past `low`, as distances from the one at which `low` starts
        large = np.minimum(numbers, max(0, num_large - (low - span.step)))
        parts.append(numbers * size + large + (span.bound(low) - anchor))
    return anchor, np.concatenate(parts)


def shares(
    layout: Layout, world_size: int, rank: int, start_step: int, stop_step: int
) -> tuple[int, Int64, Int64]:
    """Return the places that a rank reads in the steps [start_step, stop_step).

    Returns
    -------
    anchor : int
        The place at which `start_step` starts.
    starts, stops : numpy.ndarray
        int64, shape (stop_step - start_step,), distances from the anchor.
    """
    anchor, bounds = step_bounds(layout, start_step, stop_step)
    places = bounds + (anchor + layout.origin) % world_size
    whole, part = places // world_size, places % world_size
    low = whole * rank + np.minimum(part, rank)
    high = whole * (rank + 1) + np.minimum(part, rank + 1)
    return anchor, bounds[:-1] + np.diff(low), bounds[:-1] + np.diff(high)


def runs(
    layout: Layout, world_size: int, rank: int, start_step: int, stop_step: int
) -> list[tuple[int, Int64, Int64]]:
    """Return the positions that a rank reads in the steps [start_step, stop_step).

    Returns
    -------
    list of (epoch, starts, stops)
        In order of reading; starts and stops are int64, shape (num_runs,): intervals of
        positions of that epoch. One entry, except under "carry" where a step leaves its epoch.
    """
    anchor, starts, stops = shares(layout, world_size, rank, start_step, stop_step)
    # Only the last step can run past the end of its sub-epoch, and so need cutting in pieces.
    cut = stop_step == layout.num_steps > start_step and layout.end > layout.stop
    inside = len(starts) - 1 if cut else len(starts)
    result = [(layout.epoch, starts[:inside] + anchor, stops[:inside] + anchor)]
    if not cut:
        return result
    last = layout.pieces(anchor + int(starts[-1]), anchor + int(stops[-1]))
    for epoch in dict.fromkeys(epoch for epoch, _, _ in last):
        bounds = [(start, stop) for piece_epoch, start, stop in last if piece_epoch == epoch]
        pieces = np.array(bounds, np.int64)
        if epoch == layout.epoch:
            _, starts, stops = result.pop()
            pieces = np.concatenate([np.stack([starts, stops], axis=1), pieces])
        result.append((epoch, pieces[:, 0].copy(), pieces[:, 1].copy()))
    return result
