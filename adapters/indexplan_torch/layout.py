"""Is the dataset that a loader reads laid out as a mixture's sources are?

An index doesn't show its source: if the datasets have as many samples in total as the sources, but
come in another order, every index is valid, and many belong to the wrong source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import ConcatDataset, StackDataset, Subset

import indexplan
from indexplan import IndexPlanError, Mixture, Order
from indexplan.errors import shown

Runs = tuple[Any, Any]  # where each run of samples ends, and which dataset has it; int64, (runs,)


def check_sources(dataset: Any, order: Order) -> None:
    """Refuse a dataset that has only a part of one source, and a part of another.

    Datasets inside `ConcatDataset`, `Subset` and `StackDataset` are seen, at any depth. A dataset
    may hold several sources, and a source several datasets. Datasets of equal sizes that changed
    places cannot be seen.

    Raises
    ------
    IndexPlanError
        If the order is a mixture, or one around it that keeps its indices, and a dataset and a
        source overlap where neither holds the other.
    """
    sources = _sources("", order)
    if len(sources) > 1:
        for runs in _parts(dataset):
            _check(runs, sources)


def _sources(name: str, order: Order) -> list[tuple[str, int]]:
    """Return the sources of a mixture, and of mixtures in it: their names and samples."""
    if isinstance(order, Mixture):
        within = f"{name}/" if name else ""
        return [each for own, source in order.sources for each in _sources(within + own, source)]
    inner = getattr(order, "order", None) or getattr(order, "known", (None,))[0]  # of a plan file
    if isinstance(inner, Order) and not isinstance(order, indexplan.Subset):  # its indices differ
        return _sources(name, inner)
    return [(name, order.num_samples)]


def _check(runs: Runs, sources: list[tuple[str, int]]) -> None:
    ends, owners = runs
    bounds = np.cumsum([size for _, size in sources])
    sizes = np.diff(ends, prepend=0)
    ends, owners, sizes = ends[sizes > 0], owners[sizes > 0], sizes[sizes > 0]
    if len(ends) < 2 or ends[-1] != bounds[-1]:
        return
    first, last = (np.searchsorted(bounds, each, "right") for each in (ends - sizes, ends - 1))
    # a source between a run's first and its last lies in that run
    num = len(sources)
    pairs = np.unique(np.concatenate([owners * num + first, owners * num + last]))
    holder, held = np.divmod(pairs, num)
    if np.any((np.bincount(holder)[holder] > 1) & (np.bincount(held)[held] > 1)):
        found = np.bincount(owners, sizes).astype(np.int64).tolist()
        raise IndexPlanError(
            "datasets",
            "must lie one after another as the mixture's sources do",
            f"datasets of {shown(found)} samples for sources of {shown(dict(sources))}",
            "pass ConcatDataset the datasets in the sequence of the sources",
        )


def _parts(dataset: Any) -> Iterator[Runs]:
    """Yield the runs of each dataset that is read side by side with others."""
    if isinstance(dataset, StackDataset):
        stacked = dataset.datasets
        for each in stacked.values() if isinstance(stacked, dict) else stacked:
            yield from _parts(each)
    else:
        yield _runs(dataset)


def _runs(dataset: Any) -> Runs:
    """Return the datasets that samples are from, as far as torch's wrappers show them."""
    if isinstance(dataset, ConcatDataset):
        ends, owners, size, num = [], [], 0, 0
        for each in dataset.datasets:
            inner = _runs(each)
            ends.append(inner[0] + size)
            owners.append(inner[1] + num)
            size, num = int(ends[-1][-1]), num + int(inner[1].max()) + 1
        return np.concatenate(ends), np.concatenate(owners)
    if isinstance(dataset, Subset) and len(dataset):
        ends, owners = _runs(dataset.dataset)
        indices = np.asarray(dataset.indices)
        if indices.dtype.kind in "iu" and indices.ndim == 1:
            places = np.where(indices < 0, indices + ends[-1], indices)
            row = owners[np.searchsorted(ends, places, "right").clip(max=len(ends) - 1)]
            stops = np.flatnonzero(np.diff(row, append=-1)) + 1
            return stops, row[stops - 1]
    return np.array([len(dataset)]), np.zeros(1, np.int64)
