"""Turn plain functions into numba kernels, compiled at their first call, whatever the cache does.

numba stamps its disk cache with the file of the kernel alone, and an edited helper in another file
would go unnoticed. So a kernel here is stamped with every file of its folder, and may call whatever
lies there.
"""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite.binding import ffi, get_host_cpu_name
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.extending import register_jitable

Function = TypeVar("Function", bound=Callable[..., Any])
Origin: TypeAlias = Literal["loaded", "saved", "unsaved"]

INT64, FLOAT64 = types.int64, types.float64
# C-contiguous arrays; for reading, both writeable and read-only ones will do.
READ_UINT8 = types.Array(types.uint8, 1, "C", readonly=True)
READ_UINT32 = types.Array(types.uint32, 1, "C", readonly=True)
READ_TABLE = types.Array(types.uint32, 2, "C", readonly=True)
READ_INT32 = types.Array(types.int32, 1, "C", readonly=True)
READ_UINT64 = types.Array(types.uint64, 1, "C", readonly=True)
READ_INT64 = types.Array(types.int64, 1, "C", readonly=True)
READ_FLOAT64 = types.Array(types.float64, 1, "C", readonly=True)
WRITE_UINT32 = types.Array(types.uint32, 1, "C")
WRITE_UINT64 = types.Array(types.uint64, 1, "C")
WRITE_INT32 = types.Array(types.int32, 1, "C")
WRITE_INT64 = types.Array(types.int64, 1, "C")


# What numba makes of a function for C callers is left out; of a helper, `register_jitable` leaves
# out what is for Python callers too, and compiles it once for all literal numbers that it gets.
# Together they compile a shuffle in 1.3 s instead of 2.1, a block shuffle in 3.1 instead of 4.8.
# Helpers that numba inlines before compilation take 1.05 to 1.2 times as long.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}

_COMPILING = threading.RLock()  # numba compiles one function at a time anyway

# Whoever forks waits until nobody compiles: a child has only the thread that forked, and of a lock
# that another holds, it waits for ever. The inner locks are registered first, as they are taken
# last. They are given as they are, since Python drops what a hook raises: none is half taken where
# Ctrl-C comes. All may be taken again by their holder, so the thread that compiles may fork too.
for _inner in (getattr(ffi.lib, "_lock", None), global_compiler_lock, None):
    _lock = getattr(_inner, "_lock", None) if _inner else _COMPILING
    if _lock is not None and hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
        )


class Kernel:
    """A serial function without the GIL, compiled or loaded from disk when it is first called.

    Parameters
    ----------
    function : callable
        The plain function, kept as `py_func`.
    arguments : tuple of numba types
        The only types of arguments that it is compiled for.

    Attributes
    ----------
    origin : {"loaded", "saved", "unsaved"} or None
        Whether the machine code came from numba's cache, or was compiled and saved there, or could
        not be saved; None before the first call.
    folder : str or None
        The folder of numba's cache that was chosen for it, if any.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        functools.update_wrapper(self, function)
        self.name = function.__name__
        self.py_func = function
        self.arguments = arguments
        self.origin: Origin | None = None
        self.folder: str | None = None
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *values: Any) -> Any:
        """Run the kernel; raises `numba.core.errors.NumbaError` if it cannot be compiled."""
        return (self._compiled or self._compile())(*values)

    def compile(self) -> None:
        """Compile or load the kernel, if that was not done yet; raises what a call raises."""
        self._compile()

    def _compile(self) -> Callable[..., Any]:
        with _COMPILING:
            if self._compiled is None:
                self.origin = "unsaved"  # until it is known to be in the cache
                if vars(numba.config).get("DISABLE_JIT"):
                    self._compiled = self._plain
                    return self._compiled
                dispatcher = self._load() or self._build()
                dispatcher.disable_compile()  # else other types of arguments are compiled for
                self._compiled = dispatcher
            return self._compiled

    def _plain(self, *values: Any) -> Any:
        """Run the function as it was written, for whoever debugs it with NUMBA_DISABLE_JIT."""
        with np.errstate(over="ignore"):  # numbers of 64 bits wrap around, and are meant to
            return self.py_func(*values)

    def _dispatcher(self) -> Any:
        jit: Any = numba.njit  # whose annotations lack the option
        return jit(**OPTIONS)(self.py_func)

    def _build(self) -> Any:
        dispatcher = self._dispatcher()
        dispatcher.compile(self.arguments)
        return dispatcher

    def _load(self) -> Any:
        """Return the function from, or by way of, numba's cache; None if that is of no use."""
        if vars(numba.config).get("BOUNDSCHECK"):  # the cache cannot tell such code from other
            return None
        dispatcher = self._dispatcher()
        try:
            dispatcher.enable_caching()  # RuntimeError: no folder can be written to
            _stamp(dispatcher._cache._cache_file, self.py_func)  # noqa: SLF001  no public way
            self.folder = dispatcher.stats.cache_path
            try:
                dispatcher.compile(self.arguments)
                self.origin = "loaded" if dispatcher.stats.cache_hits else "saved"
            except NumbaError:
                raise
            except Exception:  # a damaged file raises anything when unpickled
                if not dispatcher.overloads:  # else it was compiled but not saved: a full disk
                    dispatcher._cache.flush()  # noqa: SLF001
                    dispatcher.compile(self.arguments)
                    self.origin = "saved"
        except NumbaError:
            raise
        except Exception:  # a folder that cannot be read, or flushed: do without
            return dispatcher if dispatcher.overloads else None
        return dispatcher


def _stamp(cache_file: Any, function: Callable[..., Any]) -> None:
    """Let what the cache holds of a kernel be good for the files of its folder as they are now.

    Raises AttributeError where a numba keeps no stamp, so that nothing is loaded or saved there.
    """
    theirs = cache_file._source_stamp  # noqa: SLF001
    folder = Path(function.__code__.co_filename).parent
    cache_file._source_stamp = (theirs, _sources(folder))  # noqa: SLF001


@functools.cache
def _sources(folder: Path) -> str:
    """Hash the names and texts of a folder's Python files; in a zip numba stamps the whole zip."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        text = path.read_bytes()
        digest.update(f"{path.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


KERNELS: list[Kernel] = []  # of all modules that were imported


def kernel(*arguments: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Make the decorated function a `Kernel` for arguments of these numba types."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        made = Kernel(function, arguments)
        KERNELS.append(made)
        return made

    return decorate


def helper(function: Function) -> Function:
    """Make a function callable from the kernels of its folder, which compile it as part of them.

    The function itself is returned, so Python callers get the plain one.
    """
    made: Function = register_jitable(**OPTIONS)(function)
    return made


def inlined(function: Function) -> Function:
    """Make a helper that LLVM puts into its callers whatever its length: see philox.py."""
    made: Function = register_jitable(forceinline=True, **OPTIONS)(function)
    return made


def cpu_name() -> str:
    """Return LLVM's name of the CPU that kernels are compiled for, as numba's cache knows it."""
    name: str = vars(numba.config).get("CPU_NAME") or get_host_cpu_name()
    return name
