"""Turn plain functions into numba kernels, compiled at their first call, whatever the cache does.

numba stamps its disk cache with the file of the kernel alone, so a kernel and the helpers that it
calls must lie in one file: an edited helper elsewhere would go unnoticed.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core.errors import NumbaError

Function = TypeVar("Function", bound=Callable[..., Any])

INT64 = types.int64
# C-contiguous arrays; for reading, both writeable and read-only ones will do.
READ_UINT8 = types.Array(types.uint8, 1, "C", readonly=True)
READ_UINT32 = types.Array(types.uint32, 1, "C", readonly=True)
READ_UINT64 = types.Array(types.uint64, 1, "C", readonly=True)
READ_INT64 = types.Array(types.int64, 1, "C", readonly=True)
WRITE_INT64 = types.Array(types.int64, 1, "C")


class Kernel:
    """A serial function without the GIL, compiled or loaded from disk when it is first called.

    Parameters
    ----------
    function : callable
        The plain function, kept as `py_func`.
    arguments : tuple of numba types
        The only types of arguments that it is compiled for.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.arguments = arguments
        self._compiled: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def __call__(self, *values: Any) -> Any:
        """Run the kernel; raises `numba.core.errors.NumbaError` if it cannot be compiled."""
        return (self._compiled or self._compile())(*values)

    def _compile(self) -> Callable[..., Any]:
        with self._lock:
            if self._compiled is None:
                dispatcher = self._load() or self._build()
                dispatcher.disable_compile()  # else other types of arguments are compiled for
                self._compiled = dispatcher
            return self._compiled

    def _build(self) -> Any:
        dispatcher: Any = numba.njit(nogil=True)(self.py_func)
        dispatcher.compile(self.arguments)
        return dispatcher

    def _load(self) -> Any:
        """Return the function from, or by way of, numba's cache; None if that is of no use."""
        if vars(numba.config).get("BOUNDSCHECK"):  # the cache cannot tell such code from other
            return None
        dispatcher: Any = numba.njit(nogil=True)(self.py_func)
        try:
            dispatcher.enable_caching()  # RuntimeError: no folder can be written to
            try:
                dispatcher.compile(self.arguments)
            except NumbaError:
                raise
            except Exception:  # a damaged file raises anything when unpickled
                if not dispatcher.overloads:  # else it was compiled but not saved: a full disk
                    dispatcher._cache.flush()  # noqa: SLF001  numba has no public way
                    dispatcher.compile(self.arguments)
        except NumbaError:
            raise
        except Exception:  # a folder that cannot be read, or flushed: do without
            return dispatcher if dispatcher.overloads else None
        return dispatcher


def kernel(*arguments: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Make the decorated function a `Kernel` for arguments of these numba types."""
    return lambda function: Kernel(function, arguments)


def helper(function: Function) -> Function:
    """Make a function callable from the kernels of its file, which compile it as part of them."""
    return cast("Function", numba.njit(nogil=True)(function))
