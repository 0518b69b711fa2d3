"""What a dataset is asked for, batch by batch: indices, or items that bring a phase along."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from indexplan import IndexPlanError, Phase, Plan
from indexplan_torch.arguments import flag, shown

Item = Callable[[int, Phase], Any]


@dataclass(frozen=True)
class Form:
    """In which form batches are: lists of indices, of items, of inner batches, or arrays."""

    nested: bool = False
    item: Item | None = None
    as_array: bool = False

    def __post_init__(self) -> None:
        flag("nested", self.nested)
        if flag("as_array", self.as_array) and (self.nested or self.item is not None):
            raise IndexPlanError(
                "as_array must be alone; got it with nested or item; leave those out"
            )
        _check_item(self.item)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out an item that does not pickle: workers, which feeds travel to, never call it."""
        state = vars(self).copy()
        try:
            pickle.dumps(self.item)
        except (pickle.PicklingError, AttributeError, TypeError):
            state["item"] = _lost
        return state

    def of(self, batch: Any, phase: Phase) -> list[Any]:
        """Return a batch, or a list of inner ones, as lists of items."""
        if isinstance(batch, list):
            return [self.of(part, phase) for part in batch]
        if self.item is None:
            return batch.tolist()  # type: ignore[no-any-return]
        return [self.item(index, phase) for index in batch.tolist()]


def asked(plan: Plan, epoch: int, sub_epoch: int, rank: int, form: Form) -> Iterator[Any]:
    """Yield what a dataset is asked for, batch by batch, in the steps that are left."""
    batches = plan.batches(epoch, sub_epoch, rank=rank)
    if form.as_array:
        yield from batches
    elif not form.nested and form.item is None:
        for batch in batches:
            yield batch.tolist()
    else:
        first = plan.first_step(epoch, sub_epoch)
        for step, batch in enumerate(batches, first):
            phase = plan.phase(epoch, sub_epoch, step=step)
            if form.nested:
                where = {"step": step, "rank": rank}
                yield form.of(plan.micro_batches(epoch, sub_epoch, **where), phase)
            else:
                yield form.of(batch, phase)


def _check_item(item: Any) -> None:
    """Refuse an item that cannot be called with an index and a phase, where that can be told."""
    if item is None:
        return
    if not callable(item):
        raise IndexPlanError(
            f"item must be a function of (index, phase); got {shown(item)}; pass one such as "
            'lambda index, phase: (index, phase["resolution"])'
        )
    try:
        signature = inspect.signature(item)
    except ValueError:
        return  # of something written in C, which does not tell
    try:
        signature.bind(0, None)
    except TypeError:
        raise IndexPlanError(
            f"item must take two arguments, (index, phase); got one of {signature}; pass one such "
            'as lambda index, phase: (index, phase["resolution"])'
        ) from None


def _lost(index: int, _: Phase) -> Any:
    """Stand in a spawned process for an item that could not travel there."""
    raise IndexPlanError(
        f"item must pickle to be called in a spawned process; got one that does not, for index "
        f"{index}; define it at the top of a module"
    )
