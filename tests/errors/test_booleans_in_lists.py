"""A boolean in a list of numbers is refused, as booleans alone are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import indexplan as ip

ORDER = ip.Shuffle(10)
MIXED = ip.Mixture({"a": ip.Shuffle(10)}, {"a": 1})
WINDOWS = ip.DocumentWindows([5, 6, 7], 2)
PLAN = ip.Plan(ORDER, world_size=1, batch_size=2)
SHARDS = ip.Shards(
    kind="tar", whole_files=True, files=["a", "b", "c", "d"], num_bytes=[9] * 4,
    digests=["d"] * 4, parts=[1] * 4, sizes=[5] * 4,
)  # fmt: skip
TAKERS: dict[str, Callable[[Any], Any]] = {
    "take": lambda mixed: ORDER.take(0, mixed),
    "take, stops": lambda mixed: ORDER.take(0, [0, 0, 0], mixed),
    "offsets": lambda mixed: ORDER.offsets(0, mixed),
    "spans": lambda mixed: WINDOWS.spans(0, mixed),
    "locate": lambda mixed: ORDER.locate(0, mixed),
    "locate_all": lambda mixed: ORDER.locate_all(0, mixed),
    "count": lambda mixed: ORDER.count(0, mixed),
    "group_of": MIXED.group_of,
    "a plan's locate": lambda mixed: PLAN.locate(mixed, 0),
    "a plan's locate_all": lambda mixed: PLAN.locate_all(mixed, 0),
    "step_total": lambda mixed: PLAN.step_total([*mixed, *range(7)], 0, step=0),
    "shards' indices": SHARDS.locate,
    "Column": ip.Column,
    "Column of floats": lambda mixed: ip.Column(mixed, "floats"),
    "Subset": lambda mixed: ip.Subset(ORDER, [4, *mixed], 10),
    "Subset of a list that begins with one": lambda mixed: ip.Subset(ip.Shuffle(3), mixed, 3),
    "Weighted": ip.Weighted,
    "TokenBudget": lambda mixed: ip.TokenBudget(mixed, 8),
    "ClassBalanced": ip.ClassBalanced,
    "ShardShuffle": ip.ShardShuffle,
}


@pytest.mark.parametrize("taker", TAKERS)
def test_a_boolean_in_a_list_is_no_integer(taker: str) -> None:
    """True was read as 1."""
    with pytest.raises(ip.IndexPlanError, match=r"; got \[[0-9, ]*True, 2, 3"):
        TAKERS[taker]([True, 2, 3])


@pytest.mark.parametrize(
    "values",
    [
        (2, True),
        [2, np.False_],
        [[1, 2], [3, True]],
        [np.array([1, 2]), np.array([True, False])],
        [2, np.array(True)],
        [torch.tensor(2), torch.tensor(True)],
        deque([2, True]),
    ],
    ids=str,
)
def test_a_boolean_hides_nowhere(values: Any) -> None:
    """In tuples, inner lists, arrays and tensors."""
    with pytest.raises(ip.IndexPlanError, match="pass integers, such as an int64 array"):
        ORDER.locate(0, values)


def test_integers_in_lists_are_integers() -> None:
    """Of any kind; an empty list too."""
    for values in ([1, np.int8(2)], [[1], [2]], [torch.tensor(2)], [np.array([3])], [], [[]]):
        assert ORDER.locate(0, values).shape == np.asarray(values).shape
