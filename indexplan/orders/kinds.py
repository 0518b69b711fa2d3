"""The kinds of orders: the fields of each, and how to read an order from a line of text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from importlib import import_module
from inspect import Parameter, cleandoc, formatannotation, signature
from math import isfinite
from typing import Any

from indexplan.answers import Answer
from indexplan.errors import did_you_mean, wrong
from indexplan.orders.base import Order
from indexplan.orders.columns import Column
from indexplan.orders.registry import registered
from indexplan.orders.written import MAKERS

LIST = "`indexplan orders` lists them"


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of an order, as its class and the docstring of that describe it.

    Parameters
    ----------
    name, type : str
    required : bool
    default : object
        None if the field is required.
    words : str
        The field's description in one line; empty if there is none.
    """

    name: str
    type: str
    required: bool
    default: Any
    words: str

    def __str__(self) -> str:
        kind = self.type if self.required else f"{self.type}, {self.default!r}"
        return f"    {self.name:<14}{kind:<11} {self.words}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Kind(Answer):
    """A kind of order: its name, its algorithm, what it does, and the fields to set in a text.

    Examples
    --------
    >>> import indexplan as ip
    >>> print(Kind.of(ip.Sequential))
    sequential: Every epoch reads samples 0, 1, 2, ... in turn.
    >>> [field.name for field in Kind.of(ip.BlockShuffle).fields]
    ['block_size', 'window', 'seed']
    """

    kind: str
    algorithm: str  # empty for what is no kind, such as curriculum
    words: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, order: type[Order]) -> Kind:
        """Return the kind of a class of orders; without `num_samples`, which no text sets."""
        text = order.__doc__ or ""
        # without a docstring, a dataclass writes its signature there
        first = "" if text.startswith(f"{order.__name__}(") else text.strip().partition("\n")[0]
        return cls(
            kind=_kind(order),
            algorithm=order.algorithm,
            words=first,
            fields=tuple(_fields(order)),
        )

    def __str__(self) -> str:
        return "\n".join([f"{self.kind}: {self.words}".rstrip(": "), *map(str, self.fields)])


def kinds() -> list[Kind]:
    """Return all registered kinds of orders that can be written as text, by name."""
    return [Kind.of(order) for order in _written()]


def makers() -> list[Kind]:
    """Return what else makes orders where they are written as in Python, by name: `MAKERS`."""
    found = []
    for name in sorted(MAKERS):
        make = getattr(import_module(MAKERS[name]), name)
        text = cleandoc(make.__doc__ or "")
        words = _described(text)
        found.append(
            Kind(
                kind=name,
                algorithm="",
                words=text.partition("\n")[0],
                fields=tuple(
                    Field(
                        name=each.name,
                        type=str(each.annotation),
                        required=each.default is Parameter.empty,
                        default=None if each.default is Parameter.empty else each.default,
                        words=words.get(each.name, ""),
                    )
                    for each in signature(make).parameters.values()
                ),
            )
        )
    return found


def _written() -> list[type[Order]]:
    """Return the registered classes with fields; others have a `to_dict` of their own."""
    return [order for order in registered() if is_dataclass(order)]


def order_from_text(
    text: str,
    num_samples: int | None,
    more: Sequence[str] = (),
    known: Mapping[str, Any] | None = None,
) -> Order:
    """Return the order that a line of text describes: its kind, then its fields.

    Parameters
    ----------
    text : str
        Such as "block-shuffle block_size=4096", split into words as by a shell. The kind is an
        algorithm's name, with its version or without. A column is the path of its `.npy` file.
    num_samples : int or None
        Samples in the dataset. None for a kind whose other fields tell, such as its weights.
    more : sequence of str
        Further words, such as "seed=1".
    known : mapping, optional
        Values of fields that the text may leave out, such as the sizes of shards.

    Raises
    ------
    IndexPlanError
        If the kind or a field is unknown, a field is missing or given twice, a value cannot be
        read as the field's type, a column's file is no `.npy` file, or the order refuses a value.

    Examples
    --------
    >>> order_from_text("block-shuffle block_size=4096", 10**6, ["seed=7"])
    BlockShuffle(num_samples=1000000, block_size=4096, window=1, seed=7)
    """
    try:
        first, *rest = [*shlex.split(text), *more]
    except ValueError as error:  # no word at all, or a quote that is not closed
        cure = 'write it as "block-shuffle block_size=4096"'
        rule = "text of a kind and its fields, with each quote closed"
        raise wrong("an order", rule, text, cure) from error
    order = _named(first)
    kind = Kind.of(order)
    given: dict[str, Any] = {}
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals:
            raise wrong(f"a word after {first}", "name=value", word, "write it so, or leave it out")
        field = next((field for field in kind.fields if field.name == name), None)
        if field is None:
            names = [field.name for field in kind.fields]
            rule = f"one of {', '.join(names)}" if names else "left out, as it has none"
            raise wrong(f"a field of {first}", rule, name, _cure(name, names))
        if name in given:
            raise wrong(name, "given once", f"{given[name]!r} and {value}", "leave one of them out")
        given[name] = _value(first, field, value)
    for field in kind.fields:
        if known and field.name in known:
            given.setdefault(field.name, known[field.name])
        if field.required and field.name not in given:
            cure = f"add {field.name}=..., as `indexplan orders` describes it"
            raise wrong(field.name, f"given with {first}", None, cure)
    if _has_num_samples(order):
        given["num_samples"] = num_samples
    made = order(**given)
    if num_samples not in (None, made.num_samples):
        rule = f"{made.num_samples}, as the fields of {first} tell"
        raise wrong("num_samples", rule, num_samples, "leave it out, or change the fields")
    return made


