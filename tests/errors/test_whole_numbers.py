"""Every integer refuses text, bytes, booleans and floats, and what is out of its range.

So do integers in lists. NumPy's integers are taken.
"""

from __future__ import annotations

import inspect
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import indexplan as ip
from tests.errors.catalogue.numbers import MIXED, RIGHT

CASES = [
    (name, argument)
    for name, (_, given) in RIGHT.items()
    for argument, value in given.items()
    if type(value) is int
]
# text for a schedule is taken for a batch size, but not for a number
REBUILT = ("Plan of all", "PlanBatchSampler")  # the latter takes what trainers pass
NOT_WHOLE: list[Any] = ["1", "32", " 2 ", b"1", bytearray(b"2"), True, np.True_, 1.0, 2.5, 1e3]
NOT_WHOLE += [np.float64(2), float("nan"), 1j, "one", [None], object()]


@pytest.mark.parametrize("name", RIGHT)
def test_the_calls_are_right(name: str) -> None:
    """As they are, and with NumPy's integers."""
    call, given = RIGHT[name]
    call(**given)
    call(**{key: np.int64(each) if type(each) is int else each for key, each in given.items()})


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_what_is_no_whole_number_is_refused(name: str, argument: str) -> None:
    """By the name of the argument, with what was given."""
    call, given = RIGHT[name]
    for value in NOT_WHOLE:
        with pytest.raises(ip.IndexPlanError):
            call(**{**given, argument: value})


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_what_is_out_of_range_is_refused(name: str, argument: str) -> None:
    """Right below the first number that the error names, and right above the last."""
    call, given = RIGHT[name]
    with pytest.raises(ip.IndexPlanError) as caught:
        call(**{**given, argument: "x"})
    found = re.search(r" from ([-0-9]+)(?: to ([-+*0-9 ]+[0-9]))?", caught.value.rule)
    if found is None:  # an index, or an array of them
        return
    first, last = (None if end is None else eval(end) for end in found.groups())  # noqa: S307
    for value in (first - 1, *(() if last is None else (last + 1,))):
        with pytest.raises(ip.IndexPlanError, match=f"; got {value}; "):
            call(**{**given, argument: value})


def test_no_integer_is_left_out() -> None:
    """Each parameter of the calls that is annotated as an integer is among the cases."""
    for name, (call, given) in RIGHT.items():
        for parameter in inspect.signature(call).parameters.values():
            if parameter.annotation in ("int", "int | None") and name not in REBUILT:
                assert parameter.name in given, (name, parameter.name)


TEN = ip.Shuffle(10)
WINDOWS = ip.DocumentWindows([5, 6, 7], 2)
ONE = ip.Plan(TEN, world_size=1, batch_size=2)
SHARDS = ip.Shards(
    kind="tar", whole_files=True, files=["a", "b", "c", "d"], num_bytes=[9] * 4,
    digests=["d"] * 4, parts=[1] * 4, sizes=[5] * 4,
)  # fmt: skip
TAKERS: dict[str, Callable[[Any], Any]] = {
    "take": lambda mixed: TEN.take(0, mixed),
    "take, stops": lambda mixed: TEN.take(0, [0, 0, 0], mixed),
    "offsets": lambda mixed: TEN.offsets(0, mixed),
    "spans": lambda mixed: WINDOWS.spans(0, mixed),
    "locate": lambda mixed: TEN.locate(0, mixed),
    "locate_all": lambda mixed: TEN.locate_all(0, mixed),
    "count": lambda mixed: TEN.count(0, mixed),
    "group_of": MIXED.group_of,
    "a plan's locate": lambda mixed: ONE.locate(mixed, 0),
    "a plan's locate_all": lambda mixed: ONE.locate_all(mixed, 0),
    "step_total": lambda mixed: ONE.step_total([*mixed, *range(7)], 0, step=0),
    "shards' indices": SHARDS.locate,
    "Column": ip.Column,
    "Column of floats": lambda mixed: ip.Column(mixed, "floats"),
    "Subset": lambda mixed: ip.Subset(TEN, [4, *mixed], 10),
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
        TEN.locate(0, values)


def test_integers_in_lists_are_integers() -> None:
    """Of any kind; an empty list too."""
    for values in ([1, np.int8(2)], [[1], [2]], [torch.tensor(2)], [np.array([3])], [], [[]]):
        assert TEN.locate(0, values).shape == np.asarray(values).shape
