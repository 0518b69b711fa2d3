"""Disjoint parts of a dataset, computed by a formula: split-v1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.errors import counted, integer, invalid
from indexplan.keywords import named
from indexplan.once import once
from indexplan.orders.arguments import NUM_SAMPLES_STOP, as_written, check_num_samples
from indexplan.orders.base import Draws, Int64, Order
from indexplan.orders.classes import Classes, classes_of, far_apart, range_of
from indexplan.orders.columns import BLOCK, INTEGERS, Column
from indexplan.orders.fields import NUM_SAMPLES, SEED
from indexplan.orders.registry import register
from indexplan.orders.shares import integers, largest_remainder
from indexplan.orders.traits import Traits
from indexplan.orders.units import expand
from indexplan.seeds import SPLITS
from indexplan.stores.tables import table_of

MOST_PARTS = 2**16
CURE = "make parts with indexplan.Split"


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of a dataset whose numbers are close together.

    Bits stay in a CPU's cache where bytes don't.
    """

    bits: NDArray[np.uint8]
    """Of each number from the least on, whether it is a group's."""

    least: int
    num: int


def checked_groups(groups: Any, num_samples: int) -> Column:
    """Return the column of groups, one for each sample."""
    column = Column.of(groups, INTEGERS, "groups")
    if len(column) != num_samples:
        rule = f"{num_samples} numbers, one for each sample"
        raise invalid("groups", rule, len(column), "pass the group of each sample")
    return column


