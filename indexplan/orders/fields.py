"""The fields of an order: its JSON, what tells it from others, and the orders inside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

from indexplan.canonical import canonical_json
from indexplan.errors import IndexPlanError, integer, invalid
from indexplan.once import Latest, once
from indexplan.orders.arguments import check_num_samples
from indexplan.orders.columns import Column
from indexplan.seeds import check_seed

CHECK = "indexplan.check"  # in the metadata of a field
DEEPEST = 8  # levels of orders inside orders
PLAIN_VALUES = {int, float, str, bool, type(None)}

Check: TypeAlias = Callable[[str, Any], Any]  # from a field's name and value, what it keeps


def kept(check: Callable[[Any], Any]) -> dict[str, Check]:
    """Return the metadata of a field that keeps what a check makes of what it is given."""
    return {CHECK: lambda _, value: check(value)}


def whole(start: int, stop: int, cure: str, *, optional: bool = False) -> dict[str, Check]:
    """Return the metadata of a field that keeps an integer in [start, stop), or None."""

    def check(name: str, value: Any) -> int | None:
        return None if optional and value is None else integer(name, value, start, stop, cure)

    return {CHECK: check}


def one_of(choices: Sequence[str], cure: str) -> dict[str, Check]:
    """Return the metadata of a field that keeps one of some words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise invalid(name, f"one of {', '.join(choices)}", value, cure)
        return value

    return {CHECK: check}


def flag(default: bool) -> dict[str, Check]:
    """Return the metadata of a field that keeps a boolean."""

    def check(name: str, value: Any) -> bool:
        if not isinstance(value, bool):
            raise invalid(name, "True or False", value, f"leave it out for {default}")
        return value

    return {CHECK: check}


NUM_SAMPLES, SEED = kept(check_num_samples), kept(check_seed)


