"""What an order needs of a cursor: the place from which a run changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from indexplan.errors import integer, invalid
from indexplan.orders.arguments import check_saved
from indexplan.seeds import check_epoch

if TYPE_CHECKING:
    from indexplan.orders.base import Order

CURE = "pass plan.cursor(...) of a plan with that order"


class Saved(Protocol):
    """The part of a cursor that is used here."""

    @property
    def order(self) -> Mapping[str, Any]:
        """The dict form of the order that the run was saved under."""

    @property
    def epoch(self) -> int:
        """The epoch of the next step."""

    @property
    def position(self) -> int:
        """The first unread position of that epoch."""


def place_of(order: Order, cursor: Any, what: str, cure: str = CURE) -> tuple[int, int]:
    """Return the epoch and position of a cursor, which `what` names in errors.

    Raises
    ------
    IndexPlanError
        If it is not a cursor, or was saved under an order that this one does not continue.
    """
    try:
        saved = getattr(cursor, "_form", None) or cursor.order  # not copied, where that will do
        epoch, position = cursor.epoch, cursor.position
    except Exception:  # AttributeError, or whatever a user's class raises
        raise invalid(what, "a Cursor", cursor, cure) from None
    epoch = check_epoch(epoch)
    check_saved(saved, epoch, position)
    if not order.continues(saved, epoch, position):
        got = f"one of {saved.get('algorithm')} with other fields"
        raise invalid(what, "a cursor of the order that is read", got, cure)
    num_units = order.num_units(epoch)
    return epoch, integer(f"{what}'s position", position, 0, num_units + 1, cure)
