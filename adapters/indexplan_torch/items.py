"""What a loader requests from a dataset: indices, pieces, whole bins, or items made of these."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from indexplan import IndexPlanError, Phase, Plan
from indexplan.errors import shown, wrong
from indexplan.types import Batch
from indexplan_torch.arguments import flag

Item = Callable[[Any, Phase], Any]


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
        _check_item(self.item)

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
        """Leave out an item that can't be pickled: workers get the feed, but never call item."""
        state = vars(self).copy()
        try:
            pickle.dumps(self.item)
        except (pickle.PicklingError, AttributeError, TypeError):
            state["item"] = _lost
        return state

    def requests(self, plan: Plan, epoch: int, sub_epoch: int, rank: int) -> Iterator[Any]:
        """Yield what to request from the dataset, batch by batch, in the remaining steps."""
        batches = _batches(plan, epoch, sub_epoch, rank, self)
        if self.as_array:
            yield from batches
        elif self.item is None:
            for batch in batches:
                yield self.items(batch)
        else:
            form = self
            if plan.order.deals_bins and self.keep_bins:
                form = replace(self, item=_no_list(self.item))
            for step, batch in enumerate(batches, plan.steps(epoch, sub_epoch).start):
                yield form.items(batch, plan.phase(epoch, sub_epoch, step=step))

    def items(self, batch: Any, phase: Phase | None = None) -> list[Any]:
        """Return a batch, or a list of inner batches or of bins, as lists of items."""
        if isinstance(batch, list):
            return [self.items(part, phase) for part in batch]
        row = batch.tolist() if batch.ndim == 1 else pieces(batch)
        if self.item is None or phase is None:
            return row
        return [self.item(index, phase) for index in row]


def _batches(plan: Plan, epoch: int, sub_epoch: int, rank: int, form: Form) -> Iterator[Any]:
    """Yield a rank's batches: each an array, or one for each inner batch or for each bin."""
    if plan.order.deals_bins and form.keep_bins:
        batches = plan.batches(epoch, sub_epoch, rank=rank, units=True)
        return (_nested(each, bins=True) if form.nested else each.bins for each in batches)
    if not form.nested:
        return plan.batches(epoch, sub_epoch, rank=rank)
    return (_nested(each) for each in plan.batches(epoch, sub_epoch, rank=rank, units=True))


def _nested(batch: Batch, *, bins: bool = False) -> list[Any]:
    """Return the inner batches, nested like the batch size: each an array, or a list of bins."""
    return [
        _nested(each, bins=bins) if each.inner_counts else (each.bins if bins else each.samples)
        for each in batch.micro_batches
    ]


def num_phases(plan: Plan) -> int:
    """Return how many phases a plan's schedule has."""
    size = plan.global_batch_size if plan.batch_size is None else plan.batch_size
    return len(size) if isinstance(size, tuple) and isinstance(size[0], Phase) else 1


def _check_item(item: Any) -> None:
    """Refuse an item whose signature shows that it can't be called with (index, phase)."""
    if item is None:
        return
    if not callable(item):
        raise wrong(
            "item",
            "a function of (index, phase)",
            item,
            'pass one such as lambda index, phase: (index, phase["resolution"])',
        )
    try:
        signature = inspect.signature(item)
    except ValueError:
        return  # written in C, without a signature
    try:
        signature.bind(0, None)
    except TypeError:
        raise IndexPlanError(
            "item",
            "must take two arguments, (index, phase)",
            f"one of {signature}",
            'pass one such as lambda index, phase: (index, phase["resolution"])',
        ) from None


def _no_list(item: Item) -> Item:
    """Wrap an item so that it refuses to return lists, which datasets would take for bins."""

    def checked(index: int, phase: Phase) -> Any:
        found = item(index, phase)
        if isinstance(found, list):
            raise IndexPlanError(
                "item",
                "must return something other than a list, as lists are bins here",
                shown(found),
                "return a tuple",
            )
        return found

    return checked


def _lost(index: int, _: Phase) -> Any:
    """Replace, in a spawned process, an item that could not be pickled."""
    raise IndexPlanError(
        "item",
        "must pickle to be called in a spawned process",
        f"one that does not, for index {index}",
        "define it at the top of a module",
    )
