"""Bins of samples from a single group: grouped-v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from indexplan.errors import integer, invalid
from indexplan.once import once
from indexplan.orders.base import Float64, Int64
from indexplan.orders.columns import BLOCK, Column, Kept
from indexplan.orders.fields import SEED, kept
from indexplan.orders.registry import register
from indexplan.orders.strata import (
    MOST_STRATA,
    SIZE_STOP,
    Strata,
    Template,
    UInt32,
    each_by_itself,
    integers_of,
)

CURE = "pass one number for all groups, or {group: number} with all of them"


def _groups(values: Any) -> Column:
    cure = "number the groups 0, 1, 2, ..., such as by np.unique(groups, return_inverse=True)[1]"
    return integers_of("group", values, 0, MOST_STRATA - 1, cure)


@register
@dataclass(frozen=True, eq=False)
class Grouped(Strata):
    """Every epoch reads all samples once, in bins of one group each, such as one aspect ratio.

    For images of several shapes, or texts of several languages, that cannot share a batch. The bins
    are shuffled over the epoch, and each epoch combines different samples. A plan's batch size
    counts bins.

    Parameters
    ----------
    groups : Column, array_like of int or path
        The number of each sample's group, such as its resolution or language, 0 <= group < 65,536.
    batch_size : int, mapping of int to int, or sequence of int
        Number of samples in a bin, 1 <= size < 2**31: one size for all groups, a mapping of group
        to size, or the sizes of groups 0, 1, 2, ... One bin of each group may have fewer.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or the group of some sample has no batch size.

    Examples
    --------
    >>> order = Grouped([7, 3, 7, 7, 3, 3, 3], batch_size={3: 4, 7: 2})
    >>> samples, offsets = order.take(0, 0, 3), order.offsets(0, 0, 3)
    >>> [samples[a:b].tolist() for a, b in zip(offsets, offsets[1:])]
    [[0], [5, 1, 4, 6], [3, 2]]
    >>> order.group_names
    ('3', '7')
    """

    groups: Kept = field(metadata=kept(_groups))
    batch_size: int | Any  # or (group, size) of each group
    _: KW_ONLY
    seed: int = field(default=0, metadata=SEED)

    algorithm = "grouped-v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = _sizes(self.batch_size, self._present.tolist(), self.groups)
        vars(self)["batch_size"] = sizes

    @once
    def _present(self) -> Int64:
        """The groups that have samples, rising."""
        counts = np.zeros(MOST_STRATA, np.int64)
        for start in range(0, len(self.groups), BLOCK):
            block = self.groups.array[start : start + BLOCK].astype(np.uint16)
            counts += np.bincount(block, minlength=MOST_STRATA)
        self.groups.check_file(gone=True)
        return np.flatnonzero(counts)

    @property
    def ip_bin_size(self) -> int | None:
        return self.batch_size if isinstance(self.batch_size, int) else None

    def ip_short_bins(self, epoch: int) -> Int64:
        counts = np.diff(self._template.firsts)
        for group, num in zip(self._present.tolist(), counts.tolist(), strict=True):
            if self.ip_bin_size and num < self.ip_bin_size:
                rule = f"at least {self.ip_bin_size} samples, to fill a global batch"
                cure = "use smaller bins, or leave the group out by a Subset"
                raise invalid(f"group {group} inside Flat", rule, num, cure)
        return super().ip_short_bins(epoch)

    @property
    def _column(self) -> Column:
        return self.groups

    def _keys(self, values: Int64) -> Int64:
        return values

    def _made(self, rows: UInt32, keys: Int64, places: Int64) -> Template:
        sizes = self.batch_size
        each = [sizes] * len(keys) if isinstance(sizes, int) else [size for _, size in sizes]
        return each_by_itself(rows, keys, places, places.tolist(), each)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The numbers of the groups that have samples, as text."""
        return tuple(map(str, self._present.tolist()))

    def group(self, indices: Int64) -> Int64:
        return np.searchsorted(self._present, self._numbers(indices)).astype(np.int64)

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        counts = np.diff(self._template.firsts).astype(np.float64)
        shares: Float64 = counts / counts.sum()  # of samples, as bin sizes may differ
        return shares


def _sizes(given: Any, present: list[int], groups: Column) -> int | tuple[tuple[int, int], ...]:
    """Return the samples in a bin: one size, or that of each group that has samples."""
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, list | tuple) and all(
        isinstance(each, list | tuple) and len(each) == 2 for each in given
    ):
        pairs = list(given)
    elif isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim):
        pairs = list(enumerate(given))
    else:
        return integer("batch_size", given, 1, SIZE_STOP, CURE)
    known: dict[int, int] = {}
    for group, size in pairs:
        number = integer("a group of batch_size", group, 0, MOST_STRATA, CURE)
        if number in known:
            raise invalid("a group of batch_size", "given once", number, CURE)
        known[number] = integer(f"batch_size of group {number}", size, 1, SIZE_STOP, CURE)
    for group in present:
        if group not in known:
            at = int(np.argmax(groups.array == group))
            rule = f"given, as sample {at} is in that group"
            raise invalid(f"batch_size of group {group}", rule, None, CURE)
    sizes = {known[group] for group in present}
    # equal sizes always take the same form, so that equal orders compare equal
    return sizes.pop() if len(sizes) == 1 else tuple((group, known[group]) for group in present)
