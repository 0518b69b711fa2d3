"""Look at callers' frames, for the few frameworks that have no other way to tell.

The file of each framework says whom it looks for, and why. What is missing from a framework that is
imported, as after a renaming, is an error, and tests find each caller in the installed versions.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from indexplan_torch.versions import lacking

WHOLE = sys.maxsize  # a depth: all frames


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Somebody who may be calling, directly or through others.

    Parameters
    ----------
    package : str
        Whose code it is; the versions that were tested are in `versions.TESTED`.
    modules : tuple of str
        The names that the module has: it may be installed under two. None are given where the
        caller is found by its `owner`, or by what it `reads` alone.
    functions : tuple of str
        "function" or "Class.method". At least one has to exist in each of the modules that is
        imported. If none are given, any function that has the variables is the caller.
    nearest : bool
        Whether only the nearest function of the modules counts, so that code of a user that it
        calls is not taken for it.
    owner : type, optional
        Of the `self` of the function, which subclasses in other modules may have.
    reads : tuple of str
        The local variables that are looked at; a function without the first is another one.
    depth : int
        Among how many callers it is looked for.
    why : str
        Why there is no other way.
    otherwise : str
        What happens if nobody is found.
    """

    package: str
    modules: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    nearest: bool = False
    owner: type | None = None
    reads: tuple[str, ...] = ("self",)
    depth: int
    why: str
    otherwise: str


@dataclass(frozen=True)
class Seen:
    """A caller that was found: the name of its function, and the variables that it is read for."""

    function: str
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return a variable; None if it is not there."""
        return self.values.get(name)


def look(caller: Caller) -> Seen | None:
    """Look for a caller among those of the function that asks; the nearest one is returned.

    Raises
    ------
    IndexPlanError
        If this version of its package lacks all of its functions.
    """
    if caller.modules and not _imported(caller):
        return None
    wanted = {function.rpartition(".")[2] for function in caller.functions}
    # not currentframe(): a frame that holds itself keeps its callers' loader and workers alive
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the only look of this package)
    left = caller.depth
    while frame is not None and left:
        named = not wanted or frame.f_code.co_name in wanted
        if (named or caller.nearest) and _is(caller, frame):
            values = {n: frame.f_locals[n] for n in caller.reads if n in frame.f_locals}
            return Seen(frame.f_code.co_name, values) if named else None
        frame, left = frame.f_back, left - 1
    return None


def _is(caller: Caller, frame: FrameType) -> bool:
    """Return whether a frame is of the caller's modules, owner and variables."""
    if caller.modules and frame.f_globals.get("__name__") not in caller.modules:
        return False
    if caller.owner is not None and not isinstance(frame.f_locals.get("self"), caller.owner):
        return False
    return not caller.reads or caller.reads[0] in frame.f_locals


def _imported(caller: Caller) -> bool:
    """Return whether a module of the caller is imported; raise if it lacks what is looked for."""
    there = [sys.modules[name] for name in caller.modules if name in sys.modules]
    for module in there:
        if caller.functions and not any(_has(module, each) for each in caller.functions):
            raise lacking(caller.package, f"{module.__name__}.{caller.functions[0]}")
    return bool(there)


def _has(module: Any, function: str) -> bool:
    """Return whether a module has a function, or a class that has it."""
    thing = module
    for name in function.split("."):
        thing = getattr(thing, name, None)
    return thing is not None
