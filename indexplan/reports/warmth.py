"""Warm-up: compile all kernels ahead of the first batch, so that later processes only load them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import iter_modules
from time import perf_counter
from typing import Any

from indexplan import kernels
from indexplan.answers import Answer
from indexplan.errors import counted, wrong

NEVER_SAVED = {
    "NUMBA_BOUNDSCHECK": "checked kernels are never saved",
    "NUMBA_DISABLE_JIT": "nothing is compiled then",
}


@dataclass(frozen=True)
class Warmth(Answer):
    """What `warm_up` did: where each kernel came from, and the CPU type that it is compiled for.

    `kernels` holds "loaded" for a kernel that was in numba's cache, "saved" for one that was
    compiled and saved there, and "unsaved" for one that was compiled for this process alone.

    Examples
    --------
    >>> warmth = warm_up()
    >>> warmth.ok, warmth.problem
    (True, None)
    """

    kernels: Mapping[str, str]
    seconds: float
    folders: tuple[str, ...]  # of numba's cache
    cpu_name: str

    @property
    def ok(self) -> bool:
        """Whether later processes find every kernel in numba's cache."""
        return "unsaved" not in self.kernels.values()

    @property
    def problem(self) -> str | None:
        """What keeps kernels out of the cache, the rule and the cure; None if nothing does."""
        if self.ok:
            return None
        for name, why in NEVER_SAVED.items():
            if (got := os.environ.get(name, "0")) != "0":
                return str(wrong(name, f"unset, as {why}", got, "unset it"))
        rule, cure = "a folder with room that this user can write to", "set NUMBA_CACHE_DIR to one"
        return str(wrong("numba's cache", rule, ", ".join(self.folders) or "none", cure))

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON types."""
        return {"ok": self.ok, "problem": self.problem, **super().to_dict()}

    def __str__(self) -> str:
        origins = [*self.kernels.values()]
        said = [f"{origins.count(each)} {each}" for each in ("loaded", "saved", "unsaved")]
        total = counted(len(origins), "kernel")
        lines = [f"{total} for {self.cpu_name} in {self.seconds:.2f} s: {', '.join(said)}"]
        return "\n".join([*lines, *(f"numba's cache: {folder}" for folder in self.folders)])


def warm_up() -> Warmth:
    """Compile every kernel into numba's disk cache, or load those already there.

    A process whose kernels are cached has its first batch in half a second instead of seconds, and
    processes forked from one that has called this need not even load them. Kernels that can't be
    saved work in this process all the same.

    Raises
    ------
    numba.core.errors.NumbaError
        If a kernel cannot be compiled.
    """
    for module in iter_modules(kernels.__path__):
        getattr(kernels, module.name)  # makes its kernels known
    start = perf_counter()
    known = kernels.compiling.KERNELS
    for kernel in known:
        kernel.compile()
    return Warmth(
        kernels={kernel.name: kernel.origin or "unsaved" for kernel in known},
        seconds=perf_counter() - start,
        folders=tuple(sorted({kernel.folder for kernel in known if kernel.folder})),
        cpu_name=kernels.compiling.cpu_name(),
    )
