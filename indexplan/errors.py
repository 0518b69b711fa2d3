"""Errors, whose messages all have the same form: what, the rule, the value, the cure."""

from __future__ import annotations

import errno
import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

LONGEST = 300  # most characters of a value in a message
LONGEST_VALUE = 60  # most characters of a value in a list of differences
LONGEST_MESSAGE = 1500  # most characters of a whole message, whose middle is cut out beyond


class IndexPlanError(ValueError):
    """Raised for every wrong argument; the message names the value, the rule and the cure.

    It is a `ValueError`. The message is `<what> <rule>; got <got>; <cure>`, in one line.

    Parameters
    ----------
    what
        What is wrong, such as "num_samples". If it is the only argument, it is the whole message.
    rule
        The rule that it breaks, starting with "must" or "needs".
    got
        What it was instead; None if there is nothing to show.
    cure
        What to do, as a clause.

    Examples
    --------
    >>> import indexplan as ip
    >>> try:
    ...     ip.Shuffle(10.0)
    ... except ip.IndexPlanError as error:
    ...     print(error)
    ...     print(error.cure)
    num_samples must be an integer from 1 to 2**63 - 1; got 10.0; pass len(dataset)
    pass len(dataset)
    """

    def __init__(self, what: object, rule: str = "", got: object = None, cure: str = "") -> None:
        if not rule:
            what, self.__cause__ = _rebuilt(type(self), str(what))
        self.what, self.rule, self.cure = str(what), rule, cure
        self.got = None if got is None else str(got)
        parts = (self.what, rule, self.got, cure) if rule else (self.what,)
        super().__init__(*parts)  # with which a pickle makes it again

    def __str__(self) -> str:
        got = [] if self.got is None else [f"got {self.got}"]
        clauses = [f"{self.what} {self.rule}", *got, self.cure] if self.rule else [self.what]
        # escape what a message quotes, so that it is one line, and holds no terminal commands
        text = printable("; ".join(clauses))
        if len(text) > LONGEST_MESSAGE:
            half = LONGEST_MESSAGE // 2
            text = f"{text[:half]} [...] {text[-half:]}"
        return text


class Cure(str):
    """A cure for people who write Python, with another one for people who type a command."""

    command: str

    def __new__(cls, python: str, command: str) -> Self:
        """Make a text that prints what to do in Python."""
        cure = super().__new__(cls, python)
        cure.command = command
        return cure

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # for a pickle
        return str(self), self.command


class RemoteError(Exception):
    """What a worker process raised, in its own words: the cause of an error that came as text."""


def _rebuilt(kind: type[IndexPlanError], text: str) -> tuple[str, RemoteError | None]:
    """Return the message from an error's text, which may be the text of its whole traceback.

    A DataLoader rebuilds a worker's error from a single text: where it was, then the traceback.
    """
    _, found, said = f"\n{text}".rpartition(f"\n{kind.__module__}.{kind.__qualname__}: ")
    if not found or "\nOriginal Traceback " not in text:
        return text, None
    return said.partition("\n")[0], RemoteError(text)


class PlanFileError(IndexPlanError):
    """Raised if a file is missing, damaged or not writable, or a plan's dataset has changed.

    Examples
    --------
    >>> import indexplan as ip
    >>> try:
    ...     ip.load("nowhere.plan")
    ... except ip.PlanFileError as error:
    ...     print("no plan")
    no plan
    """


def invalid(what: str, rule: str, got: object, cure: str) -> IndexPlanError:
    """Return the error `<what> must be <rule>; got <got>; <cure>` about a value, as `shown`."""
    return IndexPlanError(what, f"must be {rule}", shown(got), cure)


def in_file(path: object, error: IndexPlanError) -> PlanFileError:
    """Turn an error about a part of a file into one that names the file."""
    return PlanFileError(f"{path}: {error.what}", error.rule, error.got, error.cure)


def grown(num_samples: int, length: int) -> IndexPlanError:
    """Return the error of a pass over a dataset that has more or fewer samples than the order.

    Parameters
    ----------
    num_samples : int
        Samples of the plan's order.
    length : int
        Samples of the dataset, as it is now.
    """
    continued = (
        "continue the run of a Mixture with the new ones as a source, by "
        "with_phase(cursor, weights, sources=...)"
        if length > num_samples
        else "keep the others in it and continue the run with Without(order, samples, since=cursor)"
    )
    return IndexPlanError(
        "dataset",
        f"must hold {counted(num_samples, 'sample')} in every pass, as many as the plan's order",
        str(length),
        f"make a new plan with an order of {counted(length, 'sample')}, or {continued}",
    )


def empty_batches(
    world_size: int | None, remainder: str, epoch: int, sub_epoch: int, *, or_else: str = ""
) -> IndexPlanError:
    """Return the error of a loop that would give a rank an empty batch, which no model accepts."""
    return IndexPlanError(
        "each step",
        "must hold a unit for every rank",
        f"steps of fewer than {world_size=} units in epoch {epoch}, sub-epoch {sub_epoch}, "
        f"under {remainder=}",
        f"use remainder='pad', fewer ranks or a larger batch size{or_else}",
    )


def inside(where: str, error: IndexPlanError) -> IndexPlanError:
    """Turn an error about a part of something into one that says where the part is."""
    kind = PlanFileError if isinstance(error, PlanFileError) else IndexPlanError
    return kind(f"{where}: {error.what}", error.rule, error.got, error.cure)


