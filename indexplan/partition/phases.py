"""Phases of a schedule: the batch size and other parameters from some place of the run on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from indexplan.canonical import canonical_json
from indexplan.errors import Cure, integer, shown, wrong
from indexplan.keywords import named
from indexplan.once import once
from indexplan.seeds import EPOCH_STOP

Scalar: TypeAlias = "str | int | float | bool | None"
At: TypeAlias = "int | tuple[int, int]"
Size: TypeAlias = "int | tuple[int, ...]"

SIZE_STOP = 2**62  # a global batch; leaves room for sums of two in an int64
LEVELS_MAX = 62  # of a nested batch: with more, some can only be 1
DIGITS_STOP = 10**4000  # longer integers cannot be printed: Python's limit is 4,300 digits
PLACE_STOP = 2**95  # epoch < 2**32 and position < 2**63
OTHER_SIZE = Cure(
    "pass how many units a batch holds, or a tuple such as (5, 3)",
    "give how many units a batch holds, or 5x3 for a nested one",
)


@named
@dataclass(frozen=True, eq=False)
class Phase:
    """A batch size, and parameters such as a resolution, from some place of the run on.

    A plan takes a list of phases, or text for it, as `batch_size` or `global_batch_size`.

    Parameters
    ----------
    at : int or (int, int)
        Where the phase starts: a number of units since the start of the run (a stream place), or
        (epoch, sub_epoch) for the start of that sub-epoch.
    size : int or tuple of int
        Units per step: of each rank if the plan's `batch_size` holds the phase, of all ranks if
        `global_batch_size` does. A tuple nests: (5, 3) is 5 inner batches of 3.
    parameters : mapping of str to str, int, float, bool or None
        Whatever else changes with the phase, such as a resolution; `phase["resolution"]` looks one
        up. Kept as sorted (name, value) pairs.

    Raises
    ------
    IndexPlanError
        If `at` is negative, or neither an integer nor such a pair; a size is not a positive integer
        or a tuple of them, or its product is 2**62 or more; or a parameter is not a JSON scalar.

    Examples
    --------
    >>> phase = Phase(at=(3, 0), size=256, parameters={"resolution": 192})
    >>> phase["resolution"]
    192
    """

    at: At = 0
    size: Size = 1
    parameters: tuple[tuple[str, Scalar], ...] | Mapping[str, Scalar] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", _check_at(self.at))
        object.__setattr__(self, "size", check_size("size", self.size))
        object.__setattr__(self, "parameters", _check_parameters(self.parameters))

    def __eq__(self, other: object) -> bool:
        # compared as JSON, in which True, 1 and 1.0 differ, as they do in a fingerprint
        return self._json == other._json if isinstance(other, Phase) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._json)

    @once
    def _json(self) -> str:
        return canonical_json(self.to_dict())

    def __getitem__(self, name: str) -> Scalar:
        """Return the parameter `name`; raise `IndexPlanError` if the phase has none."""
        parameters = dict(self.parameters)
        if isinstance(name, str) and name in parameters:
            return parameters[name]
        rule = f"one of the phase's, {list(parameters)}"
        raise wrong("a parameter", rule, name, "give each phase of the plan the same parameters")

    @property
    def num_units(self) -> int:
        """Units in a full batch: the product of the sizes."""
        return self.size if isinstance(self.size, int) else math.prod(self.size)

    @property
    def inner_counts(self) -> tuple[int, ...]:
        """The number of inner batches at each outer level, outermost first; () if not nested."""
        return () if isinstance(self.size, int) else self.size[:-1]

    def to_dict(self) -> dict[str, Any]:
        """Return the phase as JSON types."""
        return {
            "at": self.at if isinstance(self.at, int) else list(self.at),
            "size": size_to_json(self.size),
            "parameters": dict(self.parameters),
        }


def _check_at(at: Any) -> At:
    cure = "count units from the start of the run, or name (epoch, sub_epoch)"
    if isinstance(at, list | tuple):
        if len(at) != 2:
            raise wrong("at", "a stream place or (epoch, sub_epoch)", at, cure)
        epoch = integer("at's epoch", at[0], 0, EPOCH_STOP, cure)
        return (epoch, integer("at's sub_epoch", at[1], 0, 2**63, cure))
    return integer("at", at, 0, PLACE_STOP, cure)


def check_size(what: str, size: Any) -> Size:
    """Return a batch size as an int, or as a tuple of two or more ints if it is nested."""
    if not isinstance(size, list | tuple):
        return integer(what, size, 1, SIZE_STOP, OTHER_SIZE)
    if not size:
        raise wrong(what, "a positive integer or a non-empty tuple of them", size, OTHER_SIZE)
    if len(size) > LEVELS_MAX:
        rule = f"a tuple of at most {LEVELS_MAX} levels"
        raise wrong(what, rule, f"{len(size)} levels", "leave out levels of 1")
    sizes = tuple(
        integer(f"{what}[{i}]", part, 1, SIZE_STOP, OTHER_SIZE) for i, part in enumerate(size)
    )
    integer(f"the product of {what}", math.prod(sizes), 1, SIZE_STOP, "use smaller batches")
    return sizes if len(sizes) > 1 else sizes[0]


def size_to_json(size: Size) -> int | list[int]:
    """Return a size as JSON types."""
    return size if isinstance(size, int) else list(size)


def _check_parameters(parameters: Any) -> tuple[tuple[str, Scalar], ...]:
    if type(parameters) is tuple and not parameters:
        return ()
    cure = "pass a dict such as {'resolution': 192}"
    try:
        pairs = dict(parameters) if isinstance(parameters, Mapping | tuple) else {}
        right = isinstance(parameters, Mapping | tuple) and len(pairs) == len(parameters)
    except Exception:  # TypeError, ValueError, or whatever a user's mapping raises
        right = False
    if not right:
        raise wrong("parameters", "a mapping of names to JSON scalars", parameters, cure)
    for name, value in pairs.items():
        if not isinstance(name, str):
            raise wrong("a parameter's name", "a string", name, cure)
        finite = type(value) is not float or math.isfinite(value)
        if type(value) is int and not -DIGITS_STOP < value < DIGITS_STOP:
            rule = "an integer of at most 4000 digits"
            raise wrong(f"parameter {shown(name)}", rule, value, "use a str")
        if type(value) not in (str, int, float, bool, type(None)) or not finite:
            rule = "a finite JSON scalar (str, int, float, bool or None)"
            raise wrong(f"parameter {shown(name)}", rule, value, cure)
    return tuple(sorted(pairs.items()))


def as_phases(what: str, value: Any) -> tuple[Phase, ...]:
    """Return a plan's batch size (a size, a list of phases, or text) as phases, the first at 0."""
    if isinstance(value, str):
        if value.strip().isdigit():  # a number that was read from somewhere, and not converted
            raise wrong(what, "a number, not text, where it is one number", value, "pass an int")
        value = _parsed(value)
    if not isinstance(value, list | tuple) or not any(isinstance(item, Phase) for item in value):
        return (Phase(size=check_size(what, value)),)
    for item in value:
        if not isinstance(item, Phase):
            raise wrong(f"each phase of {what}", "a Phase", item, "pass Phase(at, size)")
    if value[0].at not in (0, (0, 0)):
        cure = "start the schedule with Phase(at=0, ...)"
        raise wrong(f"the first phase of {what}", "at 0", value[0].at, cure)
    return tuple(value)


