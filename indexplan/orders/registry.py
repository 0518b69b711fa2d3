"""The registered kinds of orders, and how to make the order that a dict describes."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from indexplan.errors import invalid
from indexplan.keywords import named
from indexplan.orders.base import Order
from indexplan.orders.columns import (
    Columns,
    find_column,
    from_json,
    is_identity,
)
from indexplan.orders.fields import DEEPEST

WRITTEN = "write specs with to_json"

OURS = "indexplan.orders."  # where the orders of this library are

_REGISTRY: dict[str, type[Order]] = {}

OrderType = TypeVar("OrderType", bound=Order)


def register(order: type[OrderType]) -> type[OrderType]:
    """Register your own order, so that plans in JSON and files can hold it; also a decorator.

    A class with the same module and name replaces the one that was registered before, for example
    when a notebook's cell runs again. If the new class reads other indices, change its `algorithm`:
    fingerprints contain only that and the fields.

    Parameters
    ----------
    order : type
        The class.

    Raises
    ------
    IndexPlanError
        If another class has registered the same `algorithm`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from indexplan.orders import expand
    >>> @register
    ... @dataclass(frozen=True, eq=False)
    ... class Backwards(Order):
    ...     num_samples: int
    ...     algorithm = "backwards-v1"
    ...
    ...     def fill(self, epoch, starts, stops, out):
    ...         out[:] = self.num_samples - 1 - expand(starts, stops)
    ...
    ...     def find(self, epoch, indices, most=None):
    ...         return np.arange(len(indices)), self.num_samples - 1 - indices
    >>> Backwards(10).take(0, 0, 3)
    array([9, 8, 7])
    """
    if not order.__module__.startswith(OURS):
        _import_ours()  # to know their names
    known = _REGISTRY.setdefault(order.algorithm, order)
    if (known.__module__, known.__qualname__) == (order.__module__, order.__qualname__):
        _REGISTRY[order.algorithm] = order  # a cell of a notebook that ran again
    elif known is not order:
        rule = "a name that no other class has registered"
        raise invalid("algorithm", rule, order.algorithm, "give it another name")
    return named(order) if "__init__" in vars(order) else order


@functools.cache
def _import_ours() -> None:
    """Import all orders of this library, most of which are otherwise imported at first use."""
    folder = import_module(OURS.rstrip("."))
    for module in iter_modules(folder.__path__, OURS):
        import_module(module.name)


def registered() -> list[type[Order]]:
    """Return the registered kinds of orders, sorted by algorithm."""
    _import_ours()
    return [kind for _, kind in sorted(_REGISTRY.items())]


def order_from_dict(data: Mapping[str, Any], columns: Columns = None) -> Order:
    """Return the order that `to_dict` described.

    Parameters
    ----------
    data : mapping
        What `to_dict` returned.
    columns : folder or file, or iterable of columns, arrays, paths and folders, optional
        Where to find the order's columns, by their sha256.

    Raises
    ------
    IndexPlanError
        If the algorithm is unknown, a field is missing, unknown or wrong, a column is not found,
        or orders are nested more than 8 deep.
    """
    try:
        return _order(data, columns, 1)
    except RecursionError:  # lists nested in lists
        raise invalid("an order", "a dict that is nested less deeply", data, WRITTEN) from None


def _order(data: Any, columns: Columns, depth: int) -> Order:
    if not isinstance(data, Mapping) or not isinstance(data.get("algorithm"), str):
        rule = "an object with the field 'algorithm'"
        raise invalid("an order", rule, data, "pass what to_dict returned")
    if depth > DEEPEST:
        rule = f"inside at most {DEEPEST - 1} others"
        raise invalid("an order", rule, data["algorithm"], "nest them less")
    if data["algorithm"] not in _REGISTRY:
        _import_ours()
    kind = _REGISTRY.get(data["algorithm"])
    if kind is None:
        known = ", ".join(sorted(_REGISTRY))
        cure = "upgrade indexplan, or import the module that registers it"
        raise invalid("an order's algorithm", f"one of {known}", data["algorithm"], cure)
    values = {name: _value(name, value, columns, depth) for name, value in data.items()}
    with from_json():
        order = kind._from_fields(values)  # noqa: SLF001 (of an order, for this)
    if (written := order.to_dict()) != data:  # for example numbers instead of a column
        names = [name for name in data if written.get(name) != data[name]]
        rule = "as its to_dict writes them"
        raise invalid(f"{', '.join(names)} of an order of {kind.algorithm}", rule, data, WRITTEN)
    return order


def _value(name: str, value: Any, columns: Columns, depth: int) -> Any:
    """Return what the JSON value of a field stands for: an order, a column, or itself."""
    if isinstance(value, Mapping) and "algorithm" in value:
        return _order(value, columns, depth + 1)
    if is_identity(value):
        return find_column(name, value, columns)
    if isinstance(value, list):
        return [_value(name, each, columns, depth) for each in value]
    if isinstance(value, Mapping):
        return {each: _value(name, value[each], columns, depth) for each in value}
    return value
