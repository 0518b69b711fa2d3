"""Warm-up: compile all kernels ahead of the first batch, so that later processes only load them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from pkgutil import iter_modules
from time import perf_counter
from typing import TYPE_CHECKING, Any

from indexplan import kernels
from indexplan.answers import Answer, as_json
from indexplan.errors import IndexPlanError, wrong

if TYPE_CHECKING:
    from indexplan.kernels.compiling import Origin

_NEVER_SAVED = {
    "NUMBA_BOUNDSCHECK": "checked kernels are never saved",
    "NUMBA_DISABLE_JIT": "nothing is compiled then",
}
_WORDS = {"loaded": "loaded", "saved": "compiled", "unsaved": "compiled, not saved"}


@dataclass(frozen=True)
class WarmKernel:
    """One kernel: where its machine code came from, and where later processes find it.

    Attributes
    ----------
    name : str
    origin : {"loaded", "saved", "unsaved"}
        Found in numba's cache; compiled and saved there; or compiled for this process alone.
    seconds : float
        How long that took, in seconds; 0 if this process had the kernel already.
    folder : str or None
        The folder in numba's cache; None if no folder could be written to.
    """

    name: str
    origin: Origin
    seconds: float
    folder: str | None


@dataclass(frozen=True)
class Warmth(Answer):
    """What `warm_up` did: all kernels, and the CPU type that they are compiled for.

    Examples
    --------
    >>> import indexplan as ip
    >>> warmth = warm_up()
    >>> warmth.ok, warmth.problem
    (True, None)
    """

    kernels: tuple[WarmKernel, ...]
    cpu_name: str

    @property
    def ok(self) -> bool:
        """Whether later processes find every kernel in numba's cache."""
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """What keeps kernels out of the cache, the rule and the cure; None if nothing does."""
        unsaved = [kernel for kernel in self.kernels if kernel.origin == "unsaved"]
        if not unsaved:
            return None
        for name, why in _NEVER_SAVED.items():
            if (got := os.environ.get(name, "0")) != "0":
                return str(wrong(name, f"unset, as {why}", got, "unset it"))
        folders = sorted({kernel.folder for kernel in unsaved if kernel.folder})
        cure = "set NUMBA_CACHE_DIR to a folder that this user can write to"
        if folders:
            rule, got = "must have room, and files that may be replaced", ", ".join(folders)
            return str(IndexPlanError("numba's cache", rule, got, f"free some, or {cure}"))
        rule = "must lie in a folder that this user can write to"
        got = f"none among {', '.join(_places())}"
        return str(IndexPlanError("numba's cache", rule, got, cure))

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders of the cache that hold the kernels, sorted."""
        saved = {kernel.folder for kernel in self.kernels if kernel.origin != "unsaved"}
        return tuple(sorted(folder for folder in saved if folder))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return {
            "ok": self.ok,
            "problem": self.problem,
            "cpu_name": self.cpu_name,
            "folders": list(self.folders),
            "seconds": sum(kernel.seconds for kernel in self.kernels),
            "kernels": as_json(self.kernels),
        }

    def __str__(self) -> str:
        """Return a table of the kernels, and the folders of the cache."""
        lines = [
            f"{kernel.name:<20}{_WORDS[kernel.origin]:<20}{kernel.seconds:>7.2f} s"
            for kernel in self.kernels
        ]
        total = sum(kernel.seconds for kernel in self.kernels)
        lines += [f"{'all kernels':<20}{'for ' + self.cpu_name:<20}{total:>7.2f} s"]
        return "\n".join([*lines, *(f"numba's cache: {folder}" for folder in self.folders)])


def warm_up() -> Warmth:
    """Compile every kernel into numba's disk cache, or load those already there.

    Call it once where an image is built, or before many processes start at once. A process whose
    kernels are cached has its first batch in half a second instead of seconds, and processes forked
    from one that has called this need not even load them.

    Returns
    -------
    Warmth
        Its `ok` is False if a kernel could not be saved; `problem` then says why, and what to do.
        The kernels work in this process all the same.

    Raises
    ------
    numba.core.errors.NumbaError
        If a kernel cannot be compiled.

    Examples
    --------
    >>> import indexplan as ip
    >>> warm_up().ok
    True
    """
    for module in iter_modules(kernels.__path__):
        getattr(kernels, module.name)  # makes its kernels known

    warm = []
    for kernel in kernels.compiling.KERNELS:
        start = perf_counter()
        known = kernel.origin is not None
        kernel.compile()
        seconds = 0.0 if known else perf_counter() - start
        origin = kernel.origin or "unsaved"
        warm.append(WarmKernel(kernel.name, origin, seconds, kernel.folder))
    return Warmth(tuple(warm), kernels.compiling.cpu_name())


def _places() -> list[str]:
    """Return the folders that numba tries, in its order."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    beside = str(Path(kernels.__path__[0]) / "__pycache__")
    return [*([chosen] if chosen else []), beside, str(Path(home) / "numba")]
