"""Reading a plan directory: checked when it is opened, mapped when it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan.dataset import Dataset
from indexplan.errors import IndexPlanError, PlanFileError, wrong
from indexplan.files.mapped import Chunks
from indexplan.files.places import place_of
from indexplan.files.table import read_manifest
from indexplan.orders.base import Int64, Order, order_from_dict
from indexplan.orders.sequential import expand
from indexplan.plan import Plan

CHECKS = ("opened", "touched")
# From about this mean length on, slices beat one fancy index. For 16,384 units in runs of 64, 128
# and 256: slices 538, 273 and 138 us, the index 250 us.
LONG_RUN = 128


class Stored(Order):
    """An order that is read from a plan directory, and equals the order that was stored there.

    Epochs that are not stored are computed, which gives the same indices. Pickles to its path.

    Parameters
    ----------
    path : str or path-like
        The plan directory, or its URL.
    check : {"opened", "touched"}, default "opened"
        What is checked besides the manifest, the sizes of the files and the block table, which are
        when the directory is opened. "touched": each block of 4 MiB against its hash, when a
        process first reads some of it; what happens to it afterwards goes unseen.

    Raises
    ------
    PlanFileError
        If there is no whole plan at the path; under "touched" also where a damaged block is read.
    IndexPlanError
        If check is something else.

    Examples
    --------
    >>> import indexplan as ip
    >>> saved = ip.save(ip.Plan(ip.Shuffle(1000), batch_size=8), "stored.plan")
    >>> ip.Stored("stored.plan") == ip.Shuffle(1000)
    True
    """

    def __init__(self, path: str | os.PathLike[str], *, check: str = "opened") -> None:
        if check not in CHECKS:
            raise wrong("check", f"one of {', '.join(CHECKS)}", check, "leave it out for opened")
        self.path = place_of(path).absolute()
        self.check = check
        self.manifest = read_manifest(place_of(self.path))
        build = self.manifest.build
        self.num_samples = build.num_samples
        self.deals_bins = build.deals_bins
        self.constant_num_units = len(set(build.num_units)) == 1
        self.algorithm = str(build.order.get("algorithm"))
        self._chunks = Chunks.of(self.path, self.manifest)
        self._units = self._chunks.units

    def __reduce__(self) -> tuple[partial[Stored], tuple[str]]:
        return partial(Stored, check=self.check), (self.path,)

    def __repr__(self) -> str:
        return f"Stored({self.path!r})"

    @cached_property
    def source(self) -> Order:
        """The order that is stored, to be computed instead of read."""
        return order_from_dict(self.manifest.build.order)

    def to_dict(self) -> dict[str, Any]:
        """Return the dict form of the order that is stored."""
        return self.manifest.build.order

    def num_units(self, epoch: int) -> int:
        """Return how many units the epoch has."""
        units = self._units.get(epoch)
        return self._computed(epoch).num_units(epoch) if units is None else units

    def _computed(self, epoch: int) -> Order:
        try:
            return self.source
        except IndexPlanError as error:
            stored = self.manifest.build.epochs
            cure = f"epoch {epoch} cannot be computed here: {error}"
            rule = f"one of the {len(stored)} stored ones, {stored[0]} to {stored[-1]}"
            raise wrong("epoch", rule, epoch, cure) from error

    def _take(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        # one run inside a chunk, as most batches are: 2 us instead of 4.5 for 256 indices
        if len(starts) == 1 and not self.deals_bins and epoch in self._units:
            each = self.manifest.build.units_per_chunk
            start, stop = starts.item(), stops.item()
            number, low = divmod(start, each)
            if 0 < stop - start <= each - low:
                numbers = self._read(epoch, number, False, slice(low, low + stop - start))
                return numbers.astype(np.int64)
        return super()._take(epoch, starts, stops)

    def _fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        if epoch not in self._units:
            self._computed(epoch)._fill(epoch, starts, stops, out)  # noqa: SLF001 (an order too)
        elif (
            self.deals_bins or len(starts) == 1 or (stops - starts).sum() >= LONG_RUN * len(starts)
        ):
            done = 0
            for number, start, stop in self._cut(starts, stops):
                numbers = self._samples(epoch, number, start, stop)
                out[done : done + len(numbers)] = numbers
                done += len(numbers)
        else:
            self._gather(epoch, expand(starts, stops), out)

    def _offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if epoch not in self._units:
            return self._computed(epoch).offsets(epoch, starts, stops)
        if not self.deals_bins:
            return super()._offsets(epoch, starts, stops)
        sizes = [
            np.diff(self._read(epoch, number, True, slice(start, stop + 1)))
            for number, start, stop in self._cut(starts, stops)
        ]
        if any((units < 0).any() for units in sizes):
            raise self._impossible(epoch)
        return np.concatenate([[0], np.cumsum(np.concatenate([[], *sizes]))]).astype(np.int64)

    def _locate(self, epoch: int, indices: Int64) -> Int64:
        return self.source.locate(epoch, indices)

    def _cut(self, starts: Int64, stops: Int64) -> Iterator[tuple[int, int, int]]:
        """Yield the pieces of intervals as (chunk number, start, stop), counted in the chunk."""
        each = self.manifest.build.units_per_chunk
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            while start < stop:
                number, offset = divmod(start, each)
                size = min(stop - start, each - offset)
                yield number, offset, offset + size
                start += size  # noqa: PLW2901 (walks through the interval)

    def _gather(self, epoch: int, positions: Int64, out: Int64) -> None:
        """Write the indices at single positions."""
        numbers, offsets = np.divmod(positions, self.manifest.build.units_per_chunk)
        for number in np.unique(numbers).tolist():
            chosen = numbers == number
            out[chosen] = self._read(epoch, number, False, offsets[chosen])

    def _samples(self, epoch: int, number: int, start: int, stop: int) -> NDArray[Any]:
        """Return the samples of the units [start, stop) of a chunk."""
        if not self.deals_bins:
            return self._read(epoch, number, False, slice(start, stop))
        low, high = self._read(epoch, number, True, slice(start, stop + 1))[[0, -1]].tolist()
        if not 0 <= low <= high <= len(self._chunks.numbers(epoch, number, False)):
            raise self._impossible(epoch)
        return self._read(epoch, number, False, slice(low, high))

    def _impossible(self, epoch: int) -> PlanFileError:
        rule = f"the offsets of epoch {epoch} must rise, inside their chunk; they do not"
        return PlanFileError(f"{self.path}: {rule}; see what is wrong with `indexplan verify`")

    def _read(self, epoch: int, number: int, offsets: bool, where: slice | Int64) -> NDArray[Any]:
        """Return some of the numbers of a chunk file."""
        if self.check == "touched":
            self._chunks.check(epoch, number, offsets, where)
        return self._chunks.numbers(epoch, number, offsets)[where]


def load(
    path: str | os.PathLike[str], *, dataset: Dataset | None = None, check: str = "opened"
) -> Plan:
    """Return the plan that a plan directory holds: the same answers, read instead of computed.

    Parameters
    ----------
    path : str or path-like
        The plan directory, or its URL.
    dataset : Dataset, optional
        The dataset that is to be read; compared with the one that the plan was built for.
    check : {"opened", "touched"}, default "opened"
        "touched" checks each block of a chunk when it is first read, as `Stored` says.

    Returns
    -------
    Plan
        Its order is a `Stored`; its partition is the one that was saved, and `plan.replace`
        gives it another.

    Raises
    ------
    PlanFileError
        If there is no whole plan at the path, or the dataset has changed.

    Examples
    --------
    >>> import indexplan as ip
    >>> saved = ip.save(ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16), "loaded.plan")
    >>> ip.load("loaded.plan").replace(world_size=3).batch(epoch=0, step=5, rank=2).size
    16
    """
    order = Stored(path, check=check)
    built_for = order.manifest.build.dataset
    if dataset is not None:
        if built_for is None:
            rule = "a plan that was built for a dataset"
            cure = "build it with dataset=..., or load it without"
            raise wrong(f"{path}", rule, "one that remembers none", cure)
        dataset.check_same(built_for)
    try:
        return Plan.from_dict(order.manifest.plan, order=order)
    except IndexPlanError as error:
        raise PlanFileError(f"{path}: {error}") from error