def groups_of(column: Column) -> Groups | Classes:
    """Return the groups of a column, with their samples if their numbers are far apart."""
    least, width = range_of(column.array)
    if far_apart(width, len(column)):
        return classes_of(column)

    def build() -> Groups:
        with column.steady():
            bits = np.zeros(-(-width // 8), np.uint8)
            for at in range(0, len(column), BLOCK):
                numbers = column.array[at : at + BLOCK].astype(np.int64)
                kernels.classes.mark_labels(numbers, least, bits)
        return Groups(bits, least, int(np.count_nonzero(np.unpackbits(bits))))

    # Shared where it is large, and where the column is, as looking through it takes a while.
    return table_of({"table": "groups", "labels": column.to_dict()}, Groups, build, len(column))


def num_groups(groups: Groups | Classes) -> int:
    """Return how many groups there are."""
    return groups.num if isinstance(groups, Groups) else len(groups.labels)


def samples_of(groups: Groups | Classes, column: Column, chosen: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the samples of the groups that are chosen, rising."""
    if isinstance(groups, Classes):
        kept = np.zeros(len(column), np.bool_)
        kept[groups.members[np.repeat(chosen, groups.sizes)]] = True
        return np.flatnonzero(kept).astype(groups.members.dtype)
    which = np.unpackbits(groups.bits, bitorder="little").view(np.bool_)
    which[which] = chosen
    bits, found = np.packbits(which, bitorder="little"), np.empty(BLOCK, np.int64)
    samples = np.empty(len(column), np.uint32 if len(column) <= 2**32 else np.int64)
    count = 0
    for at in range(0, len(column), BLOCK):
        numbers = column.array[at : at + BLOCK].astype(np.int64)
        num = kernels.classes.find_marked(numbers, groups.least, bits, found)
        samples[count : count + num] = found[:num] + at
        count += num
    column.check_file(gone=True)
    samples.resize(count, refcheck=False)  # which gives back the rest
    return samples


@dataclass(frozen=True, eq=False)
class Members:
    """The samples of some parts, rising: uint32, or int64 from 2**32 samples on."""

    samples: NDArray[Any]


@register
@dataclass(frozen=True, eq=False)
class Part(Order):
    """One part of a dataset, as `Split` returns it: the same samples in every epoch.

    The sequence is the same in every epoch, too; `Subset(Shuffle(len(part)), part, num_samples)`
    shuffles them. No list of samples is stored unless groups are kept together.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset.
    sizes : sequence of int
        Number of samples in each part of the split; with `groups`, number of groups.
    parts : sequence of int
        The numbers of the parts of the split to read, rising.
    seed : int, default 0
        0 <= seed < 2**128.
    groups : Column, array_like of int or path, optional
        The group of each sample; all samples of a group are in the same part.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or the sizes do not add up to the number of samples. With
        groups, when the part is first read, if they do not add up to the number of groups.

    Notes
    -----
    Position p of the split is sample s(p), where s is shuffle-v1 on [0, num_samples) with the key
    words of purpose 18; parts are consecutive intervals of positions. With groups, the groups in
    order of rising value are split in this way, and a part reads its samples by rising index.

    Examples
    --------
    >>> import indexplan as ip
    >>> train = ip.Split(10, {"train": 0.8, "val": 0.2}, seed=1)["train"]
    >>> len(train), train.traits.reads
    (8, 'at most once')
    """

    num_samples: int = field(metadata=NUM_SAMPLES)
    sizes: Sequence[int]
    parts: Sequence[int]
    seed: int = field(default=0, metadata=SEED)
    groups: Column | None = None

    algorithm = "split-v1"
    traits = Traits(reads="at most once")

    def __post_init__(self) -> None:
        super().__post_init__()
        num_samples = self.num_samples
        sizes = tuple(_integers("sizes", self.sizes, 1, 2**63))
        parts = tuple(_integers("parts", self.parts, 0, len(sizes)))
        if list(parts) != sorted(set(parts)) or not parts:
            raise invalid("parts", "rising numbers, at least one", list(parts)[:8], CURE)
        vars(self).update(sizes=sizes, parts=parts)
        if self.groups is not None:
            vars(self)["groups"] = checked_groups(self.groups, num_samples)
        elif sum(sizes) != num_samples:
            raise invalid("the sum of sizes", f"{num_samples}, num_samples", sum(sizes), CURE)

    def __len__(self) -> int:
        return self.num_units(0)

    def num_units(self, epoch: int) -> int:
        """Return the number of samples in the part."""
        if self._members is not None:
            return len(self._members)
        return sum(self.sizes[part] for part in self.parts)

    @property
    def ip_table_bytes(self) -> int:
        each = 4 if self.num_samples <= 2**32 else 8  # as in `samples_of`
        return each * self.num_samples if self.groups is not None else 0

    @property
    def ip_draws(self) -> Draws:
        """What determines the draws. Parts of one split do not overlap, so they may be mixed."""
        which = (tuple(self.sizes), tuple(self.parts))
        return ((self.algorithm, self.num_samples, self.seed, *which),)

    @once
    def _intervals(self) -> tuple[Int64, Int64, Int64]:
        """Where in the split the chosen parts start and stop, and at which position each starts."""
        ends = np.cumsum([0, *self.sizes], dtype=np.int64)
        starts, stops = ends[list(self.parts)], ends[[part + 1 for part in self.parts]]
        sizes = stops - starts
        return starts, stops, np.cumsum(sizes) - sizes

    @once
    def _members(self) -> NDArray[Any] | None:
        """The samples of the chosen parts, rising, if groups are kept together; else None."""
        if (groups := self.groups) is None:
            return None

        def build() -> Members:
            found, count = groups_of(groups), sum(self.sizes)
            if (num := num_groups(found)) != count:
                raise invalid("the sum of sizes", f"{num}, the number of groups", count, CURE)
            chosen = np.zeros(count, np.bool_)
            chosen[self._shuffled(SPLITS, 0, count, *self._intervals[:2])] = True
            return Members(samples_of(found, groups, chosen))

        key = {"table": "split", **self.to_dict()}
        return table_of(key, Members, build, self.ip_table_bytes).samples

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        positions = expand(starts, stops)
        if self._members is not None:
            out[:] = self._members[positions]
            return
        begins, _, firsts = self._intervals
        interval = np.searchsorted(firsts, positions, "right") - 1
        places = positions - firsts[interval] + begins[interval]
        self._shuffled(SPLITS, 0, self.num_samples, places, places + 1, out)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        members = self._members
        if members is not None:
            found = np.searchsorted(members, indices.astype(members.dtype))  # else it is copied
            which = np.flatnonzero(members[np.minimum(found, len(members) - 1)] == indices)
            return which, found[which]
        places = self._unshuffled(SPLITS, 0, self.num_samples, indices)
        begins, ends, firsts = self._intervals
        interval = np.maximum(np.searchsorted(begins, places, "right") - 1, 0)
        which = np.flatnonzero((places >= begins[interval]) & (places < ends[interval]))
        interval = interval[which]
        return which, places[which] - begins[interval] + firsts[interval]


@named
class Split(Mapping[str, Part]):
    """Splits a dataset at random into disjoint parts, such as train and val, without storing lists.

    Use it like a read-only dict of `Part` by name. The parts are the same on all ranks and in all
    epochs. To train on a part, shuffle it with `Subset`, as in the example.

    Parameters
    ----------
    num_samples : int
        Samples in the dataset.
    parts : mapping of str to number, or sequence of (str, number)
        The name of each part, and how much of the dataset it gets, relative to the others.
    seed : int, default 0
        0 <= seed < 2**128. Different seeds give different parts.
    groups : Column, array_like of int or path, optional
        The group of each sample, such as its patient, speaker or document. All samples of a group
        are in the same part, and the parts are shares of the groups, not of the samples.

    Raises
    ------
    IndexPlanError
        If num_samples or seed is out of range, a share is not a positive number, or a part would be
        empty.

    Notes
    -----
    Sizes are the exact shares, rounded by largest remainder, with ties to the first. 0.1 is exactly
    a tenth.

    Examples
    --------
    >>> import indexplan as ip
    >>> split = ip.Split(1_281_167, {"train": 0.9, "val": 0.1}, seed=7)
    >>> train, val = split["train"], split["val"]
    >>> len(train), len(val)
    (1153050, 128117)
    >>> order = ip.Subset(ip.Shuffle(len(train), seed=1), train, num_samples=1_281_167)
    >>> val.locate(0, order.take(0, 0, 5))  # no sample that is trained on is in val
    array([-1, -1, -1, -1, -1])
    """

    def __init__(
        self,
        num_samples: int,
        parts: Mapping[str, float] | Sequence[tuple[str, float]],
        *,
        seed: int = 0,
        groups: Any = None,
    ) -> None:
        num_samples = check_num_samples(num_samples)
        column = None if groups is None else checked_groups(groups, num_samples)
        names, shares = _shares(parts)
        self._groups = None if column is None else groups_of(column)  # for its parts to find it
        total = num_samples if self._groups is None else num_groups(self._groups)
        sizes = largest_remainder(total, integers(shares))
        if 0 in sizes:
            what = "samples" if column is None else "groups"
            enough = -(-sum(shares) // min(shares))  # rounded up
            rule = f"large enough that {names[sizes.index(0)]!r} has one"
            more = f", or split {enough} or more" if enough < NUM_SAMPLES_STOP else ""
            cure = f"give that part a larger share{more}"
            raise invalid(f"the number of {what}", rule, total, cure)
        first = Part(num_samples, sizes, [0], seed, column)  # which checks what all have in common
        made = [copy(first) for _ in sizes]
        for number, part in enumerate(made):
            vars(part)["parts"] = (number,)
        self._parts = dict(zip(names, made, strict=True))

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}: {counted(len(part), 'sample')}" for name, part in self.items())
        return f"<Split of {sizes}>"


def _shares(parts: Any) -> tuple[list[str], list[int | Fraction]]:
    """Return the names of the parts, and their shares as exact fractions."""
    rule, cure = "names, each with a positive number", 'pass {"train": 0.9, "val": 0.1}'
    try:
        pairs = list(dict(parts).items())
        shares = [as_written(name, share, cure) for name, share in pairs]
        whole = 0 < len(pairs) == len(parts) <= MOST_PARTS  # no name twice
    except Exception:  # whatever a user's class raises
        raise invalid("parts", rule, parts, cure) from None
    names = [name for name, _ in pairs]
    if not whole or min(shares) <= 0 or not all(isinstance(name, str) for name in names):
        raise invalid("parts", rule, parts, cure)
    return names, shares


def _integers(name: str, values: Any, start: int, stop: int) -> list[int]:
    """Return a short list of integers, each in a range, or raise `IndexPlanError`."""
    try:
        row = list(values)
    except Exception:  # TypeError, or whatever a user's class raises
        raise invalid(name, "a list of integers", values, CURE) from None
    if len(row) > MOST_PARTS:
        raise invalid(name, f"at most {MOST_PARTS} numbers", len(row), CURE)
    return [integer(f"a number of {name}", each, start, stop, CURE) for each in row]
