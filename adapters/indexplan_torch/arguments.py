"""Check what is passed to loaders and samplers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from indexplan import IndexPlanError
from indexplan.errors import as_integer, wrong


def count(name: str, number: Any) -> int:
    """Return a number that a trainer or user counts with, as an int from 0."""
    counted = as_integer(number)
    if counted is None or counted < 0:
        raise wrong(name, "an integer from 0", number, "count from 0")
    return counted


def flag(name: str, value: Any) -> bool:
    """Return True or False; refuse what merely counts as one of them, such as "False"."""
    if not isinstance(value, bool | np.bool_):
        raise wrong(name, "True or False", value, "pass one of the two")
    return bool(value)


def check_by_index(dataset: Any) -> None:
    """Refuse a dataset that is not read by index."""
    from torch.utils.data import IterableDataset  # a Run needs no torch

    by_index = hasattr(dataset, "__getitem__") or hasattr(dataset, "__getitems__")
    if isinstance(dataset, IterableDataset) or not by_index:
        kind = "without __getitem__" if not by_index else "an IterableDataset"
        raise IndexPlanError(
            "dataset",
            "must be map-style, as a plan says which index is read when",
            f"{type(dataset).__name__}, {kind}",
            "give it __getitem__ and __len__",
        )


def loaded(module: str, name: str) -> Any:
    """Return what a module of ours defines, or None if nobody has imported it.

    A run that has no bins or shards then needn't import them only to see that it has none.
    """
    return getattr(sys.modules.get(f"indexplan_torch.{module}"), name, None)


def is_bins(dataset: Any) -> bool:
    """Return whether a dataset is of `Bins`."""
    kind = loaded("bins", "Bins")
    return kind is not None and isinstance(dataset, kind)
