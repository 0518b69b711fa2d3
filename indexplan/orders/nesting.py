"""Orders inside orders: which they are, how deep, and what may not be hidden between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from indexplan.errors import wrong
from indexplan.orders.columns import Column
from indexplan.orders.fields import HasFields

if TYPE_CHECKING:
    from indexplan.orders.base import Order

DEEPEST = 8  # levels of orders inside orders
PLAIN_VALUES = {int, float, str, bool, type(None), Column}


def nest(order: Order, inside: Sequence[Order]) -> None:
    """Note how deeply orders are nested, and raise if that is deeper than plans in JSON may be."""
    depths = [getattr(each, "_depth", 1) for each in inside]
    depth = max(getattr(order, "_depth", 1), 1 + max(depths))
    if depth > DEEPEST:
        rule = f"inside at most {DEEPEST - 1} others"
        deepest = inside[depths.index(max(depths))]
        raise wrong("an order", rule, deepest.algorithm, "nest them less")
    object.__setattr__(order, "_depth", depth)


def nested(order: Order) -> Iterator[tuple[Order, Order]]:
    """Yield all orders inside an order, at any depth, each with the one that holds it."""
    names = getattr(type(order), "__dataclass_fields__", None) or ()
    for inside in _held([getattr(order, name, None) for name in names]):
        yield inside, order
        yield from nested(inside)


def _held(values: Any) -> Iterator[Order]:
    """Yield the orders in a field's value, but not those inside these."""
    if PLAIN_VALUES.issuperset(map(type, values)):  # thousands of weights, or a source's fields
        return
    for each in values:
        if isinstance(each, HasFields):
            yield each  # type: ignore[misc]  # orders are all that has fields
        elif isinstance(each, tuple | list):
            yield from _held(each)
        elif isinstance(each, Mapping):
            yield from _held(each.values())


def hidden_cuts(order: Order) -> tuple[str, str] | None:
    """Return the name of a class that hides that an order inside it cuts samples; or None.

    The class is this order's, or that of one inside; with the algorithm of the hidden order.
    """
    for inside, holder in nested(order):
        if inside.traits.cuts_samples and not holder.traits.cuts_samples:
            return type(holder).__name__, inside.algorithm
    return None


def check_parts_known(order: Order) -> None:
    """Raise `IndexPlanError` if an order hides that one inside it cuts samples."""
    if (hidden := order._hidden_cuts) is not None:  # noqa: SLF001 (of an order, for this)
        rule = f"True in {hidden[0]}, as {hidden[1]} inside it cuts samples"
        cure = "deal spans too, and set cuts_samples=True in its traits"
        raise wrong("cuts_samples", rule, False, cure)


def check_cuts_samples(order: Order) -> None:
    """Raise `IndexPlanError` if the order reads whole samples, so that there are no spans."""
    if not order.traits.cuts_samples:
        rule = "one that cuts samples, such as DocumentWindows, to have spans"
        raise wrong("an order", rule, order.algorithm, "read its samples whole")
