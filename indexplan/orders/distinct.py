"""Global batches in which no two samples have the same label: distinct-v1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import invalid
from indexplan.once import latest, once
from indexplan.orders.base import Int64, Order
from indexplan.orders.classes import LABELS
from indexplan.orders.columns import Column, Kept
from indexplan.orders.fields import SEED, whole
from indexplan.orders.registry import register
from indexplan.orders.traits import PLAIN, Traits
from indexplan.seeds import (
    DISTINCT_BATCHES,
    DISTINCT_COPIES,
    DISTINCT_LABELS,
    DISTINCT_SLOTS,
    DISTINCT_TURNS,
    check_epoch,
)
from indexplan.stores.tables import table_of

BLOCK = 2**16  # samples whose places are written at a time


@dataclass(frozen=True, eq=False)
class Listed:
    """Samples by how many their label has, then by label: equal labels lie side by side.

    Labels with equally many samples form a stratum.

    Attributes
    ----------
    members, places : numpy.ndarray
        uint32, or int64 from more than 2**32 samples on, shape (num_samples,): the list, and the
        place of each sample in it.
    starts, sizes, counts : numpy.ndarray
        int64, shape (num_strata,): where each stratum starts in the list, how many samples each of
        its labels has, and how many labels it has. Sizes rise.
    """

    members: NDArray[Any]
    places: NDArray[Any]
    starts: Int64
    sizes: Int64
    counts: Int64


def _listed(labels: Column) -> Listed:
    """Sort the samples of a column of labels by the samples of their label, then by label."""
    array = labels.array
    num, least = len(array), int(array.min())
    width = int(array.max()) - least + 1
    keys = array.astype(np.int64).view(np.uint64)
    keys -= np.uint64(least % 2**64)  # the distance from the least, even if past 2**63
    whose = keys.astype(np.uint32) if width <= 2**32 else keys.view(np.int64)
    del keys
    whose, rows = kernels.sorting.sort_rows(whose, max(width - 1, 1).bit_length())
    labels.check_file()
    changes = np.ones(num + 1, np.bool_)
    np.not_equal(whose[1:], whose[:-1], out=changes[1:-1])
    del whose
    firsts = np.flatnonzero(changes)  # where each label starts in the rows, and their number
    del changes
    firsts = firsts.astype(np.uint32 if num < 2**32 else np.int64)
    each = np.diff(firsts)  # samples of each label
    each.sort()
    begin = np.flatnonzero(np.append(True, each[1:] != each[:-1]))
    sizes, counts = each[begin].astype(np.int64), np.diff(begin, append=len(each))
    del each
    members, places = np.empty_like(rows), np.empty_like(rows)
    starts = np.cumsum(sizes * counts) - sizes * counts
    ends = starts.copy()  # where the next sample of each stratum goes
    for start in range(0, num, BLOCK):
        some = rows[start : start + BLOCK]
        stop = start + len(some)
        low = int(np.searchsorted(firsts, firsts.dtype.type(start), "right")) - 1
        high = int(np.searchsorted(firsts, firsts.dtype.type(stop)))
        edges = firsts[low : high + 1].astype(np.int64)  # of the labels in this block
        strata = np.searchsorted(sizes, np.diff(edges)).astype(np.min_scalar_type(len(sizes)))
        strata = np.repeat(strata, np.diff(edges.clip(start, stop)))
        some = some[np.argsort(strata, kind="stable")]
        here = np.bincount(strata, minlength=len(sizes))
        to = np.repeat(ends - np.cumsum(here) + here, here) + np.arange(len(some))
        members[to], places[some] = some, to
        ends += here
    return Listed(members, places, starts, sizes, counts)


@register
@dataclass(frozen=True, eq=False)
class Distinct(Order):
    """No label twice in a global batch, each sample at most once an epoch: for contrastive losses.

    In-batch negatives are wrong where two samples of a batch have the same text, product or
    identity. Number what must not meet, and pass the numbers as labels. The plan's global batch
    must have `batch_size` units, or a divisor of that.

    Parameters
    ----------
    labels : Column, array_like of int or path
        The label of each sample. No label may have more samples than an epoch has batches.
    batch_size : int
        Samples in a global batch, over all ranks, 1 <= batch_size <= num_samples.
    seed : int, default 0
        0 <= seed < 2**128.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or a label has more samples than there are batches.

    Notes
    -----
    An epoch has M = num_samples // batch_size batches. Samples are listed by label, and labels by
    how many samples they have. In each epoch, labels with equally many samples are shuffled among
    each other, and so are the samples of a label. The list is read from the start of another label
    in each epoch: its sample i < M * batch_size goes to batch i mod M, so samples of a label, which
    are neighbours and at most M, go to different batches. What is left over, fewer than batch_size
    samples, is not read in that epoch. Batches, and the samples of each, are shuffled too. This
    takes 8 bytes for each sample, computed at first use.

    Examples
    --------
    >>> import indexplan as ip
    >>> texts = [7, 1, 7, 3, 1, 7, 4, 5, 6]
    >>> plan = ip.Plan(ip.Distinct(texts, 3, seed=1), world_size=1, batch_size=3)
    >>> [[texts[i] for i in batch] for batch in plan.batches(epoch=0, rank=0)]
    [[7, 4, 1], [3, 5, 7], [6, 1, 7]]
    """

    labels: Kept = field(metadata=LABELS)
    batch_size: int = field(metadata=whole(1, 2**63, "pass how many a global batch has"))
    seed: int = field(default=0, metadata=SEED)

    algorithm = "distinct-v1"

    def __post_init__(self) -> None:
        super().__post_init__()
        vars(self)["num_samples"] = num = len(self.labels)
        if self.batch_size > num:
            rule = f"at most {num}, the number of samples"
            raise invalid("batch_size", rule, self.batch_size, "use smaller global batches")

    @property
    def traits(self) -> Traits:
        """Each sample is read once if batches leave none over, else at most once."""
        return Traits(reads="at most once") if self.num_samples % self.batch_size else PLAIN

    @property
    def ip_global_batch(self) -> int:
        return self.batch_size

    @property
    def ip_table_bytes(self) -> int:
        return (8 if self.num_samples <= 2**32 else 16) * self.num_samples

    @property
    def _num_batches(self) -> int:
        return self.num_samples // self.batch_size

    @once
    def _table(self) -> Listed:
        key = {"table": "distinct", "labels": self.labels.to_dict()}
        table = table_of(key, Listed, lambda: _listed(self.labels), self.ip_table_bytes)
        most = int(table.sizes[-1])
        if most > self._num_batches:
            label = int(self.labels.array[int(table.members[-1])])
            rule = f"at most {self._num_batches}, as an epoch has so many global batches"
            cure = f"use a batch_size of at most {self.num_samples // most}, or a Subset with fewer"
            raise invalid(f"the samples of label {label}", rule, most, cure)
        return table

    def num_units(self, epoch: int) -> int:
        """Return the samples that whole batches hold."""
        check_epoch(epoch)
        self._table  # noqa: B018 (raises if a label has too many samples)
        return self._num_batches * self.batch_size

    @latest(4)
    def _start(self, epoch: int) -> int:
        """Return the place in the list at which an epoch begins to read: that of some label."""
        t, num = self._table, int(self._table.counts.sum())
        turn = np.array([epoch % num])
        label = int(self._one(DISTINCT_TURNS, 0, num, turn, inverse=False)[0])
        firsts = np.cumsum(t.counts) - t.counts
        k = int(np.searchsorted(firsts, label, "right")) - 1
        return int(t.starts[k]) + (label - int(firsts[k])) * int(t.sizes[k])

    def _images(
        self,
        purpose: int,
        epoch: int,
        strata: tuple[Int64, Int64],
        which: Int64,
        numbers: Int64,
        inverse: bool,
    ) -> Int64:
        """Return the images of numbers in strata, of such starts and counts, or the way back."""
        order, seed = np.argsort(which, kind="stable"), self.seed.to_bytes(16, "little")
        key = (self.num_samples, np.frombuffer(seed, "<u4"), purpose, epoch)
        images, out = numbers[order], np.empty_like(numbers)
        kernels.permutation.permute_strata(*key, *strata, which[order], int(inverse), images)
        out[order] = images
        return out

    def _one(self, purpose: int, epoch: int, num: int, numbers: Int64, inverse: bool) -> Int64:
        """Return them in a single stratum, so that a first batch compiles no kernel of its own."""
        one = (np.zeros(1, np.int64), np.array([num], np.int64))
        return self._images(purpose, epoch, one, np.zeros_like(numbers), numbers, inverse)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        t, num, key = self._table, self._num_batches, self._key_words(DISTINCT_SLOTS, epoch, 2)
        kernels.local_permutation.local_permute_runs(
            num * self.batch_size, self.batch_size, key, starts, stops, out
        )
        batch, slot = np.divmod(out, self.batch_size)
        batch = self._one(DISTINCT_BATCHES, epoch, num, batch, inverse=False)
        at = (slot * num + batch + self._start(epoch)) % self.num_samples
        strata = np.searchsorted(t.starts, at, "right") - 1
        sizes = t.sizes[strata]
        numbers, copies = np.divmod(at - t.starts[strata], sizes)
        kinds = (t.starts, t.counts)
        first = self._images(DISTINCT_LABELS, epoch, kinds, strata, numbers, inverse=False) * sizes
        many = np.flatnonzero(sizes > 1)  # most labels have one sample
        dealt, key = np.empty_like(many), self._key_words(DISTINCT_COPIES, epoch, 2)
        kernels.classes.class_members(
            1, t.sizes, key, strata[many], first[many] + copies[many], dealt
        )
        copies[many] = dealt
        out[:] = t.members[t.starts[strata] + first + copies]

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        t, num, size = self._table, self._num_batches, self.batch_size
        at = t.places[indices].astype(np.int64)
        strata = np.searchsorted(t.starts, at, "right") - 1
        sizes = t.sizes[strata]
        labels, copies = np.divmod(at - t.starts[strata], sizes)
        many = np.flatnonzero(sizes > 1)
        numbers, key = np.empty_like(many), self._key_words(DISTINCT_COPIES, epoch, 2)
        kernels.classes.member_numbers(
            1, t.sizes, key, strata[many], copies[many], labels[many], numbers
        )
        copies[many] = numbers - labels[many] * sizes[many]
        kinds = (t.starts, t.counts)
        labels = self._images(DISTINCT_LABELS, epoch, kinds, strata, labels, inverse=True)
        first = t.starts[strata] + labels * sizes
        at = (first + copies - self._start(epoch)) % self.num_samples
        read = np.flatnonzero(at < num * size)
        slot, batch = np.divmod(at[read], num)
        batch = self._one(DISTINCT_BATCHES, epoch, num, batch, inverse=True)
        order = np.argsort(batch, kind="stable")  # a batch's slots are found together
        key, out = self._key_words(DISTINCT_SLOTS, epoch, 2), np.empty_like(batch)
        places = (batch * size + slot)[order]
        kernels.local_permutation.local_invert(num * size, size, key, places, out)
        return read[order], out
