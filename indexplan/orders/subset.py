"""Some samples of a dataset, given by a list, a mask or a range: subset-v1."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.canonical import check_fields
from indexplan.errors import counted, integer, invalid
from indexplan.once import once
from indexplan.orders.base import Int64, Order
from indexplan.orders.columns import BLOCK, INTEGERS, Column, Kept
from indexplan.orders.fields import NUM_SAMPLES, HasFields, nest
from indexplan.orders.layers import Layer
from indexplan.orders.registry import register
from indexplan.orders.traits import Traits

CURE = "pass the samples to read, such as np.flatnonzero(mask), or the mask itself"


@register
@dataclass(frozen=True, eq=False)
class Subset(Layer):
    """Reads only some samples of a dataset, in the sequence that another order gives.

    For filters, validation splits, and datasets that you sort yourself. The order inside counts the
    kept samples from 0: `Subset(Shuffle(len(keep)), keep, len(dataset))` shuffles them.

    Parameters
    ----------
    order : Order
        The sequence in which to read the kept samples; its num_samples is the number of these.
    indices : Column, array_like of int, mask, range, path, or Order
        The kept samples: their indices; a mask of num_samples booleans; a range, which takes no
        memory; the path of a `.npy` file of indices; or an order of single samples, such as a part
        of a `Split`, which gives them in its epoch 0. A sample may be listed more than once.
    num_samples : int
        Samples in the dataset.

    Raises
    ------
    IndexPlanError
        If no sample is kept, one is outside the dataset, or their number differs from the
        num_samples of the inner order.

    Examples
    --------
    >>> import indexplan as ip
    >>> order = ip.Subset(ip.Shuffle(3, seed=3), [2, 7, 8], num_samples=10)
    >>> order.take(0, 0, 3), order.take(1, 0, 3)  # epochs 0 and 1
    (array([8, 2, 7]), array([7, 2, 8]))
    >>> mask = np.arange(10) % 4 == 1
    >>> ip.Subset(ip.Sequential(3), mask, num_samples=10).take(0, 0, 3)
    array([1, 5, 9])
    """

    order: Order
    indices: Kept | range | Order
    num_samples: int = field(metadata=NUM_SAMPLES)

    algorithm = "subset-v1"

    def __post_init__(self) -> None:
        HasFields.__post_init__(self)
        num_samples = self.num_samples
        self._look_inside()  # which takes the inner order's
        vars(self)["num_samples"] = num_samples
        indices = _kept(self.indices, num_samples)
        if isinstance(indices, Order):
            nest(self, [indices])
            self._check_row(indices)
            vars(self)["indices"] = indices
            return
        if not len(indices):
            raise invalid("indices", "at least one sample", "none", CURE)
        self._check_length(len(indices))
        if isinstance(indices, range):
            low, high = min(indices[0], indices[-1]), max(indices[0], indices[-1])
        else:
            low, high = int(indices.array.min()), int(indices.array.max())
            indices.check_file()
        if not 0 <= low <= high < num_samples:
            rule = f"numbers of samples, from 0 to {num_samples - 1}"
            raise invalid("indices", rule, low if low < 0 else high, CURE)
        vars(self)["indices"] = indices

    def _check_row(self, row: Order) -> None:
        """Check an order whose epoch 0 gives the kept samples."""
        if row.deals_bins:
            cure = "pass such an order, or a list"
            raise invalid("indices", "an order of single samples", row.algorithm, cure)
        if row.num_samples != self.num_samples:
            rule = f"an order of {counted(self.num_samples, 'sample')}, the dataset's"
            raise invalid("indices", rule, row.num_samples, "make it for the whole dataset")
        self._check_length(row.num_units(0))

    def _check_length(self, length: int) -> None:
        if length != self.order.num_samples:
            rule = f"{length}, the number of indices"
            cure = f"use an order of {counted(length, 'sample')}"
            raise invalid("the order's num_samples", rule, self.order.num_samples, cure)

    @property
    def _said(self) -> dict[str, Any]:
        """The fields; of a range its start, stop and step."""
        kept: Any = self.indices
        if isinstance(kept, range):
            kept = {"range": [kept.start, kept.stop, kept.step]}
        return {**super()._said, "indices": kept}

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> Order:
        kept = values.get("indices")
        if isinstance(kept, dict):
            check_fields("indices", kept, ["range"])
            ends = kept["range"]
            if not isinstance(ends, list) or len(ends) != 3:
                rule = "a range's start, stop and step"
                raise invalid("indices", rule, ends, "write specs with to_json")
            cure = "write specs with to_json"
            ends = [integer("a range's end or step", end, -(2**63), 2**63, cure) for end in ends]
            if not ends[2]:
                raise invalid("a range's step", "other than 0", 0, cure)
            values = {**values, "indices": range(*ends)}
        return super()._from_fields(values)

    @once
    def traits(self) -> Traits:
        """The inner order's, but samples may be left out, or repeat if listed more than once."""
        inner = self.order.traits
        reads = inner.reads
        if reads != "any" and not self._different:
            reads = "any"
        elif reads == "once" and self.order.num_samples < self.num_samples:
            reads = "at most once"
        return replace(inner, reads=reads)

    @once
    def _different(self) -> bool:
        """Whether each sample is listed at most once."""
        if isinstance(self.indices, range):
            return True
        if isinstance(self.indices, Order):
            return self.indices.traits.reads != "any"
        with self.indices.steady(gone=True) as kept:
            return _all_different(kept, self.num_samples)

    @once
    def _sorted(self) -> tuple[Any, Any]:
        """The kept samples, sorted, and where each is in the list; None if the list is sorted."""
        with self.indices.steady(gone=True) as kept:  # type: ignore[union-attr]  # it is a column
            if (kept[1:] >= kept[:-1]).all():
                return kept, None
            return kernels.sorting.sort_rows(kept.astype(np.int64), self.num_samples.bit_length())

    def renamed(self, samples: Int64) -> Int64:
        """Return the kept sample that has each of these numbers."""
        if isinstance(self.indices, range):
            return samples * self.indices.step + self.indices.start
        if isinstance(self.indices, Order):
            return self.indices.ip_take(0, samples, samples + 1)
        kept = self.indices.array[samples]
        self.indices.check_file(gone=True)
        return kept

    def _named(self, indices: Int64) -> tuple[Int64, Int64]:
        """Return which of these samples are listed, and where, each as often as it is listed."""
        if isinstance(self.indices, range):
            first, last, step = self.indices[0], self.indices[-1], self.indices.step
            low, high = min(first, last), max(first, last)
            found = np.flatnonzero((indices >= low) & (indices <= high))
            found = found[(indices[found] - low) % abs(step) == 0]
            return found, (indices[found] - first) // step
        if isinstance(self.indices, Order):
            return self.indices.find(0, indices)
        rising, places = self._sorted
        if self.num_samples <= 2**32:  # else NumPy would copy a list of 4-byte numbers to compare
            indices = indices.astype(rising.dtype)
        with self.indices.steady(gone=True):
            begin, end = (np.searchsorted(rising, indices, side) for side in ("left", "right"))
        counts = end - begin
        which = np.repeat(np.arange(len(indices)), counts)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        number = np.arange(len(which)) - before + begin[which]
        return which, number if places is None else places[number].astype(np.int64)

    def group(self, indices: Int64) -> Int64:
        """Return the group of each sample in the inner order, at any number where it is listed."""
        which, numbers = self._named(indices)
        inside = self.order.group(numbers)
        some = inside >= 0  # a sample may be listed twice, but be read at one of these places only
        which, inside = which[some], inside[some]
        kept, first = np.unique(which, return_index=True)
        groups = np.full(len(indices), -1, np.int64)
        groups[kept] = inside[first]
        if (other := np.flatnonzero(groups[which] != inside)).size:  # it could be either group's
            sample, names = int(indices[which[other[0]]]), self.group_names
            both = [names[each] for each in (groups[which[other[0]]], inside[other[0]])]
            rule = "in one group only, so that its reads can be counted"
            cure = "list each sample for one group only"
            raise invalid(f"sample {sample} of a subset", rule, both, cure)
        return groups

    def _numbers(self, index: int) -> list[int]:
        numbers: list[int] = self._named(np.array([index], np.int64))[1].tolist()
        return numbers

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        which, numbers = self._named(indices)
        of, positions = self.order.find(epoch, numbers, most)
        return which[of], positions

    def tally(self, epoch: int, indices: Int64) -> Int64:
        which, numbers = self._named(indices)
        counts = np.zeros(len(indices), np.int64)
        np.add.at(counts, which, self.order.tally(epoch, numbers))
        return counts


