"""The measurement of balance: its plans have whole steps, and its function deals each unit once."""

from __future__ import annotations

import numpy as np

from benchmarks.measure.balance import dealt_to_ranks


def test_units_are_dealt_once_and_evenly() -> None:
    """Ranks get every unit once, as many as each other but one, and nearly the same costs."""
    costs = np.random.default_rng(0).integers(1, 4096, 1003)
    dealt = dealt_to_ranks(costs, 32)
    assert list(range(1003)) == sorted(np.concatenate(dealt).tolist())
    assert {31, 32} == {len(each) for each in dealt}
    work = np.array([costs[each].sum() for each in dealt])
    assert work.max() / work.mean() < 1.01
