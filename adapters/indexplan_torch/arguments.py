"""Check what is passed to loaders and samplers, and show it in a message where it is wrong."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from torch.utils.data import IterableDataset

from indexplan import IndexPlanError

_LONGEST = 300  # characters of a value that a message shows


def shown(value: object) -> str:
    """Write a value in one line, even one whose repr fails."""
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    except Exception:  # an integer of 5,000 digits, a list in itself, a class that is wrong
        return f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def integer(value: Any) -> int | None:
    """Return an integer of any type, such as NumPy's, as int; None of anything else."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except Exception:  # TypeError, or whatever a user's class raises
        return None


def number_of(number: int, noun: str) -> str:
    """Return a number with its noun: 1 rank, 2 ranks."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def count(name: str, number: Any) -> int:
    """Return a number that a trainer or user counts with, as an int from 0."""
    counted = integer(number)
    if counted is None or counted < 0:
        raise IndexPlanError(f"{name} must be an integer from 0; got {shown(number)}; count from 0")
    return counted


def flag(name: str, value: Any) -> bool:
    """Return True or False; refuse what merely counts as one of them, such as "False"."""
    if not isinstance(value, bool | np.bool_):
        raise IndexPlanError(
            f"{name} must be True or False; got {shown(value)}; pass one of the two"
        )
    return bool(value)


def check_by_index(dataset: Any) -> None:
    """Refuse a dataset that is not read by index."""
    by_index = hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")
    if isinstance(dataset, IterableDataset) or not by_index:
        kind = "without __getitem__" if not by_index else "an IterableDataset"
        raise IndexPlanError(
            "dataset must be map-style, as a plan says which index is read when; got "
            f"{type(dataset).__name__}, {kind}; give it __getitem__ and __len__"
        )
