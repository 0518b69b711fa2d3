"""Orders inside orders: which ones, and how deep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from indexplan.errors import wrong
from indexplan.orders.columns import Column
from indexplan.orders.fields import HasFields

DEEPEST = 8  # levels of orders inside orders
PLAIN_VALUES = {int, float, str, bool, type(None), Column}


def nest(order: HasFields, inside: Sequence[HasFields]) -> None:
    """Note how deeply orders are nested, and raise if that is too deep for a plan in JSON."""
    depths = [getattr(each, "_depth", 1) for each in inside]
    depth = max(getattr(order, "_depth", 1), 1 + max(depths))
    if depth > DEEPEST:
        rule = f"inside at most {DEEPEST - 1} others"
        deepest = inside[depths.index(max(depths))]
        raise wrong("an order", rule, deepest.algorithm, "nest them less")
    object.__setattr__(order, "_depth", depth)


def nested(order: HasFields) -> Iterator[tuple[Any, Any]]:
    """Yield all orders inside an order, at any depth, each with the one that holds it."""
    kind = type(order)
    names = getattr(kind, "__dataclass_fields__", None) or ()
    skipped = getattr(kind, "_plain", ())  # fields that may be long, and hold no orders
    for inside in _held([getattr(order, name, None) for name in names if name not in skipped]):
        yield inside, order
        yield from nested(inside)


def _held(values: Any) -> Iterator[HasFields]:
    """Yield the orders in a field's value, but not those inside these."""
    if PLAIN_VALUES.issuperset(map(type, values)):  # thousands of weights, or a source's fields
        return
    for each in values:
        if isinstance(each, HasFields):
            yield each  # which only orders are
        elif isinstance(each, tuple | list):
            yield from _held(each)
        elif isinstance(each, Mapping):
            yield from _held(each.values())
