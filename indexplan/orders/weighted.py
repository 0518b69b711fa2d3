"""Samples drawn by weight, as evenly as possible: weighted-v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isqrt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import IndexPlanError, invalid
from indexplan.once import latest, once
from indexplan.orders.base import Int64, Order, Why
from indexplan.orders.columns import BLOCK, FLOATS, Column, Kept, is_identity
from indexplan.orders.fields import SEED, whole
from indexplan.orders.registry import register
from indexplan.orders.streams import first_by_reading
from indexplan.orders.traits import Traits
from indexplan.orders.units import expand
from indexplan.seeds import WEIGHTED, WEIGHTED_ROW, check_epoch
from indexplan.stores.tables import table_of

if TYPE_CHECKING:
    from indexplan.kernels.weighted_tables import Table

SIZE_STOP = 2**61
GOLDEN = 0x9E3779B97F4A7C15  # 2**64 / the golden ratio
CHECKED = "num_positive"  # what a column of weights knows once it was checked
KEPT = 2  # tables that an order keeps: of the weights in force, and of those before
MOST_ENTRIES = 2**16
READS = "pass how many samples an epoch reads"
MOST = "pass how often an epoch may read a sample, or leave it out"
CURE = "pass a number for each sample, 0 for those that are never read"

Entries: TypeAlias = "tuple[tuple[int, Column], ...]"


@register
@dataclass(frozen=True, eq=False)
class Weighted(Order):
    """Every epoch reads samples in proportion to their weights, shuffled.

    Replaces `WeightedRandomSampler`, but without its random deviations. With E = epoch_size *
    weight / (sum of weights), each epoch reads a sample floor(E) or ceil(E) times, and E times on
    average over seeds. Over many epochs, counts stay within a few reads of what is expected.

    Parameters
    ----------
    weights : Column, array_like of float, path, or sequence of (epoch, weights)
        The weight of each sample, finite and not negative; they need not sum to 1. To change them
        during the run, pass several arrays, each with the epoch at which it takes effect, rising
        from 0.
    epoch_size : int, optional
        Reads in an epoch, 1 <= epoch_size < 2**61; by default the number of samples.
    seed : int, default 0
        0 <= seed < 2**128.
    max_repeats : int, optional
        Most reads of a sample in an epoch, 1 <= max_repeats < 2**61; 1 draws without replacement.
        Reads in excess of it go to the other samples, in proportion to their weights.

    Raises
    ------
    IndexPlanError
        If a weight is negative, infinite or NaN, all weights are 0, arrays of weights differ in
        length, another number is out of range, or max_repeats allows too few reads for an epoch.

    Notes
    -----
    weighted-v1 is systematic sampling of the samples, shuffled by the seed. Multiplying all weights
    by a power of two changes no index. In addition to the weights, it takes 10 to 16 bytes a
    sample, computed when the first epoch is read or a sample is located. If many weights are equal,
    epochs choose among a few different subsets of these samples.

    Examples
    --------
    >>> order = Weighted([1, 0, 2, 5], epoch_size=16)
    >>> order.count(0, range(4))  # 16 reads, in proportions of 1 to 0 to 2 to 5
    array([ 2,  0,  4, 10])
    >>> order.take(0, 0, 8)
    array([3, 3, 0, 3, 2, 3, 3, 3])
    """

    weights: Kept | Entries
    epoch_size: int | None = field(default=None, metadata=whole(1, SIZE_STOP, READS, optional=True))
    seed: int = field(default=0, metadata=SEED)
    max_repeats: int | None = field(default=None, metadata=whole(1, SIZE_STOP, MOST, optional=True))

    algorithm = "weighted-v1"
    _plain = ("weights",)

    def __post_init__(self) -> None:
        super().__post_init__()
        entries = _entries(self.weights)
        n = len(entries[0][1])
        size, most = n if self.epoch_size is None else self.epoch_size, self.max_repeats
        for _, column in entries:
            num_positive = _check_weights(column, n)
            if most is not None and num_positive * most < size:
                rule = f"at most {num_positive * most}, max_repeats for each weight that is not 0"
                raise invalid("epoch_size", rule, size, "lower it, or raise max_repeats")
        weights = entries if len(entries) > 1 else entries[0][1]
        vars(self).update(weights=weights, epoch_size=size, num_samples=n)

    @once
    def traits(self) -> Traits:
        """Samples may be read any number of times, unless max_repeats is 1."""
        if self.max_repeats != 1:
            return Traits(reads="any")
        return Traits(reads="once" if self._size == self.num_samples else "at most once")

    @property
    def ip_table_bytes(self) -> int:
        return 12 * self.num_samples

    def num_units(self, epoch: int) -> int:
        """Return the epoch size."""
        return self._size

    @property
    def _size(self) -> int:
        return self.epoch_size or self.num_samples

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        """Return which weights differ in epochs that have been started."""
        mine = self.ip_form
        rows, others = _rows_of(mine["weights"]), _rows_of(saved.get("weights"))
        if not others or {**saved, "weights": 0} != {**mine, "weights": 0}:
            return ()
        if others[0][0] or others[0][1]["length"] != self.num_samples:
            return ()
        begun = epoch + (position > 0)
        for at in sorted({row[0] for row in (*rows, *others) if row[0] < begun}):
            begun_by = ([row for row in each if row[0] <= at] for each in (rows, others))
            own, other = (each[-1][1]["sha256"] for each in begun_by)
            if own != other:
                rule = f"of a run that reads epoch {at} by the plan's weights, with sha256 {own}"
                cure = "pass the weights of all epochs so far, or their files, as the run had them"
                cure += f": Weighted([(0, weights), ...]), and new ones from epoch {begun} on"
                return rule, f"one with sha256 {other}", cure
        return None

    @once
    def _entries(self) -> Entries:
        """The columns of weights, each with the epoch at which it takes effect."""
        return ((0, self.weights),) if isinstance(self.weights, Column) else self.weights

    def _table(self, epoch: int) -> Table:
        """Return the table of the weights that apply in an epoch."""
        return self._table_of(max(i for i, (at, _) in enumerate(self._entries) if at <= epoch))

    @latest(KEPT)
    def _table_of(self, entry: int) -> Table:
        _, weights = self._entries[entry]
        size, most, words = self._size, self.max_repeats, self._row[0]

        def build() -> Table:
            with weights.steady() as array:
                return kernels.weighted_tables.built(array, size, most, words)

        sizes = {"size": size, "max_repeats": most, "seed": self.seed}
        key = {"table": "weighted", "weights": weights.to_dict(), **sizes}
        return table_of(key, kernels.weighted_tables.Table, build, self.ip_table_bytes)

    @once
    def _row(self) -> tuple[NDArray[np.uint32], int, int, int]:
        """The row's key words, the bits of a slot, where the first slot begins, and the step."""
        count = 2 * kernels.feistel.num_rounds(self.num_samples)
        words = self._key_words(WEIGHTED_ROW, 0, count + 2)
        bits = 62 - self._size.bit_length()
        first = int(words[-2]) | int(words[-1]) << 32
        return words[:count], bits, first, GOLDEN >> (64 - bits) | 1

    def _words(self, epoch: int) -> NDArray[np.uint32]:
        """Return the key words of an epoch."""
        return self._key_words(WEIGHTED, epoch, 2 * kernels.feistel.num_rounds(self._size))

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        row_words, bits, first, step = self._row
        table = self._table(epoch)
        kernels.weighted.draw_runs(
            self._size,
            bits,
            (first + epoch * step) % 2**bits,
            table.shift,
            table.coarse,
            self._words(epoch),
            row_words,
            table.thresholds,
            table.guide,
            starts,
            stops,
            out,
        )

    def _slots_of(self, epoch: int, indices: Int64) -> tuple[Int64, Int64]:
        """Return the slots [start, stop) of each sample."""
        row_words, bits, first, step = self._row
        offset = (first + epoch * step) % 2**bits
        starts, stops = np.empty(len(indices), np.int64), np.empty(len(indices), np.int64)
        thresholds = self._table(epoch).thresholds
        kernels.weighted.slots_of(bits, offset, row_words, thresholds, indices, starts, stops)
        return starts, stops

    def tally(self, epoch: int, indices: Int64) -> Int64:
        starts, stops = self._slots_of(epoch, indices)
        return stops - starts

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        starts, stops = self._slots_of(epoch, indices)
        if most == 1:  # the first of many is faster to search for than to try all slots
            often = stops - starts > isqrt(self._size)
            first = np.empty(len(indices), np.int64)
            kernels.weighted.first_of(
                self._size, self._words(epoch), starts, np.where(often, starts, stops), first
            )
            if often.any():
                first[often] = first_by_reading(self, epoch, indices[often])
            found = np.flatnonzero(first >= 0)
            return found, first[found]
        which = np.repeat(np.arange(len(indices)), stops - starts)
        positions = np.empty(len(which), np.int64)
        kernels.permutation.invert(self._size, self._words(epoch), expand(starts, stops), positions)
        return which, positions


