"""Turn plain functions into numba kernels, compiled at their first call, whatever the cache does.

A kernel is serial, releases the GIL and is cached on disk. numba stamps that cache with the file
of the kernel alone, so kernels and the helpers which they call belong in one file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.errors import NumbaError

Function = TypeVar("Function", bound=Callable[..., Any])

INT64 = types.int64
# C-contiguous arrays that a kernel only reads; writeable and read-only arguments both match.
READ_UINT8 = types.Array(types.uint8, 1, "C", readonly=True)
READ_UINT32 = types.Array(types.uint32, 1, "C", readonly=True)
READ_UINT64 = types.Array(types.uint64, 1, "C", readonly=True)
READ_INT64 = types.Array(types.int64, 1, "C", readonly=True)
WRITE_INT64 = types.Array(types.int64, 1, "C")


class Kernel:
    """A function which is compiled, or loaded from numba's cache, when it is first called.

    Parameters
    ----------
    function : callable
        The plain function; it stays available as `py_func`.
    arguments : tuple of numba types
        The types of its arguments, the only ones that it is compiled for.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.py_func = function
        self.arguments = arguments
        self._compiled: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def __call__(self, *values: Any) -> Any:
        """Run the kernel."""
        return (self._compiled or self.compile())(*values)

    def compile(self) -> Callable[..., Any]:
        """Return the compiled function; safe to be called by many threads at once.

        Raises
        ------
        numba.core.errors.NumbaError
            If numba cannot compile the function.
        """
        with self._lock:
            if self._compiled is None:
                self._compiled = self._load(cached=True) or self._load(cached=False)
            return self._compiled

    def _load(self, *, cached: bool) -> Any:
        """Return the compiled function, or None where a broken cache stands in the way."""
        dispatcher = numba.njit(nogil=True)(self.py_func)
        if not cached or numba.config.BOUNDSCHECK:  # which is no part of the key of numba's cache
            dispatcher.compile(self.arguments)
            return dispatcher
        try:
            dispatcher.enable_caching()  # RuntimeError where no folder can be written to
        except (RuntimeError, OSError):
            return None
        for _ in range(2):
            try:
                dispatcher.compile(self.arguments)
            except NumbaError:
                raise
            except Exception:  # noqa: BLE001, S112  unpickling garbage raises any exception
                if not dispatcher.overloads and not _forget(dispatcher):
                    return None
            if dispatcher.overloads:  # maybe compiled but not saved: a full disk
                return dispatcher
        return None


def _forget(dispatcher: Any) -> bool:
    """Empty the cache of one kernel; False if that fails too."""
    try:
        dispatcher._cache.flush()  # noqa: SLF001  numba has no public way
    except OSError:
        return False
    return True


def kernel(*arguments: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a decorated function a `Kernel` for arguments of these numba types."""
    return lambda function: Kernel(function, arguments)


def helper(function: Function) -> Function:
    """Make a function callable from the kernels of its file; it is compiled as part of them."""
    compiled: Function = numba.njit(nogil=True)(function)
    return compiled