def _all_different(kept: NDArray[Any], num_samples: int) -> bool:
    """Return whether no sample is listed twice."""
    if (kept[1:] > kept[:-1]).all():
        return True
    if num_samples <= 64 * len(kept):
        seen = np.zeros(num_samples, np.bool_)
        for start in range(0, len(kept), BLOCK):  # copied: NumPy looks at an index twice
            seen[np.array(kept[start : start + BLOCK])] = True
        return int(np.count_nonzero(seen)) == len(kept)
    rising = np.sort(kept)
    return bool((rising[1:] != rising[:-1]).all())


def _written(kept: range, num_samples: int) -> range:
    """Return a range's normal form, the same for all ranges of equal samples, or raise an error."""
    if not kept:  # whose ends may be anything
        return range(0)
    first, last = kept[0], kept[-1]
    if not (0 <= first < num_samples and 0 <= last < num_samples):
        outside = last if 0 <= first < num_samples else first
        rule = f"numbers of samples, from 0 to {num_samples - 1}"
        raise invalid("indices", rule, outside, CURE)
    step = kept.step if first != last else 1
    return range(first, last + (1 if step > 0 else -1), step)


def _kept(indices: Any, num_samples: int) -> Any:
    """Return the kept samples as a column, a range or an order."""
    if isinstance(indices, Order):
        return indices
    if isinstance(indices, range):
        return _written(indices, num_samples)
    if isinstance(indices, Column | str | os.PathLike):
        return Column.of(indices, INTEGERS, "indices")
    mask = _mask(indices)
    if mask is not None:
        if mask.shape != (num_samples,) or mask.dtype != np.bool_:
            rule = f"of shape ({num_samples},), a boolean for each sample"
            got = mask.shape if mask.dtype == np.bool_ else indices
            raise invalid("indices, a mask,", rule, got, "make it for the whole dataset")
        return Column(np.flatnonzero(mask))
    return Column.of(indices, INTEGERS, "indices")


def _mask(indices: Any) -> NDArray[Any] | None:
    """Return a mask, such as a list or a tensor of booleans, as an array; None for other values."""
    first = indices[0] if isinstance(indices, list | tuple) and indices else None
    try:
        if isinstance(first, bool | np.bool_) or str(indices.dtype) in ("bool", "torch.bool"):
            return np.asarray(indices)
    except Exception:  # no dtype, or no array; what reads it as numbers says what is wrong
        return None
    return None