def shown(value: object) -> str:
    """Return a value's repr as one readable line; an array's repr has many."""
    try:
        text = " ".join(line.strip() for line in repr(value).splitlines())
    except Exception:  # an integer of 5,000 digits, or a class whose repr raises
        return f"a value of type {type(value).__name__} that cannot be printed"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def printable(text: str) -> str:
    """Return a text with escapes for what is not printable: line ends, terminal commands."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 step, 1,024 steps."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Iterable[str]) -> str:
    """Return names in words, the first ones of many."""
    texts = [*map(str, names)]
    return ", ".join(texts[:8]) + ", ..." * (len(texts) > 8)


def did_you_mean(word: object, names: Iterable[str]) -> str:
    """Return "did you mean NAME? " with the most similar name; an empty text if none is similar."""
    from difflib import get_close_matches  # which only an error needs

    near = get_close_matches(word, list(names), n=1) if isinstance(word, str) else []
    return f"did you mean {near[0]}? " if near else ""


def difference_in_words(one: Any, other: Any, derived: Sequence[str] = ()) -> str:
    """Return in words in which fields two JSON objects differ.

    Fields that are `derived` from others are named only if no other differs.
    """
    found = list(differences(one, other))
    kept = [each for each in found if each[0].partition(".")[0] not in derived] or found
    return "; ".join(
        f"{name or 'algorithm'} {value_in_words(a)}, not {value_in_words(b)}" for name, a, b in kept
    )


def differences(one: Any, other: Any, inside: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each field in which two JSON objects differ, such as order.seed, with both values.

    A field that is missing is None. A column is one value, and of orders of two algorithms only
    these differ.

    Examples
    --------
    >>> list(differences({"order": {"seed": 0}, "epochs": [0]}, {"order": {"seed": 1}}))
    [('epochs', [0], None), ('order.seed', 0, 1)]
    """
    objects = isinstance(one, Mapping) and isinstance(other, Mapping)
    if not objects or (_is_column(one) and _is_column(other)):
        if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
            yield inside, one, other
    elif one.get("algorithm") != other.get("algorithm"):
        yield inside, one.get("algorithm"), other.get("algorithm")
    else:
        for name in sorted({*one, *other}):
            below = f"{inside}.{name}" if inside else name
            yield from differences(one.get(name), other.get(name), below)


def value_in_words(value: Any) -> str:
    """Write a value in a list of differences: a column by its sha256, anything long cut."""
    if _is_column(value):
        return f"the column {value['sha256'][:16]}... of {value['length']:,}"
    text = "none" if value is None else str(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}..."


def _is_column(value: Any) -> bool:
    """Return whether a value from JSON is a column's identity."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"dtype", "length", "sha256"}
        and isinstance(value["sha256"], str)
        and isinstance(value["length"], int)
    )


def path_text(what: str, path: Any, cure: str) -> str:
    """Return a path as a string that can name a file, or raise `IndexPlanError`."""
    try:
        text = os.fspath(path)
        right = isinstance(text, str) and b"\0" not in os.fsencode(text)
    except Exception:  # not a path, or one with a wrong __fspath__ or a lone surrogate
        right = False
    if not right:
        raise invalid(what, "a str or path-like object", path, cure)
    return str(text)


def check_callable(what: str, function: Any) -> None:
    """Raise `IndexPlanError` unless `function` is callable or None."""
    if function is not None and not callable(function):
        cure = "leave it out, or pass a function of two integers"
        raise invalid(what, "a function", function, cure)


def install(extra: str) -> str:
    """Return how to install what an extra brings.

    pip takes indexplan as it is installed, from a checkout or an index, and asks an index only for
    the rest. Code that is only on the path is not installed, so an extra of it needs the checkout.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # which only an error needs

    try:
        distribution("indexplan")
    except PackageNotFoundError:
        return f"pip install '.[{extra}]' in your checkout of indexplan"
    return f"pip install 'indexplan[{extra}]'"


def cure_of(error: OSError, otherwise: str) -> str:
    """Return what to do if the system refuses to open a file; by default, `otherwise`."""
    if error.errno == errno.EMFILE:
        return "raise the limit on open files (ulimit -n), or close some"
    if error.errno == errno.ENFILE:
        return "close files of other processes: the whole machine has too many open"
    return otherwise


def integer(
    what: str, value: Any, start: int, stop: int, cure: str, kind: str = "an integer"
) -> int:
    """Return `value` as a Python int if it is an integer in [start, stop).

    Python and NumPy integers are accepted, booleans and floats are not, even if they are whole.
    `kind` is what the message calls such an integer.

    Raises
    ------
    IndexPlanError
        If `value` is not an integer, is a boolean, or lies outside [start, stop).
    """
    if type(value) is int and start <= value < stop:  # the common case, several times per batch
        return value
    rule = f"{kind} from {start} to {_last(stop)}"
    if stop == start + 1:
        rule = f"the integer {start}" if kind == "an integer" else f"{start}, {kind}"
    number = as_integer(value)
    if number is None or not start <= number < stop:
        raise invalid(what, rule, value if number is None else number, cure)
    return number


def as_integer(value: Any) -> int | None:
    """Return an integer of any type, such as NumPy's, as int; None for anything else.

    A boolean does not count as an integer.
    """
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy.bool, without numpy
        return None
    try:
        return int(operator.index(value))
    except Exception:  # TypeError, or whatever a user's class raises
        return None


def _last(stop: int) -> str:
    """Return the largest allowed integer as people read it: 2**63 - 1, not its 19 digits."""
    power = stop.bit_length() - 1
    return f"2**{power} - 1" if power >= 31 and stop == 1 << power else str(stop - 1)