def _rows_of(weights: Any) -> list[Any]:
    """Return the arrays of weights in a dict form, each with its epoch; [] if there are none."""
    rows = weights if isinstance(weights, list) else [[0, weights]]
    right = all(
        isinstance(row, list) and len(row) == 2 and type(row[0]) is int and is_identity(row[1])
        for row in rows
    )
    return rows if right else []


def _entries(weights: Any) -> Entries:
    """Return columns of weights, each with the epoch at which it takes effect."""
    first: Any = weights[0] if isinstance(weights, list | tuple) and weights else None
    if not _is_pair(first) or isinstance(first[1], int | float):  # numbers in rows of two
        return ((0, _column(weights)),)
    entries: list[tuple[int, Column]] = []
    if len(weights) > MOST_ENTRIES:
        cure = "let each array serve for more epochs"
        raise invalid("weights", f"at most {MOST_ENTRIES} arrays", len(weights), cure)
    for each in weights:
        if not _is_pair(each):
            cure = "pass [(0, weights), (7, others)]"
            raise invalid("weights", "one array, or arrays with their epochs", each, cure)
        epoch = check_epoch(each[0])
        if epoch <= (entries[-1][0] if entries else -1) or (epoch and not entries):
            rule = f"above {entries[-1][0]}, the one before" if entries else "0, the first one"
            raise invalid("an epoch of weights", rule, epoch, "begin with 0, and let epochs rise")
        entries.append((epoch, _column(each[1])))
    return tuple(entries)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _column(weights: Any) -> Column:
    column = Column.of(weights, FLOATS, "weights")
    if not len(column):
        raise invalid("weights", "at least one number", 0, CURE)
    return column


def _check_weights(column: Column, length: int) -> int:
    """Return how many weights are not 0; raise `IndexPlanError` unless all are valid."""
    if len(column) != length:
        raise invalid("weights", f"{length} numbers, as the first array has", len(column), CURE)
    if (known := vars(column).get(CHECKED)) is not None:  # by an order with fewer arrays
        return int(known)
    num_positive = 0
    for start in range(0, length, BLOCK):
        block = column.array[start : start + BLOCK]
        if not (block.min() >= 0 and block.max() < np.inf):  # also where one is NaN
            at = start + int(np.argmin((block >= 0) & (block < np.inf)))
            rule = "finite and not negative"
            raise invalid(f"the weight of sample {at}", rule, float(column.array[at]), CURE)
        num_positive += int(np.count_nonzero(block))
    if not num_positive:
        raise IndexPlanError("weights", "need a number above 0", f"{length} times 0", CURE)
    vars(column)[CHECKED] = num_positive
    return num_positive
