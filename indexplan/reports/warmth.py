"""Warm-up: compile all kernels ahead of the first batch, so that later processes only load them."""

from __future__ import annotations

import os
from pkgutil import iter_modules

from indexplan import kernels
from indexplan.checks import Check, Report
from indexplan.errors import invalid

UNSET = {
    "NUMBA_BOUNDSCHECK": "unset, as checked kernels are never saved",
    "NUMBA_DISABLE_JIT": "unset, as nothing is compiled then",
}


def warm_up() -> Report:
    """Compile every kernel into numba's disk cache, or load those already there.

    A process whose kernels are cached has its first batch in half a second instead of seconds, and
    processes forked from one that has called this need not even load them. Kernels that can't be
    saved work in this process all the same; the report says why.

    Raises
    ------
    numba.core.errors.NumbaError
        If a kernel cannot be compiled.
    """
    for module in iter_modules(kernels.__path__):
        getattr(kernels, module.name)  # makes its kernels known
    known = kernels.compiling.KERNELS
    for kernel in known:
        kernel.compile()
    origins = [kernel.origin for kernel in known]
    folders = ", ".join(sorted({kernel.folder for kernel in known if kernel.folder})) or "none"
    said = f"{origins.count('loaded')} loaded, {origins.count('saved')} saved"
    name = f"kernels for {kernels.compiling.cpu_name()} are in numba's cache: {said}; in {folders}"
    unsaved = len(known) - origins.count("loaded") - origins.count("saved")
    return Report((Check(name, len(known), (_problem(folders),) * (unsaved > 0)),))


def _problem(folders: str) -> str:
    """Return what keeps kernels out of the cache, the rule and the cure."""
    for name, rule in UNSET.items():
        if (got := os.environ.get(name, "0")) != "0":
            return str(invalid(name, rule, got, "unset it"))
    rule, cure = "a folder with room that this user can write to", "set NUMBA_CACHE_DIR to one"
    return str(invalid("numba's cache", rule, folders, cure))