def needs_num_samples(text: str) -> bool:
    """Return whether a line of text names a kind whose other fields do not tell num_samples."""
    first = next(iter(text.split()), "")
    found = [order for order in _written() if first in {order.algorithm, _kind(order)}]
    return not found or any(map(_has_num_samples, found))


def _has_num_samples(order: type[Order]) -> bool:
    return any(field.name == "num_samples" for field in fields(order))  # type: ignore[arg-type]


def integer_in(text: str) -> int | None:
    """Read an integer, such as 100, 1e9 or 1_000_000; return None for anything else."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if value.is_finite() and value == value.to_integral_value() and abs(value.adjusted()) < 50:
        return int(value)
    return None


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


# for each type: the function that reads a value, or returns None, and how a value is written
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (integer_in, "an integer, such as 4096 or 1e6"),
    "float": (_float, "a number, such as 0.5"),
    "str": (str, "text"),
    "bool": ({"True": True, "False": False}.get, "True or False"),
    "Column": (Column, "the path of a .npy file"),
}


def _value(kind: str, field: Field, text: str) -> Any:
    # of a union, such as int | None, the first type that a text can hold
    first = next((each for each in field.type.split(" | ") if each in READERS), None)
    if first is None:
        rule = f"of a type that text can hold: {', '.join(READERS)}"
        raise wrong(f"{field.name} of {kind}", rule, field.type, "build the plan in Python")
    read, rule = READERS[first]
    value = read(text)
    if value is None:
        whole = field.type in (first, f"{first} | None")  # else it also takes what no text can hold
        cure = "write it so" if whole else "write it so, or the order as in Python"
        raise wrong(field.name, rule, text, cure)
    return value


def _named(word: str) -> type[Order]:
    """Return the class of orders that a kind or an algorithm names."""
    known = _written()
    found = [order for order in known if word in {order.algorithm, _kind(order)}]
    if len(found) != 1:
        # several versions of one kind: only the algorithm's whole name tells which
        names = [order.algorithm for order in found] or [_kind(order) for order in known]
        raise wrong("the kind of an order", f"one of {', '.join(names)}", word, _cure(word, names))
    return found[0]


def _kind(order: type[Order]) -> str:
    return re.sub(r"-v[0-9]+$", "", order.algorithm)


def _cure(word: str, names: list[str]) -> str:
    return did_you_mean(word, names) + LIST


def _fields(order: type[Order]) -> Iterator[Field]:
    words = _described(cleandoc(order.__doc__ or ""))
    for field in fields(order):  # type: ignore[arg-type]  # orders are dataclasses
        if not field.init or field.name == "num_samples":
            continue
        default: Any = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        yield Field(
            name=field.name,
            # as text, since what it names may be imported for type checkers only
            type=re.sub(r"[\w.]+\.(?=Column\b)", "", formatannotation(field.type).strip("'")),
            required=default is MISSING,
            default=None if default is MISSING else default,
            words=words.get(field.name, ""),
        )


def _described(text: str) -> dict[str, str]:
    """Return the description of each parameter in a docstring, each as one line."""
    _, _, section = text.partition("\nParameters\n----------\n")
    section = re.split(r"\n\n\S.*\n-+(?:\n|$)", section)[0]  # up to the next one
    found: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section):
        heading, _, words = entry.partition("\n")
        for name in heading.partition(" :")[0].split(","):
            found[name.strip()] = " ".join(words.split())
    return found