def _parsed(text: str) -> Size | list[Phase]:
    """Return what a text says: `5x3`, or words AT:SIZE or AT:SIZE:NAME=VALUE,NAME=VALUE."""
    words = text.split()
    if not words:
        rule = "text: a size, or phases such as '0:512 250000:768'"
        raise wrong("a batch size", rule, text, "write phases, or pass an int")
    if len(words) == 1 and ":" not in text:
        return _parse_size(words[0])
    return [_parse_phase(word) for word in words]


def _parse_phase(word: str) -> Phase:
    at, colon, rest = word.partition(":")
    if not colon:
        rule = "AT:SIZE or AT:SIZE:NAME=VALUE,..."
        raise wrong("a phase", rule, word, "write one such as 250000:768")
    size, _, parameters = rest.partition(":")
    rule = "a stream place or EPOCH/SUB_EPOCH"
    place = _integers("AT", rule, at, "/")
    if len(place) > 2:
        raise wrong("AT", rule, at, "write one such as 250000 or 3/0")
    pairs = {}
    for pair in filter(None, parameters.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise wrong("a parameter", "NAME=VALUE", pair, "write one such as resolution=192")
        pairs[name] = _scalar(value)
    return Phase(place if len(place) == 2 else place[0], _parse_size(size), pairs)


def _parse_size(text: str) -> Size:
    sizes = _integers("a batch size", "a size such as 256 or 5x3", text, "x")
    return check_size("a batch size", sizes if len(sizes) > 1 else sizes[0])


def _integers(what: str, rule: str, text: str, separator: str) -> tuple[int, ...]:
    parts = text.split(separator)
    if not all(part.isascii() and part.isdigit() and len(part) < 100 for part in parts):
        raise wrong(what, rule, text, "write digits")
    return tuple(int(part) for part in parts)


def _scalar(text: str) -> Scalar:
    """Read a parameter's value: as a JSON scalar if it is one, else as a string."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(value, list | dict) else value
