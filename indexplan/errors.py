"""What can go wrong, and the one way to say it: what, the rule, the value, the cure."""

from __future__ import annotations

import operator
from typing import Any

LONGEST = 500  # characters of a value that a message shows


class IndexPlanError(ValueError):
    """A value that breaks a rule; the message names the value, the rule and the cure.

    Examples
    --------
    >>> import indexplan as ip
    >>> try:
    ...     ip.Shuffle(10.0)
    ... except ip.IndexPlanError as error:
    ...     print(error)
    num_samples must be an integer from 1 to 2**63 - 1; got 10.0; pass len(dataset)
    """


class PlanFileError(IndexPlanError):
    """A plan directory, or the dataset it was built for, is not what it has to be.

    Examples
    --------
    >>> import indexplan as ip
    >>> try:
    ...     ip.load("nowhere.plan")
    ... except ip.PlanFileError as error:
    ...     print("no plan")
    no plan
    """


def wrong(what: str, rule: str, got: object, cure: str) -> IndexPlanError:
    """Return the error `<what> must be <rule>; got <got>; <cure>`."""
    return IndexPlanError(f"{what} must be {rule}; got {_shown(got)}; {cure}")


def _shown(value: object) -> str:
    """Write a value in one line that somebody can read: an array's repr has many."""
    text = " ".join(line.strip() for line in repr(value).splitlines())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def whole(what: str, value: Any, start: int, stop: int, cure: str, kind: str = "an integer") -> int:
    """Return `value` as a Python int, if it is an integer in [start, stop).

    Python and NumPy integers are accepted; floats and booleans are not, even where they are whole.
    `kind` says in the message what the integer is one of.

    Raises
    ------
    IndexPlanError
        If `value` is not an integer, is a boolean, or lies outside [start, stop).
    """
    if type(value) is int and start <= value < stop:  # the common case, on the path of every batch
        return value
    rule = f"{kind} from {start} to {_last(stop)}"
    if stop == start + 1:
        rule = f"the integer {start}" if kind == "an integer" else f"{start}, {kind}"
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy.bool, without numpy
        raise wrong(what, rule, value, cure)
    try:
        number = operator.index(value)
    except TypeError:
        raise wrong(what, rule, value, cure) from None
    if not start <= number < stop:
        raise wrong(what, rule, number, cure)
    return number


def _last(stop: int) -> str:
    """Write the largest allowed integer the way people read it: 2**63 - 1, not its 19 digits."""
    power = stop.bit_length() - 1
    return f"2**{power} - 1" if power >= 31 and stop == 1 << power else str(stop - 1)
