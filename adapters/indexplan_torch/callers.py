"""Look at callers' frames, for the few frameworks that have no other way to tell.

Each `Caller` says who is looked for, and why. What is missing from a framework that is imported, as
after a renaming, is an error, and tests find each caller in the installed versions.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple

from indexplan_torch.versions import lacking


@dataclass(frozen=True, kw_only=True)
class Caller:
    """Somebody who may be calling, directly or through others.

    Parameters
    ----------
    package : str
        Whose code it is; the versions that were tested are in `versions.TESTED`.
    module : str
        Where its functions are.
    functions : tuple of str
        "Class.method", at least one of which has to exist.
    nearest : bool
        Whether only the nearest method of the module counts, so that code of a user that it calls
        is not taken for it.
    why : str
        Why there is no other way.
    """

    package: str
    module: str
    functions: tuple[str, ...]
    nearest: bool = False
    why: str


class Seen(NamedTuple):
    """A caller that was found: the name of its function, and its local variables."""

    function: str
    values: dict[str, Any]


def look(caller: Caller) -> Seen | None:
    """Look for a caller among those of the function that asks; the nearest one is returned.

    Raises
    ------
    IndexPlanError
        If this version of its package lacks all of its functions.
    """
    module = sys.modules.get(caller.module)
    if module is None:
        return None
    if not any(_has(module, each) for each in caller.functions):
        raise lacking(caller.package, f"{caller.module}.{caller.functions[0]}")
    # not currentframe(): a frame that holds itself keeps its callers' loader and workers alive
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (the only look of this package)
    while frame is not None:
        named = frame.f_code.co_qualname in caller.functions
        theirs = frame.f_globals.get("__name__") == caller.module
        if theirs and (named or caller.nearest) and "self" in frame.f_locals:
            return Seen(frame.f_code.co_name, {**frame.f_locals}) if named else None
        frame = frame.f_back
    return None


def _has(module: Any, function: str) -> bool:
    """Return whether a module has a class with a method."""
    kind, _, method = function.partition(".")
    return hasattr(getattr(module, kind, None), method)
