"""Batches of K samples of each of P classes, and few-shot episodes: class-batches-v1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import IndexPlanError, integer, invalid
from indexplan.once import once
from indexplan.orders.base import Int64
from indexplan.orders.classes import CHUNK, LABELS, STREAM_STOP, ByClass, Classes, classes_of
from indexplan.orders.columns import Kept
from indexplan.orders.fields import SEED, one_of, whole
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units, expand
from indexplan.seeds import CLASS_NUMBERS

SHORT = ("error", "repeat", "leave_out")


@register
@dataclass(frozen=True, eq=False)
class ClassBatches(ByClass):
    """Builds batches of a fixed number of classes, with `per_class` samples of each.

    For metric learning (P x K batches) and few-shot episodes (N ways, K shots and Q queries:
    `per_class=K + Q`). Each unit is one such batch. So pass `batch_size=1` to the plan, or more for
    several of them per rank, and `keep_bins=False` to the loader, which then collates a unit's
    samples like any batch.

    Parameters
    ----------
    labels : Column, array_like of int or path
        The class of each sample.
    classes : int
        Number of different classes in a batch, at least 1.
    per_class : int
        Samples of each class, at least 1; classes * per_class < 2**31. They are next to each other,
        so you can reshape a batch to (classes, per_class).
    epoch_size : int, optional
        Batches in an epoch, at least 1, and at most 2**62 // (classes * per_class); by default as
        many as the dataset's samples fill.
    seed : int, default 0
        0 <= seed < 2**128.
    short : {"error", "repeat", "leave_out"}, default "error"
        What to do with classes of fewer than `per_class` samples: raise an error, repeat some of
        their samples in a batch, or never read these classes.

    Raises
    ------
    IndexPlanError
        If a number is out of range, there are fewer classes than a batch needs, or a class is too
        small and `short` is "error". When an epoch is read, if it ends past read 2**62 of the run.

    Examples
    --------
    >>> labels = np.arange(60) % 6  # six classes of ten
    >>> order = ClassBatches(labels, classes=3, per_class=2, seed=1)
    >>> batch = order.take(0, 0)
    >>> batch
    array([45, 27, 47, 11, 50, 14])
    >>> labels[batch].reshape(3, 2).tolist()
    [[3, 3], [5, 5], [2, 2]]
    """

    labels: Kept = field(metadata=LABELS)
    classes: int = field(metadata=whole(1, 2**31, "pass how many classes a batch holds"))
    per_class: int
    epoch_size: int | None = None
    seed: int = field(default=0, metadata=SEED)
    short: str = field(default="error", metadata=one_of(SHORT, 'leave it out for "error"'))

    algorithm = "class-batches-v1"
    traits = Traits(deals_bins=True, reads="any")
    _rising = True

    def __post_init__(self) -> None:
        super().__post_init__()
        cure = "pass how many samples of a class a batch holds"
        per_class = integer("per_class", self.per_class, 1, -(-(2**31) // self.classes), cure)
        reads = self.classes * per_class
        size = max(1, self.num_samples // reads) if self.epoch_size is None else self.epoch_size
        cure = "leave it out for as many batches as the samples fill"
        size = integer("epoch_size", size, 1, STREAM_STOP // reads + 1, cure)
        vars(self).update(per_class=per_class, epoch_size=size)
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Raise `IndexPlanError` if classes are too small, or too few for a batch."""
        whole = classes_of(self.labels)
        small = np.flatnonzero(whole.sizes < self.per_class)
        if len(small) and self.short == "error":
            label, size = int(whole.labels[small[0]]), int(whole.sizes[small[0]])
            rule = f"must have {self.per_class} samples, as many as per_class"
            classes = "1 class" if len(small) == 1 else f"{len(small):,} classes"
            got = f"{classes} with fewer, such as label {label} with {size}"
            cure = 'pass short="repeat" to read samples of these more than once in a batch'
            if len(whole.labels) - len(small) >= self.classes:  # else a batch lacks classes
                cure += ', or short="leave_out"'
            raise IndexPlanError("each class", rule, got, cure)
        if self.classes > (num := len(self._table.labels)):
            of = "all" if num == len(whole.labels) else "those that are not left out"
            rule = f"at most {num}, the number of classes ({of})"
            raise invalid("classes", rule, self.classes, "use fewer, or a smaller per_class")

    @property
    def _size(self) -> int:  # type: ignore[override]
        return self.per_class

    @property
    def ip_bin_size(self) -> int:
        return self._unit_size

    @property
    def _unit_size(self) -> int:  # type: ignore[override]
        return self.classes * self.per_class

    @once
    def _table(self) -> Classes:
        table = classes_of(self.labels)
        return table.at_least(self.per_class) if self.short == "leave_out" else table

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        num = int((stops - starts).sum())
        return np.arange(num + 1, dtype=np.int64) * self._unit_size

    @once
    def _class_words(self) -> NDArray[np.uint32]:
        return self._key_words(
            CLASS_NUMBERS, 0, 2 * kernels.feistel.num_rounds(len(self._table.labels))
        )

    def _left_out(self, rows: Int64 | int, things: Int64) -> Int64:
        """Return how many of the rows before each of some rows left out a thing."""
        num = len(self._table.labels)
        before: Int64 = (rows * (num % self.classes) - things + num - 1) // num
        return before

    def _deal(self, units: Int64) -> Iterator[tuple[slice, Int64, Int64]]:
        num, reads = len(self._table.labels), self._unit_size
        step = max(1, CHUNK // reads)
        for at in range(0, len(units), step):
            some = units[at : at + step, None] * self.classes + np.arange(self.classes)
            numbers = some.ravel()
            rows, things = np.empty_like(numbers), np.empty_like(numbers)
            kernels.classes.row_things(num, self.classes, self._row_key, numbers, rows, things)
            tuples = rows - self._left_out(rows, things)
            classes = np.empty_like(things)
            kernels.permutation.permute_runs(num, self._class_words, things, things + 1, classes)
            yield slice(at * reads, (at + step) * reads), classes, tuples

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        num = int((stops - starts).sum())
        out = np.empty(num * self._unit_size, np.int64)
        for some, classes, tuples in self._deal(expand(starts, stops) + self._begin(epoch)):
            members = (tuples[:, None] * self.per_class + np.arange(self.per_class)).ravel()
            self._members_of(np.repeat(classes, self.per_class), members, out[some])
        return Units(out, np.full(num, self._unit_size))

    def _things(self, classes: Int64) -> Int64:
        """Return the thing that a row has in place of each class."""
        things = np.empty(len(classes), np.int64)
        kernels.permutation.invert(len(self._table.labels), self._class_words, classes, things)
        return things

    def _units_in(self, things: Int64, rows: Int64) -> Int64:
        """Return the unit of a row that has each thing; -1 if the row leaves it out."""
        out = np.empty(len(things), np.int64)
        num = len(self._table.labels)
        kernels.classes.row_numbers(num, self.classes, self._row_key, things, rows, out)
        return out // self.classes  # -1 stays -1

    def _tuples_before(self, unit: int, classes: Int64) -> Int64:
        things = self._things(classes)
        # a row holds each class at most once
        row, within = divmod(unit, len(self._table.labels) // self.classes)
        dealt = row - self._left_out(row, things)
        if within:
            units = self._units_in(things, np.full(len(things), row))
            dealt += (units >= 0) & (units < unit)
        return dealt

    def _units_of(self, classes: Int64, tuples: Int64) -> Int64:
        things, num = self._things(classes), len(self._table.labels)
        period = num - num % self.classes
        return self._units_in(things, ((tuples + 1) * num - things - 1) // period)
