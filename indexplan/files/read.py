"""load and Stored: read a plan directory, which is checked when opened, and mapped when read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.canonical import canonical_json
from indexplan.errors import Cure, IndexPlanError, PlanFileError, in_file, invalid
from indexplan.files.columns import finder, identities
from indexplan.files.directory import build_in, replaced, sizes_in
from indexplan.files.format import HEADER_BYTES, INDICES, OFFSETS, SPANS, Build
from indexplan.files.mapped import Chunks
from indexplan.keywords import named
from indexplan.once import once
from indexplan.orders.base import Float64, Int64, Order, Why
from indexplan.orders.columns import Column
from indexplan.orders.layers import Layer
from indexplan.orders.registry import order_from_dict
from indexplan.orders.traits import Traits
from indexplan.orders.units import Units
from indexplan.plan.plan import Plan, plan_of
from indexplan.seeds import check_epoch
from indexplan.shards.dataset import Dataset, Identified, dataset_of
from indexplan.stores.open import store_of

LEAVING_OUT = "without-v1"  # the order that leaves units out
VERIFY = "run `indexplan verify` to see what is wrong"
# Runs are copied one by one if they are few or long; a kernel of numba copies many short ones.
FEW_RUNS, LONG_RUN = 16, 4096
WHOLE = ("distinct-v1", "flat-v1")  # what is made for one global batch


class Stored(Layer):
    """An order that is read from a plan directory; it equals the order that was saved there.

    `load` returns a plan with such an order; make one yourself to use it in another plan. Epochs
    that are not stored are computed, which gives the same indices. A pickle holds the path and the
    digest of `plan.json`: if another plan has taken its place, unpickling is refused, and so is
    opening more files. When the directory is opened, `plan.json` and the names and sizes of all
    files are checked, and each block of 4 MiB is compared with its hash when a process first reads
    some of it.

    Parameters
    ----------
    path : str or path-like
        The plan directory, or its URL.

    Raises
    ------
    PlanFileError
        If there is no whole plan at the path. While reading: if a block is damaged, or if another
        plan is at the path when a file is opened.
    IndexPlanError
        If path is not a path.

    Examples
    --------
    >>> import indexplan as ip
    >>> saved = ip.save(ip.Plan(ip.Shuffle(1000), batch_size=8), "stored.plan")
    >>> ip.types.Stored("stored.plan") == ip.Shuffle(1000)
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = store_of(path).absolute()
        store = store_of(self.path)
        self.build = build = build_in(store)
        self.sizes = sizes_in(store, build)
        self.num_samples = build.num_samples
        self.algorithm = str(build.order.get("algorithm"))
        self._chunks = Chunks(store, build, self.sizes)
        self._units = self._chunks.units

    def __reduce__(self) -> tuple[Callable[..., Stored], tuple[str, str]]:
        return _opened_again, (self.path, self.build.sha256)

    def __repr__(self) -> str:
        return f"Stored({self.path!r})"

    @property
    def source(self) -> Order:
        """The order that is stored, to be computed instead of read; raises where it cannot be."""
        return self.order.made if isinstance(self.order, _Unmade) else self.order

    @property
    def known(self) -> tuple[Order | None, str]:
        """The order that is stored, or None and why it cannot be computed here."""
        try:
            return self.source, ""
        except IndexPlanError as error:
            return None, str(error)

    @once
    def order(self) -> Order:  # type: ignore[override]
        """The order that is stored, or what says at each use why it cannot be made."""
        unmade = _Unmade(self.build, finder(self._chunks.store, self._chunks.folder))
        try:
            return unmade.made
        except IndexPlanError:
            return unmade

    @once
    def traits(self) -> Traits:
        """What the order that is stored promises."""
        return self.build.traits

    @property
    def stream_key(self) -> int:
        """The number that seeds of augmentation are made from: that of the order that is stored."""
        return self.build.stream_key

    @once
    def _leaves_out(self) -> bool:
        """Whether the order that is stored leaves units out: only then is it computed for them."""
        return f'"{LEAVING_OUT}"' in canonical_json(self.build.order)

    # what a layer reads at other positions, the order inside has there: here, it has the same ones
    _moves = False

    @property
    def ip_gaps(self) -> object | None:
        return super().ip_gaps if self._leaves_out else None

    @once
    def ip_global_batch(self) -> int:
        text = canonical_json(self.build.order)  # which any plan that is opened is asked for
        return super().ip_global_batch if any(f'"{name}"' in text for name in WHOLE) else 1

    @property
    def ip_num_copies(self) -> int:
        return self.order.ip_num_copies

    def ip_apart(self, saved: Mapping[str, Any], epoch: int, position: int) -> Why | None:
        return self._apart_inside(saved, epoch, position)  # their dict forms are the same one

    def aim(self, epoch: int, start: int, stop: int) -> Float64:
        """Return the share of each group at which the order that is stored aims."""
        return self.order.aim(epoch, start, stop)

    def to_dict(self) -> dict[str, Any]:
        """Return the dict form of the order that is stored."""
        return self.build.order

    def num_units(self, epoch: int) -> int:
        """Return how many units the epoch has."""
        units = self._units.get(check_epoch(epoch))
        return self.order.num_units(epoch) if units is None else units

    def ip_take(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        # one run inside a chunk, as most batches are: 2 us instead of 4.5 for 256 indices
        if len(starts) == 1 and not self.deals_bins and epoch in self._units:
            each = self.build.units_per_chunk
            start = starts.item()
            size = stops.item() - start
            number, low = divmod(start, each)
            if 0 < size <= each - low:
                numbers = self._chunks.numbers(epoch, number, INDICES, low, size)
                return numbers[low : low + size].astype(np.int64)
        if epoch in self._units and self.deals_bins:  # not deal, which reads the spans too
            out = np.empty(int(self.ip_offsets(epoch, starts, stops)[-1]), np.int64)
            self._copy(epoch, starts, stops, out)
            return out
        return super().ip_take(epoch, starts, stops)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        """Return the units at some runs of positions, as `Order.deal` does."""
        if not self.deals_bins:
            return super().deal(epoch, starts, stops)
        if epoch not in self._units:
            return self.order.deal(epoch, starts, stops)
        offsets = self.ip_offsets(epoch, starts, stops)
        samples = np.empty(int(offsets[-1]), np.int64)
        self._copy(epoch, starts, stops, samples)
        spans = self._spans(epoch, starts, stops) if self.traits.cuts_samples else None
        return Units(samples, np.diff(offsets), spans)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Write the samples at some runs of positions to `out`, as `Order.fill` does."""
        if epoch not in self._units:
            self.order.fill(epoch, starts, stops, out)
        elif len(starts) < FEW_RUNS or len(out) >= LONG_RUN * len(starts):
            self._copy(epoch, starts, stops, out)
        else:
            self._gather(epoch, starts, stops, out)

    def _copy(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Copy runs one by one."""
        done = 0
        for number, start, stop in self._cut(starts, stops):
            numbers = self._samples(epoch, number, start, stop)
            out[done : done + len(numbers)] = numbers
            done += len(numbers)

    def _gather(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        """Copy many runs, chunk by chunk; those that end in another chunk one by one."""
        each, sizes = self.build.units_per_chunk, stops - starts
        begins = np.cumsum(sizes) - sizes
        chunks = starts // each  # with the next line, 3 times as fast as divmod
        lows = starts - chunks * each
        inside = lows + sizes <= each
        for run in np.flatnonzero(~inside).tolist():
            part = out[begins[run] : begins[run] + sizes[run]]
            self._copy(epoch, starts[run : run + 1], stops[run : run + 1], part)
        runs = np.flatnonzero(inside & (sizes > 0))
        if len(runs) and (chunks[runs] != chunks[runs[0]]).any():
            runs = runs[np.argsort(chunks[runs], kind="stable")]
        for few in np.split(runs, np.flatnonzero(np.diff(chunks[runs])) + 1):
            if len(few):
                some = lows[few], sizes[few]
                numbers = self._chunks.numbers(epoch, chunks[few[0]].item(), INDICES, *some)
                words = numbers.view(np.uint32), numbers.itemsize // 4
                kernels.gather.gather(*words, *some, begins[few], out)

    def ip_offsets(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if epoch not in self._units:
            return self.order.offsets(epoch, starts, stops)
        if not self.deals_bins:
            return super().ip_offsets(epoch, starts, stops)
        sizes = [
            np.diff(self._ends(epoch, number, start, stop))
            for number, start, stop in self._cut(starts, stops)
        ]
        return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of the order that is stored, by their sha256."""
        named = identities(self.build.order).values()
        return {each["sha256"]: self.find_column(each) for each in named}

    def find_column(self, identity: Mapping[str, Any]) -> Column:
        """Return a column from the plan directory, one of the order or of the balance."""
        return finder(self._chunks.store, self._chunks.folder)(identity)

    def _cut(self, starts: Int64, stops: Int64) -> Iterator[tuple[int, int, int]]:
        """Yield the pieces of intervals as (chunk number, start, stop), counted in the chunk."""
        each = self.build.units_per_chunk
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            while start < stop:
                number, offset = divmod(start, each)
                size = min(stop - start, each - offset)
                yield number, offset, offset + size
                start += size  # noqa: PLW2901 (walks through the interval)

    def _samples(self, epoch: int, number: int, start: int, stop: int) -> NDArray[Any]:
        """Return the samples of the units [start, stop) of a chunk."""
        if not self.deals_bins:
            return self._read(epoch, number, INDICES, start, stop)
        return self._read(epoch, number, INDICES, *self._held(epoch, number, start, stop))

    def _held(self, epoch: int, number: int, start: int, stop: int) -> tuple[int, int]:
        """Return where the samples of the bins [start, stop) of a chunk begin and end in it."""
        low, high = self._ends(epoch, number, start, stop)[[0, -1]].tolist()
        return low, high

    def _ends(self, epoch: int, number: int, start: int, stop: int) -> Int64:
        """Return where each of the bins [start, stop) of a chunk starts in it, and the last end."""
        ends = self._read(epoch, number, OFFSETS, start, stop + 1)
        size = self._chunks.sizes[epoch, number, INDICES] - HEADER_BYTES
        # callers make arrays of these sizes, which a flipped bit could make those of petabytes
        inside = ends[0] >= 0 and ends[-1] <= size // self.build.itemsize
        if not inside or (ends[1:] < ends[:-1]).any():
            what = f"{self.path}: the offsets of epoch {epoch}"
            raise PlanFileError(what, "must ascend inside their chunk", "others", VERIFY)
        return ends

    def _spans(self, epoch: int, starts: Int64, stops: Int64) -> Int64:
        if epoch not in self._units:
            return self.order.spans(epoch, starts, stops)
        parts = [np.empty(0, np.int64)]
        for number, start, stop in self._cut(starts, stops):
            low, high = self._held(epoch, number, start, stop)
            parts.append(self._read(epoch, number, SPANS, 2 * low, 2 * high))
        spans = np.concatenate(parts).reshape(-1, 2)
        if ((spans[:, 0] < 0) | (spans[:, 0] >= spans[:, 1])).any():
            what = f"{self.path}: the spans of epoch {epoch}"
            raise PlanFileError(what, "must hold at least one token each", "empty ones", VERIFY)
        return spans

    def _read(self, epoch: int, number: int, kind: str, start: int, stop: int) -> NDArray[Any]:
        """Return the numbers [start, stop) of a chunk file."""
        if start == stop:
            return np.empty(0, np.int64)
        return self._chunks.numbers(epoch, number, kind, start, stop - start)[start:stop]


class _Unmade(Order):
    """A stored order that could not be made here, as its class or a column is not there."""

    def __init__(self, build: Build, find_column: Callable[[Mapping[str, Any]], Column]) -> None:
        self._build, self._find_column = build, find_column
        self.num_samples, self.algorithm = build.num_samples, str(build.order.get("algorithm"))

    @property
    def made(self) -> Order:
        """The order; `IndexPlanError` where it still cannot be made."""
        return order_from_dict(self._build.order, self._find_column)

    @property
    def traits(self) -> Traits:
        return self._build.traits

    def to_dict(self) -> dict[str, Any]:
        return self._build.order

    def num_units(self, epoch: int) -> int:
        return self.made.num_units(epoch)

    def fill(self, epoch: int, starts: Int64, stops: Int64, out: Int64) -> None:
        self.made.fill(epoch, starts, stops, out)

    def deal(self, epoch: int, starts: Int64, stops: Int64) -> Units:
        return self.made.deal(epoch, starts, stops)

    def find(self, epoch: int, indices: Int64, most: int | None = None) -> tuple[Int64, Int64]:
        return self.made.find(epoch, indices, most)


def _opened_again(path: str, sha256: str) -> Stored:
    """Return a pickled reader, if the plan at the path is still the same."""
    order = Stored(path)
    if order.build.sha256 != sha256:
        raise replaced(order.path, sha256, order.build.sha256)
    return order


@named
def load(
    path: str | os.PathLike[str],
    *,
    dataset: Dataset | Identified | None = None,
) -> Plan:
    """Open a plan directory that `save` has written, and return its plan.

    The plan answers as the one that was saved, but reads the order from files instead of computing
    it. Many processes may open one directory: they share its memory.

    Parameters
    ----------
    path : str or path-like
        The plan directory, or its URL.
    dataset : Dataset or Shards, optional
        The dataset that will be read, to compare it with the one that the plan was built for.

    Returns
    -------
    Plan
        Its order is a `Stored`; its partition is the one that was saved, and `plan.replace` gives
        it another.

    Raises
    ------
    PlanFileError
        If there is no whole plan at the path, or the dataset has changed.
    IndexPlanError
        If path is not a path, or a dataset is given and the plan remembers none.

    Examples
    --------
    >>> import indexplan as ip
    >>> saved = ip.save(ip.Plan(ip.Shuffle(1000), world_size=8, batch_size=16), "loaded.plan")
    >>> ip.load("loaded.plan").replace(world_size=3).batch(epoch=0, step=5, rank=2).size
    16
    """
    known = dataset_of(dataset)
    order = Stored(path)
    built_for = order.build.dataset
    if known is not None:
        if built_for is None:
            rule = "a plan that was built for a dataset"
            cure: str = Cure(
                "build it with dataset=..., or load it without",
                "build it with --dataset or --shards, or leave --dataset and --shards out",
            )
            raise invalid(f"{path}", rule, "one that remembers none", cure)
        known.check_same(built_for)
    try:
        return plan_of(order.build.plan, order, order.find_column)
    except IndexPlanError as error:
        raise in_file(path, error) from error


def computed(order: Order) -> Order | None:
    """Return the order, or the one that it has stored; None if that cannot be computed here."""
    return order.known[0] if isinstance(order, Stored) else order
