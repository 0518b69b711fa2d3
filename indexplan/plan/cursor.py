"""The cursor: where a run stands, small enough for every checkpoint."""

from __future__ import annotations

import json
import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from indexplan.canonical import canonical_json, check_fields, parse_json_object
from indexplan.errors import IndexPlanError, difference_in_words, integer, invalid
from indexplan.keywords import named
from indexplan.orders.base import Order
from indexplan.orders.extents import GapsExtent, extent_of
from indexplan.partition.steps import Resume
from indexplan.seeds import EPOCH_STOP, check_epoch

CURE = "save cursors with plan.cursor(...)"
_FIELDS = ("epoch", "sub_epoch", "step", "position", "order", "sub_epochs")


@named
@dataclass(frozen=True, kw_only=True)
class Cursor:
    """Where a run stopped, to save in a checkpoint; from `plan.cursor`, for `plan.resume`.

    Its JSON is small enough for every checkpoint. You can resume it on another number of ranks.

    Parameters
    ----------
    epoch, sub_epoch, step : int
        The next step to run.
    position : int
        The first unread position of that epoch.
    order : mapping
        The order's dict form. The run must resume with an equal order, or one that
        `Order.continues` accepts.
    sub_epochs : int
        The plan's number of sub-epochs, which must be the same when the run resumes.

    Raises
    ------
    IndexPlanError
        If a number is negative or not an integer, or `order` is not a dict form.

    Examples
    --------
    >>> import indexplan as ip
    >>> plan = ip.Plan(ip.Shuffle(1000, seed=1), world_size=2, batch_size=50)
    >>> cursor = plan.cursor(epoch=0, step=4)
    >>> cursor.position
    400
    >>> ip.Cursor.from_json(cursor.to_json()) == cursor
    True
    """

    epoch: int
    sub_epoch: int
    step: int
    position: int
    order: Mapping[str, Any] = field(hash=False)
    sub_epochs: int

    def __post_init__(self) -> None:
        self._check()
        try:
            order = json.loads(canonical_json(dict(self.order)))
            same = order == self.order
        except (TypeError, ValueError, RecursionError):
            same = False
        if not same:
            raise invalid("a cursor's order", "of JSON types", self.order, CURE)
        vars(self)["order"] = order

    def _check(self) -> None:
        """Raise `IndexPlanError` if a number is none, or the order is not a mapping."""
        vars(self)["epoch"] = check_epoch(self.epoch)
        for name, least in {"sub_epoch": 0, "step": 0, "position": 0, "sub_epochs": 1}.items():
            number = integer(f"a cursor's {name}", getattr(self, name), least, 2**63, CURE)
            vars(self)[name] = number
        if not isinstance(self.order, Mapping):
            raise invalid("a cursor's order", "the dict form of an order", self.order, CURE)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return `order`, which a plan's cursor writes down when it is first asked for it."""
            known = vars(self)
            if name != "order" or not known.keys() & {"_of", "order"}:
                raise AttributeError(f"a Cursor has no attribute {name!r}")
            order = known.setdefault("order", _copied(self._form))
            known.pop("_of", None)  # as the dict may be written to; another thread may be here
            return order

    def __getstate__(self) -> dict[str, Any]:
        return self.to_dict()

    @property
    def _form(self) -> Mapping[str, Any]:
        """The order's dict form, without a copy where it may do: not to be written to."""
        of = vars(self).get("_of")
        form: Mapping[str, Any] = vars(self)["order"] if of is None else of.ip_form
        return form

    def to_dict(self) -> dict[str, Any]:
        """Return the cursor as JSON types."""
        data = {name: vars(self)[name] for name in _FIELDS if name != "order"}
        return {**data, "order": _copied(self._form)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cursor:
        """Return the cursor that `to_dict` described, or raise `IndexPlanError`."""
        if not isinstance(data, Mapping):
            raise invalid("a cursor", "an object", data, "pass what to_dict returned")
        check_fields("a cursor", data, _FIELDS)
        return cls(**data)

    def to_json(self) -> str:
        """Return the cursor as JSON text."""
        return canonical_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str | bytes) -> Cursor:
        """Return the cursor that `to_json` wrote, or raise `IndexPlanError`."""
        data = parse_json_object("a cursor", text)
        check_fields("a cursor", data, _FIELDS)
        cursor = object.__new__(cls)
        vars(cursor).update(data)  # of JSON types already
        cursor._check()
        return cursor

    def checked(self, order: Order, sub_epochs: int) -> Resume:
        """Return where a run of this order and these sub_epochs continues.

        Raises
        ------
        IndexPlanError
            If the cursor was saved under another order that this one does not continue, or under
            other sub_epochs, or its position is outside its sub-epoch.
        """
        same = vars(self).get("_of") is order
        if not same and not order.continues(self._form, self.epoch, self.position):
            if why := order.ip_apart(self._form, self.epoch, self.position):
                raise IndexPlanError("a cursor", f"must be {why[0]}", *why[1:])
            raise IndexPlanError(
                "a cursor",
                "must belong to the plan's order",
                f"one with {difference_in_words(self.order, order.to_dict())}",
                "resume it with the order it was saved under",
            )
        if self.sub_epochs != sub_epochs:
            cure = f"use plan.replace(sub_epochs={self.sub_epochs})"
            raise invalid(
                "a cursor's sub_epochs", f"{sub_epochs}, the plan's", self.sub_epochs, cure
            )
        place = Resume(self.epoch, self.sub_epoch, self.step, self.position)
        return check_place(place, order, sub_epochs)


