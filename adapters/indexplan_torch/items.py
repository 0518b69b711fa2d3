"""What a loader requests from a dataset: indices, pieces, whole bins, or items made of these."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from typing import Any, NamedTuple

import numpy as np

from indexplan import IndexPlanError, Phase, Plan
from indexplan.errors import invalid, shown
from indexplan.types import Batch
from indexplan_torch.arguments import flag


class About(NamedTuple):
    """Where and how a plan reads a sample: the second argument of a loader's `item`.

    `about["resolution"]` is a parameter of the step's phase.

    Parameters
    ----------
    epoch, sub_epoch, step, rank, slot : int
        Where the plan reads it, as `Plan.locate` returns it. Samples of one bin share a slot. A
        padded read has a slot of its own.
    copy : int
        Which copy it is under `Repeat`, counted from 0; for other orders 0.
    phase : Phase
        The phase of the plan's schedule that applies at the step.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanLoader
    >>> plan = ip.Plan(ip.Repeat(ip.Sequential(3), copies=2), batch_size=6)
    >>> loader = PlanLoader(
    ...     ["a", "b", "c"],
    ...     plan,
    ...     item=lambda index, about: (index, about.epoch, about.copy),
    ...     collate_fn=list,
    ... )
    """

    epoch: int
    sub_epoch: int
    step: int
    rank: int
    slot: int
    copy: int
    phase: Phase

    def __getitem__(self, name: Any) -> Any:
        """Return a parameter of the phase; raise `IndexPlanError` if it has none of this name."""
        return self.phase[name]


Item = Callable[[Any, About], Any]


class Piece(NamedTuple):
    """What a loader requests from a dataset if a plan cuts samples: a part of a sample.

    Parameters
    ----------
    sample : int
        The sample's index.
    start, stop : int
        The part [start, stop) in tokens, or in the unit that lengths count; 0 <= start < stop.

    Examples
    --------
    >>> import indexplan as ip
    >>> from indexplan_torch import PlanBatchSampler
    >>> plan = ip.Plan(ip.DocumentWindows([5, 3, 9, 4], length=10, seed=1), batch_size=1)
    >>> next(iter(PlanBatchSampler(plan, rank=1, world_size=2)))
    [[Piece(sample=0, start=0, stop=5), Piece(sample=2, start=0, stop=6)]]
    """

    sample: int
    start: int
    stop: int


def pieces(rows: Any) -> list[Piece]:
    """Return the rows of an array of pieces."""
    return [Piece(*row) for row in rows.tolist()]


@dataclass(frozen=True)
class Form:
    """The form of batches: lists of indices, of items or of inner batches, or arrays.

    If the order has bins, each bin is a list, unless bins are not kept. If it cuts samples, each
    index is a `Piece`, or a row of an array.
    """

    nested: bool = False
    item: Item | None = None
    as_array: bool = False
    keep_bins: bool = True

    def __post_init__(self) -> None:
        flag("nested", self.nested)
        flag("keep_bins", self.keep_bins)
        if flag("as_array", self.as_array) and (self.nested or self.item is not None):
            raise IndexPlanError(
                "as_array", "must be used alone", "it with nested or item", "leave those out"
            )
        item: Any = self.item  # whatever a user passes
        if item is not None and not callable(item):
            cure = "pass one such as lambda index, about: (index, about.epoch)"
            raise invalid("item", "a function of (index, about)", item, cure)

    def check(self, plan: Plan) -> None:
        """Refuse a form that would lose which part of a sample is read."""
        if plan.order.traits.cuts_samples and not self.keep_bins:
            raise IndexPlanError(
                "keep_bins",
                "must be True for an order that cuts samples, whose pieces are of no use alone",
                "False",
                "leave it out",
            )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out an item that can't be pickled: workers get the run, but never call item."""
        state = vars(self).copy()
        try:
            pickle.dumps(self.item)
        except (pickle.PicklingError, AttributeError, TypeError):
            state["item"] = _lost
        return state

    def requests(self, plan: Plan, epoch: int, sub_epoch: int, rank: int) -> Iterator[Any]:
        """Yield what to request from the dataset, batch by batch, in the remaining steps."""
        bins = plan.order.deals_bins and self.keep_bins
        if self.item is not None:
            yield from self._of_items(plan, epoch, sub_epoch, rank, self.item)
            return
        batches: Iterator[Any] = plan.batches(epoch, sub_epoch, rank=rank)
        if bins or self.nested:
            each = plan.batches(epoch, sub_epoch, rank=rank, units=True)
            batches = (_shaped(batch, nested=self.nested, bins=bins) for batch in each)
        yield from batches if self.as_array else map(_listed, batches)

    def _of_items(
        self, plan: Plan, epoch: int, sub_epoch: int, rank: int, item: Item
    ) -> Iterator[Any]:
        """Yield batches of items, each made of an index and what the plan knows of its read."""
        bins = plan.order.deals_bins and self.keep_bins
        item = _no_list(item) if bins else item
        batches = plan.batches(epoch, sub_epoch, rank=rank, units=True)
        for step, batch in enumerate(batches, plan.steps(epoch, sub_epoch).start):
            slots = np.repeat(np.arange(len(batch)), np.diff(batch.offsets))
            rows = (
                batch.samples.tolist()
                if batch.spans is None
                else pieces(np.column_stack([batch.samples, batch.spans]))
            )
            same = map(repeat, (epoch, sub_epoch, step, rank))
            each = zip(*same, slots.tolist(), batch.copies[slots].tolist(), repeat(batch.phase))
            items = map(
                item, rows, map(partial(tuple.__new__, About), each)
            )  # 3 times as fast as a loop
            yield _cut(_shaped(batch, nested=self.nested, bins=bins), items)


def _shaped(batch: Batch, *, nested: bool, bins: bool) -> Any:
    """Return a batch as one array, or as one for each bin; if nested, each inner batch so."""
    if not nested:
        return batch.bins if bins else batch.samples
    inner = batch.micro_batches
    return [_shaped(each, nested=bool(each.inner_counts), bins=bins) for each in inner]


def _listed(batch: Any) -> list[Any]:
    """Return an array, or a list of inner batches or of bins, as lists of indices or pieces."""
    if isinstance(batch, list):
        return [_listed(part) for part in batch]
    return batch.tolist() if batch.ndim == 1 else pieces(batch)


def _cut(batch: Any, items: Iterator[Any]) -> list[Any]:
    """Return the next items, in lists that are as long and as nested as a batch of arrays."""
    if isinstance(batch, list):
        return [_cut(part, items) for part in batch]
    return list(islice(items, len(batch)))


def num_phases(plan: Plan) -> int:
    """Return how many phases a plan's schedule has."""
    size = plan.global_batch_size if plan.batch_size is None else plan.batch_size
    return len(size) if isinstance(size, tuple) and isinstance(size[0], Phase) else 1


def _no_list(item: Item) -> Item:
    """Wrap an item so that it refuses to return lists, which datasets would take for bins."""

    def checked(index: int, about: About) -> Any:
        found = item(index, about)
        if isinstance(found, list):
            raise IndexPlanError(
                "item",
                "must return something other than a list, as lists are bins here",
                shown(found),
                "return a tuple",
            )
        return found

    return checked


def _lost(index: int, _: About) -> Any:
    """Replace, in a spawned process, an item that could not be pickled."""
    raise IndexPlanError(
        "item",
        "must pickle to be called in a spawned process",
        f"one that does not, for index {index}",
        "define it at the top of a module",
    )
