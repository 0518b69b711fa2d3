"""Check what is passed to loaders and samplers."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from indexplan import IndexPlanError, Order
from indexplan.errors import as_integer, counted, grown, invalid, shown


def count(name: str, number: Any) -> int:
    """Return a number that a trainer or user counts with, as an int from 0."""
    found = as_integer(number)
    if found is None or found < 0:
        raise invalid(name, "an integer from 0", number, "count from 0")
    return found


def flag(name: str, value: Any) -> bool:
    """Return True or False; refuse what merely counts as one of them, such as "False"."""
    if not isinstance(value, bool | np.bool_):
        raise invalid(name, "True or False", value, "pass one of the two")
    return bool(value)


def check_state(
    state: Any,
    fields: set[str],
    version: int,
    rule: str,
    cure: str,
    *,
    more: frozenset[str] | None = frozenset(),
) -> None:
    """Refuse what a loader has not saved, or what another version of it has.

    Parameters
    ----------
    state : object
    fields : set of str
        Of a state, "version" among them.
    version : int
    rule, cure : str
        Of the error of something else.
    more : frozenset of str or None
        Fields that it may have too; None for any, as Accelerate, for one, adds some.
    """
    found: set[str] = {*state} if isinstance(state, dict) else set()
    if not fields <= found or (more is not None and found - fields - more):
        got = f"a dict of {shown(list(state))}" if isinstance(state, dict) else shown(state)
        if more is None and not isinstance(state, dict):
            got = type(state).__name__  # not its whole content: it may be a model
        raise IndexPlanError("state", rule, got, cure)
    if as_integer(state["version"]) != version:
        cure = "load it with the version of indexplan that saved it"
        raise invalid("state", f"of version {version}", state["version"], cure)


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


def run_of(loader: Any) -> Any:
    """Return the run of a loader, or of the batch sampler inside its wrappers; None without one."""
    while loader is not None and not hasattr(getattr(loader, "run", None), "state_at"):
        loader = getattr(loader, "batch_sampler", None)
    return None if loader is None else loader.run


def loaded(module: str, name: str) -> Any:
    """Return what a module of ours defines, or None if nobody has imported it.

    A run that has no bins or shards then needn't import them only to see that it has none.
    """
    return getattr(sys.modules.get(f"indexplan_torch.{module}"), name, None)


def is_bins(dataset: Any) -> bool:
    """Return whether a dataset is of `Bins`."""
    kind = loaded("bins", "Bins")
    return kind is not None and isinstance(dataset, kind)


def check_length(dataset: Any, order: Order, *, again: bool = False) -> None:
    """Refuse a dataset that has more or fewer samples than an order; some don't know how many.

    One may grow while a run reads it, so it is asked at every pass.

    Parameters
    ----------
    dataset : object
        In `Bins` or not.
    order : Order
    again : bool
        Whether a pass begins, so that a run may be under way.

    Raises
    ------
    IndexPlanError
        If it has another number of samples, or its `__len__` raises.
    """
    if is_bins(dataset):
        dataset = dataset.dataset
    if not hasattr(dataset, "__len__"):
        return
    try:
        length = _length_now(dataset)
    except Exception as error:  # whatever a user's dataset raises
        raise IndexPlanError(
            "dataset",
            "must return how many samples it has, if it has __len__",
            f"{shown(error)} from {type(dataset).__name__}",
            "correct its __len__, or remove it",
        ) from error
    if again and length != order.num_samples:
        raise grown(order.num_samples, length)
    if length != order.num_samples:
        raise IndexPlanError(
            "dataset",
            f"must hold {counted(order.num_samples, 'sample')}, as many as the plan's order",
            length,
            f"make the plan with an order of {counted(length, 'sample')}",
        )


def _length_now(dataset: Any) -> int:
    """Return how many samples a dataset has; torch's wrappers keep what it was at first."""
    from torch.utils.data import ConcatDataset, StackDataset

    if isinstance(dataset, ConcatDataset):
        return sum(map(_length_now, dataset.datasets))
    if isinstance(dataset, StackDataset):
        stacked = dataset.datasets
        each = map(_length_now, stacked.values() if isinstance(stacked, dict) else stacked)
        return next((length for length in each if length != len(dataset)), len(dataset))
    return len(dataset)