def cursor_of(order: Order, place: Resume, sub_epochs: int) -> Cursor:
    """Return the cursor of a place of an order, of which only the epoch may be too large."""
    try:
        right = place.epoch < EPOCH_STOP and order.ip_is_json
    except (TypeError, ValueError):
        right = False
    if not right:  # the cursor says so
        return Cursor(**place._asdict(), order=order.to_dict(), sub_epochs=sub_epochs)
    cursor = object.__new__(Cursor)
    vars(cursor).update(place._asdict(), sub_epochs=sub_epochs, _of=order)
    return cursor


def _copied(form: Any) -> dict[str, Any]:
    """Return a copy of a dict form, faster than by JSON."""
    copied: dict[str, Any] = marshal.loads(marshal.dumps(form))  # noqa: S302 (our own bytes)
    return copied


def check_place(place: Resume, order: Order, sub_epochs: int) -> Resume:
    """Return where a run continues, if a plan of this order and sub_epochs has such a place.

    Raises
    ------
    IndexPlanError
        If a number is out of range, or the position is outside its sub-epoch.
    """
    epoch = check_epoch(place.epoch)
    sub_epoch = integer("a cursor's sub_epoch", place.sub_epoch, 0, sub_epochs, CURE)
    step, position = (
        integer(f"a cursor's {name}", getattr(place, name), 0, 2**63, CURE)
        for name in ("step", "position")
    )
    extent = extent_of(order)
    start, stop = (extent.edge(epoch, sub_epochs, sub_epoch + i) for i in range(2))
    has_gaps = isinstance(extent, GapsExtent)
    inside = start <= position < stop or (position == start and step == 0)
    if has_gaps and step == 0 and position < start:  # skipped, but with other samples
        held = int(extent.parts_of(epoch, sub_epochs, np.array([position]))[0])
        rule = f"{held}, which holds position {position} since the order changed"
        again = "let the order change at a later place, from a cursor with a step above 0"
        raise invalid("a cursor's sub_epoch", rule, sub_epoch, again)
    # all that was left of the sub-epoch may be left out since
    if not inside and (not has_gaps or position != stop):
        rule = f"from {start} to {stop - 1}, in its sub-epoch"
        raise invalid("a cursor's position", rule, position, CURE)
    if step > position - start:
        rule = f"at most {position - start}, as each finished step read a unit"
        raise invalid("a cursor's step", rule, step, CURE)
    return Resume(epoch, sub_epoch, step, position)