class HasFields:
    """The part of an order that handles its fields: in JSON, in a pickle, and in comparisons.

    A field whose metadata has a check, such as `SEED`, keeps what that makes of its value; a field
    `num_samples` needs none to be checked. What concerns several fields is checked in a class's own
    `__post_init__`, after this one.
    """

    algorithm: str

    def __post_init__(self) -> None:
        for each in (getattr(self, "__dataclass_fields__", None) or {}).values():
            given = NUM_SAMPLES if each.name == "num_samples" and each.init else {}
            if (check := each.metadata.get(CHECK, given.get(CHECK))) is not None:
                vars(self)[each.name] = check(each.name, getattr(self, each.name))

    def to_dict(self) -> dict[str, Any]:
        """Return the order as JSON types: its algorithm and its fields.

        A column appears as its dtype, length and sha256, and an order inside it as its own dict.
        """
        return {"algorithm": self.algorithm, **as_json(self._said)}

    @property
    def _said(self) -> dict[str, Any]:
        """What the dict form says besides the algorithm: here, the fields."""
        return {name: getattr(self, name) for name in field_names(type(self))}

    @once
    def ip_form(self) -> dict[str, Any]:
        """What `to_dict` returns, made once: not to be written to, nor handed out."""
        if type(self).to_dict is not HasFields.to_dict:
            return self.to_dict()
        return {"algorithm": self.algorithm, **as_json(self._said, shared=True)}

    @once
    def ip_is_json(self) -> bool:
        """Whether the dict form is of JSON types; may raise `TypeError` or `ValueError` if not."""
        form = self.ip_form
        return bool(json.loads(canonical_json(form)) == form)

    @property
    def columns(self) -> dict[str, Column]:
        """The columns of the order, and of those inside it, by their sha256."""
        found: dict[str, Column] = {}
        for each in _held([getattr(self, name) for name in field_names(type(self))]):
            found |= (
                each.columns if isinstance(each, HasFields) else {each.identity["sha256"]: each}
            )
        return found

    @property
    def fingerprint(self) -> str:
        """The sha256, in hexadecimal, of the order's canonical JSON, which names its algorithm."""
        return hashlib.sha256(self.ip_text.encode()).hexdigest()

    @property
    def ip_text(self) -> str:
        """The order's canonical JSON."""
        try:
            return canonical_json(self.ip_form)
        except IndexPlanError:  # such as of a column whose file has changed
            raise
        except (TypeError, ValueError) as error:
            rule = "of JSON types, without NaN"
            cure = "use numbers, text, lists, columns and orders"
            raise invalid(
                f"the fields of an order of {self.algorithm}", rule, error, cure
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: without cached results, such as a sorted column."""
        kind = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(kind, name, None), once) and not isinstance(value, Latest)
        }

    def __eq__(self, other: object) -> bool:
        return self.ip_text == other.ip_text if isinstance(other, HasFields) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.ip_text)


def field_names(kind: type[HasFields]) -> list[str]:
    """Return the names of an order's fields, as its dict form has them."""
    if getattr(kind, "__dataclass_fields__", None) is None:
        cure = "make it a frozen dataclass, or write to_dict and _from_fields"
        raise invalid("a kind of order", "a dataclass", kind.__name__, cure)
    made_of: Any = kind
    return [each.name for each in fields(made_of) if each.init]


def as_json(value: Any, *, shared: bool = False) -> Any:
    """Return a field's value as JSON types; `shared` if nobody writes to what orders inside say."""
    if isinstance(value, HasFields | Column):
        return value.ip_form if shared and isinstance(value, HasFields) else value.to_dict()
    if isinstance(value, Mapping):
        return {name: as_json(each, shared=shared) for name, each in value.items()}
    if isinstance(value, tuple | list):
        if PLAIN_VALUES.issuperset(map(type, value)):
            return list(value)  # thousands of shares
        return [as_json(each, shared=shared) for each in value]
    return value


def nest(order: Any, inside: Sequence[Any]) -> None:
    """Note how deeply orders are nested; raise if too deep, or if that parts global batches."""
    for each in inside:
        whole = each.ip_global_batch
        if whole > 1 and order.ip_global_batch != whole and whole % (order.ip_bin_size or 2**63):
            rule = f"the plan's own, as it is made for global batches of {whole}"
            cure = f"mix Batched(order, {whole}) of it inside Flat, or pass it to the plan itself"
            if order.algorithm == "without-v1":
                cure = "make it of the samples that stay, inside Subset, from an epoch's start on"
            raise invalid("an order", rule, f"{each.algorithm} in {order.algorithm}", cure)
    depths = [getattr(each, "_depth", 1) for each in inside]
    depth = max(getattr(order, "_depth", 1), 1 + max(depths))
    if depth > DEEPEST:
        rule = f"inside at most {DEEPEST - 1} others"
        deepest = inside[depths.index(max(depths))]
        raise invalid("an order", rule, deepest.algorithm, "nest them less")
    vars(order)["_depth"] = depth


def nested(order: HasFields) -> Iterator[tuple[Any, Any]]:
    """Yield all orders inside an order, at any depth, each with the one that holds it."""
    kind = type(order)
    names = getattr(kind, "__dataclass_fields__", None) or ()
    skipped = getattr(kind, "_plain", ())  # fields that may be long, and hold no orders
    for inside in _held([getattr(order, name, None) for name in names if name not in skipped]):
        if isinstance(inside, HasFields):  # which only orders are
            yield inside, order
            yield from nested(inside)


def _held(values: Any) -> Iterator[Any]:
    """Yield the orders and columns in a field's value, but not those inside these orders."""
    if PLAIN_VALUES.issuperset(map(type, values)):  # thousands of weights, or a source's fields
        return
    for each in values:
        if isinstance(each, HasFields | Column):
            yield each
        elif isinstance(each, tuple | list):
            yield from _held(each)
        elif isinstance(each, Mapping):
            yield from _held(each.values())
