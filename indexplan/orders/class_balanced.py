"""Read all classes equally often, or by weight: class-balanced-v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from indexplan import kernels
from indexplan.errors import integer, invalid
from indexplan.once import once
from indexplan.orders.base import Float64, Int64
from indexplan.orders.classes import CHUNK, LABELS, STREAM_STOP, ByClass
from indexplan.orders.columns import FLOATS, Column, Kept
from indexplan.orders.fields import SEED
from indexplan.orders.registry import register
from indexplan.orders.shares import largest_remainder
from indexplan.orders.traits import Traits
from indexplan.orders.units import expand

CURE = "pass one number for each class, by rising label, or a dict of label to number"


@register
@dataclass(frozen=True, eq=False)
class ClassBalanced(ByClass):
    """Reads all classes equally often, or each by its weight, however many samples they have.

    For imbalanced datasets. Without weights, the first n reads of the run contain each of the n
    classes once, and so do the next n, and so on; a class repeats none of its samples before all of
    them have been read. With weights, that holds for whole epochs: after each of them, the samples
    of a class have been read equally often, to within one read.

    Parameters
    ----------
    labels : Column, array_like of int or path
        The class of each sample.
    epoch_size : int, optional
        Reads in an epoch, 1 <= epoch_size <= 2**62; by default as many as there are samples.
        `num_classes * largest_class` oversamples the small classes, `num_classes * smallest_class`
        undersamples the large ones.
    weights : Column, array_like of float, mapping of label to float, or path, optional
        How often to read each class, relative to the others. A list has the weights in order of
        rising labels. A weight of 0 leaves a class out.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If epoch_size, seed or a weight is out of range, a label in the weights does not exist, or
        an epoch is too small for a class of positive weight. When an epoch is read, if it ends past
        read 2**62 of the run.

    Notes
    -----
    The weights give each class an exact number of reads in an epoch, rounded by largest remainder,
    with ties to the lowest label.

    Examples
    --------
    >>> labels = np.array([7, 7, 7, 7, 7, 7, 3, 3])
    >>> order = ClassBalanced(labels, seed=1)
    >>> labels[order.take(0, 0, 8)].tolist()
    [7, 3, 3, 7, 3, 7, 7, 3]
    >>> order.count(0, range(8))
    array([1, 1, 1, 0, 0, 1, 2, 2])
    """

    labels: Kept = field(metadata=LABELS)
    epoch_size: int | None = None
    weights: Kept | None = None
    seed: int = field(default=0, metadata=SEED)

    algorithm = "class-balanced-v1"
    traits = Traits(reads="any")
    _size = _unit_size = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        size = self.num_samples if self.epoch_size is None else self.epoch_size
        cure = "leave it out for the number of samples"
        vars(self)["epoch_size"] = integer("epoch_size", size, 1, STREAM_STOP + 1, cure)
        if self.weights is not None:
            weights = Column.of(_listed(self.weights, self._table.labels), FLOATS, "weights")
            vars(self)["weights"] = weights
            self._shares  # noqa: B018 (is checked when it is worked out)

    @once
    def _shares(self) -> Int64 | None:
        """How often a row reads each class; None if once."""
        if self.weights is None:
            return None
        weights, num = self.weights.array.copy(), len(self._table.labels)
        self.weights.check_file()
        if len(weights) != num:
            raise invalid("weights", f"{num} numbers, one for each class", len(weights), CURE)
        bad = ~(np.isfinite(weights) & (weights >= 0))
        if bad.any() or not weights.any():
            got = float(weights[bad][0]) if bad.any() else "only zeros"
            raise invalid("weights", "finite and not negative, and not all 0", got, CURE)
        total = self.epoch_size or 0
        pairs = [weight.as_integer_ratio() for weight in weights.tolist()]
        scale = max(below for _, below in pairs)
        exact = [above * (scale // below) for above, below in pairs]  # in the same proportions
        shares = largest_remainder(total, exact)
        for label, weight, share in zip(self._table.labels, exact, shares, strict=True):
            if weight and not share:
                enough = -(-sum(exact) // min(each for each in exact if each))  # exactly
                rule = f"large enough to read each class, label {label} too"
                cure = f"use {enough} or more, or give that label a weight of 0"
                if enough > STREAM_STOP:
                    cure = "give that label a weight of 0, or more"
                raise invalid("epoch_size", rule, total, cure)
        return np.array(shares, np.int64)

    @once
    def _firsts(self) -> Int64:
        """The first slot of each class in a row, and the end."""
        shares = np.ones(len(self._table.labels), np.int64)
        shares = shares if self._shares is None else self._shares
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(shares)])

    @property
    def _row_size(self) -> int:
        return int(self._firsts[-1])

    def _deal(self, units: Int64) -> Iterator[tuple[slice, Int64, Int64]]:
        firsts = self._firsts
        for at in range(0, len(units), CHUNK):
            numbers = units[at : at + CHUNK]
            rows, classes = np.empty_like(numbers), np.empty_like(numbers)
            kernels.classes.row_things(self._row_size, 1, self._row_key, numbers, rows, classes)
            if self._shares is not None:
                slots = classes
                classes = np.searchsorted(firsts[1:], slots, "right")
                rows = rows * self._shares[classes] + slots - firsts[classes]
            yield slice(at, at + CHUNK), classes, rows

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        for some, classes, numbers in self._deal(expand(starts, stops) + self._begin(epoch)):
            self._members_of(classes, numbers, out[some])

    def _tuples_before(self, unit: int, classes: Int64) -> Int64:
        row, within = divmod(unit, self._row_size)
        if self._shares is not None:  # a row is an epoch
            return row * self._shares[classes]
        dealt = np.full(len(classes), row)
        if within:
            dealt += self._units_of(classes, dealt) < unit
        return dealt

    def _units_of(self, classes: Int64, tuples: Int64) -> Int64:
        rows, slots = tuples, classes
        if self._shares is not None:
            rows, slots = np.divmod(tuples, self._shares[classes])
            slots = slots + self._firsts[classes]
        out = np.empty(len(classes), np.int64)
        kernels.classes.row_numbers(self._row_size, 1, self._row_key, slots, rows, out)
        return out

    @property
    def _rising(self) -> bool:
        return self._shares is None

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        if self._shares is None:
            return super().aim(epoch, start, stop)
        shares: Float64 = self._shares / self._shares.sum()
        return shares


def _listed(weights: Any, labels: Int64) -> Any:
    """Return weights that were given as a mapping in the order of rising labels."""
    if not isinstance(weights, Mapping):
        return weights
    if set(weights) != set(labels.tolist()):
        odd = min(set(weights) ^ set(labels.tolist()), key=str)
        got = f"{'one' if odd in weights else 'none'} for {odd}"
        raise invalid("weights", "given for each label, and for no other", got, CURE)
    return [weights[label] for label in labels.tolist()]
