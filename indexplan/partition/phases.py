"""Phases of a schedule: the batch size and other parameters from some place of the run on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from indexplan.canonical import canonical_json
from indexplan.errors import Cure, integer, invalid, shown
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
    "give how many units a batch holds, or a tuple such as (5, 3)",
)


@named
@dataclass(frozen=True, eq=False)
class Phase:
    """A batch size, and parameters such as a resolution, from some place of the run on.

    A plan takes a list of phases as `batch_size` or `global_batch_size`.

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
        raise invalid("a parameter", rule, name, "give each phase of the plan the same parameters")

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
            raise invalid("at", "a stream place or (epoch, sub_epoch)", at, cure)
        epoch = integer("at's epoch", at[0], 0, EPOCH_STOP, cure)
        return (epoch, integer("at's sub_epoch", at[1], 0, 2**63, cure))
    return integer("at", at, 0, PLACE_STOP, cure)


def check_size(what: str, size: Any) -> Size:
    """Return a batch size as an int, or as a tuple of two or more ints if it is nested."""
    if not isinstance(size, list | tuple):
        return integer(what, size, 1, SIZE_STOP, OTHER_SIZE)
    if not size:
        raise invalid(what, "a positive integer or a non-empty tuple of them", size, OTHER_SIZE)
    if len(size) > LEVELS_MAX:
        rule = f"a tuple of at most {LEVELS_MAX} levels"
        raise invalid(what, rule, f"{len(size)} levels", "leave out levels of 1")
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
        raise invalid("parameters", "a mapping of names to JSON scalars", parameters, cure)
    for name, value in pairs.items():
        if not isinstance(name, str):
            raise invalid("a parameter's name", "a string", name, cure)
        finite = type(value) is not float or math.isfinite(value)
        if type(value) is int and not -DIGITS_STOP < value < DIGITS_STOP:
            rule = "an integer of at most 4000 digits"
            raise invalid(f"parameter {shown(name)}", rule, value, "use a str")
        if type(value) not in (str, int, float, bool, type(None)) or not finite:
            rule = "a finite JSON scalar (str, int, float, bool or None)"
            raise invalid(f"parameter {shown(name)}", rule, value, cure)
    return tuple(sorted(pairs.items()))


def as_phases(what: str, value: Any) -> tuple[Phase, ...]:
    """Return a plan's batch size (a size, or a list of phases) as phases, the first at 0."""
    if not isinstance(value, list | tuple) or not any(isinstance(item, Phase) for item in value):
        return (Phase(size=check_size(what, value)),)
    for item in value:
        if not isinstance(item, Phase):
            raise invalid(f"each phase of {what}", "a Phase", item, "pass Phase(at, size)")
    if value[0].at not in (0, (0, 0)):
        cure = "start the schedule with Phase(at=0, ...)"
        raise invalid(f"the first phase of {what}", "at 0", value[0].at, cure)
    return tuple(value)
