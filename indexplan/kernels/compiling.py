"""Turns plain functions into numba kernels, compiled at their first call, even without a cache.

numba stamps its disk cache only with the file of the kernel, so that an edited helper in another
file would go unnoticed. Here a kernel is stamped with its file and all those of its folder that
this one imports, and so on.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import numba
import numpy as np
from llvmlite.binding import ffi, get_host_cpu_name
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.extending import register_jitable

from indexplan import kernels

Function = TypeVar("Function", bound=Callable[..., Any])
Origin: TypeAlias = Literal["loaded", "saved", "unsaved"]

INT64, FLOAT64 = types.int64, types.float64
# C-contiguous arrays; those for reading may be writeable or read-only.
READ_UINT8 = types.Array(types.uint8, 1, "C", readonly=True)
READ_UINT32 = types.Array(types.uint32, 1, "C", readonly=True)
READ_TABLE = types.Array(types.uint32, 2, "C", readonly=True)
READ_INT32 = types.Array(types.int32, 1, "C", readonly=True)
READ_UINT64 = types.Array(types.uint64, 1, "C", readonly=True)
READ_INT64 = types.Array(types.int64, 1, "C", readonly=True)
READ_FLOAT64 = types.Array(types.float64, 1, "C", readonly=True)
READ_NODES = types.Array(types.int64, 2, "C", readonly=True)
READ_RATIOS = types.Array(types.float64, 2, "C", readonly=True)
WRITE_UINT8 = types.Array(types.uint8, 1, "C")
WRITE_UINT32 = types.Array(types.uint32, 1, "C")
WRITE_UINT64 = types.Array(types.uint64, 1, "C")
WRITE_INT32 = types.Array(types.int32, 1, "C")
WRITE_INT64 = types.Array(types.int64, 1, "C")
WRITE_TABLE = types.Array(types.uint32, 2, "C")
WRITE_GROUPS = types.Array(types.int64, 2, "C")
WRITE_RATIOS = types.Array(types.float64, 2, "C")


# The wrapper that numba makes for C callers is left out; of a helper, `register_jitable` leaves out
# that for Python callers too, and compiles it once for all literal numbers that it is called with.
# Together they compile a shuffle in 1.3 s instead of 2.1, a block shuffle in 3.1 instead of 4.8.
# Helpers that numba inlines before compilation take 1.05 to 1.2 times as long.
OPTIONS = {"nogil": True, "no_cfunc_wrapper": True}

# A fork waits for BUSY: a child has only the thread that forked, and would wait forever for what
# another had begun. It waits for numba's and LLVM's locks too, which the caller's own functions may
# hold. What is registered last is taken first, and whoever compiles a kernel holds BUSY before
# these, and before the lock of logging, which numba has imported: so a fork cannot wait already
# while numba is imported. The locks' own methods are registered, since Python drops what a hook
# raises: so none is half taken after Ctrl-C.
for _inner in (getattr(ffi.lib, "_lock", None), global_compiler_lock, None):
    _lock = getattr(_inner, "_lock", None) if _inner else kernels.BUSY
    if _lock is not None and hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(
            before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
        )


class Kernel:
    """A serial function that runs without the GIL, compiled or loaded from disk at its first call.

    Parameters
    ----------
    function : callable
        The plain function, kept as `py_func`.
    arguments : tuple of numba types
        The only types of arguments for which it is compiled.

    Attributes
    ----------
    origin : {"loaded", "saved", "unsaved"} or None
        Whether the machine code came from numba's cache, or was compiled and saved there, or could
        not be saved; None before the first call.
    folder : str or None
        The folder of numba's cache in which it is, if any.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        functools.update_wrapper(self, function)
        self.name = function.__name__
        self.py_func = function
        self.arguments = arguments
        # Hashed now, as they are imported: edited later, they would stamp the code from before.
        self._sources = _sources(Path(function.__code__.co_filename))
        self.origin: Origin | None = None
        self.folder: str | None = None
        self._compiled: Callable[..., Any] | None = None
        self._plain_calls = 0

    def __call__(self, *values: Any) -> Any:
        """Run the kernel; raise `numba.core.errors.NumbaError` if it cannot be compiled."""
        return (self._compiled or self._compile())(*values)

    def plain_at_first(self, calls: int, *values: Any) -> Any:
        """Run it as plain Python, its first calls in a process and unless it is compiled already.

        For so few that they take some milliseconds: to load a kernel takes 20, to compile it
        seconds.
        """
        self._plain_calls += 1
        plain = self._compiled is None and self._plain_calls <= calls
        return self._plain(*values) if plain else self(*values)

    def compile(self) -> None:
        """Compile or load the kernel, unless that is done already; raise what a call raises."""
        self._compile()

    def _compile(self) -> Callable[..., Any]:
        with kernels.BUSY:  # numba compiles one function at a time anyway
            if self._compiled is None:
                self.origin = "unsaved"  # until it is known to be in the cache
                if vars(numba.config).get("DISABLE_JIT"):
                    self._compiled = self._plain
                    return self._compiled
                dispatcher = self._load() or self._build(self._dispatcher())
                dispatcher.disable_compile()  # else it would compile for other types of arguments
                self._compiled = dispatcher
            return self._compiled

    def _tell(self) -> None:
        """Say once, on a terminal, that and why something is compiled."""
        _told.append(self.name)
        where = f"{self.folder}, which has none of this version for this CPU yet"
        where = where if self.folder else "this process alone: set NUMBA_CACHE_DIR to a folder"
        with contextlib.suppress(Exception):  # the terminal has gone
            sys.stderr.write(f"indexplan: compiling kernels for {where}\n")

    def _plain(self, *values: Any) -> Any:
        """Run the function as plain Python: at first, or for debugging with NUMBA_DISABLE_JIT."""
        with np.errstate(over="ignore"):  # 64-bit numbers are meant to wrap around
            answer = self.py_func(*values)
        if isinstance(answer, tuple):
            return tuple(map(_python_number, answer))
        return _python_number(answer)

    def _dispatcher(self) -> Any:
        jit: Any = numba.njit  # its annotations lack the option
        return jit(**OPTIONS)(self.py_func)

    def _build(self, dispatcher: Any) -> Any:
        timer = threading.Timer(PATIENCE, self._tell)
        timer.daemon = True
        if not _told and _on_a_terminal():
            with contextlib.suppress(RuntimeError):  # there may be no more threads
                timer.start()
        try:
            with _uncollected():
                dispatcher.compile(self.arguments)
        finally:
            timer.cancel()
            if timer.ident is not None:  # no fork sees the thread, nor a lock of stderr that it has
                timer.join()
        return dispatcher

    def _load(self) -> Any:
        """Return the function from numba's cache, or compiled into it; None if that fails."""
        if vars(numba.config).get("BOUNDSCHECK"):  # the cache does not distinguish such code
            return None
        dispatcher = self._dispatcher()
        try:
            dispatcher.enable_caching()  # RuntimeError if there is no writable folder
            _stamp(dispatcher._cache._cache_file, self._sources)  # noqa: SLF001  no public way
            self.folder = dispatcher.stats.cache_path
            with contextlib.suppress(Exception):  # what is wrong is mended below
                if _load_alone(dispatcher, self.arguments):
                    self.origin = "loaded"
                    return dispatcher
            try:
                self._build(dispatcher)
                self.origin = "loaded" if dispatcher.stats.cache_hits else "saved"
            except NumbaError:
                raise
            except Exception:  # unpickling a damaged file may raise anything
                if not dispatcher.overloads:  # else it was compiled but not saved: a full disk
                    dispatcher._cache.flush()  # noqa: SLF001
                    self._build(dispatcher)
                    self.origin = "saved"
        except NumbaError:
            raise
        except Exception:  # the folder cannot be read or flushed: do without it
            return dispatcher if dispatcher.overloads else None
        return dispatcher


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Pause Python's garbage collector: a shuffle compiles in 4.4 CPU seconds instead of 5.5.

    It looks through all of numba's objects 130 times, for 6 MB. Who does this holds BUSY, for which
    forks wait: so no child is left without a collector.
    """
    collects = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collects:
            gc.enable()


def _on_a_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except Exception:  # it is None or closed, or an object of the user's without this method
        return False


def _python_number(value: Any) -> Any:
    """Return a number as numba returns it; NumPy's lack methods, and wrap around."""
    return value.item() if isinstance(value, np.generic) else value


def _load_alone(dispatcher: Any, arguments: tuple[Any, ...]) -> bool:
    """Load a kernel, if it is cached, without what numba imports to compile, such as SciPy."""
    with global_compiler_lock:
        rtsys.initialize(dispatcher.targetctx)  # the runtime, which has arrays
        found = dispatcher._cache._load_overload(arguments, dispatcher.targetctx)  # noqa: SLF001
        if found is not None and found.signature.args != arguments:
            found = dispatcher._cache.flush()  # noqa: SLF001 (None)  two processes gave one name
        if found is not None:
            dispatcher.add_overload(found)
    return found is not None


def _stamp(cache_file: Any, sources: str) -> None:
    """Make the cached code of a kernel valid only for these files that it imports.

    Raises AttributeError if this numba has no stamp; then nothing is loaded or saved.
    """
    theirs = cache_file._source_stamp  # noqa: SLF001
    cache_file._source_stamp = (theirs, sources)  # noqa: SLF001


IMPORTS = re.compile(r"^\s*(?:from|import)\b[^(\n]*(?:\([^)]*\))?", re.MULTILINE)


def _sources(file: Path) -> str:
    """Hash a file and those of its folder that it imports; of a zip numba stamps the whole file."""
    files, digest = [file] if file.is_file() else [], hashlib.sha256()
    for path in files:  # which grows
        text, near = _source(path)
        digest.update(f"{path.name} {len(text)}\n".encode() + text)
        files += [each for each in near if each not in files]
    return digest.hexdigest()


@functools.cache  # what was imported, if it is edited later
def _source(file: Path) -> tuple[bytes, list[Path]]:
    """Return a file's text, and the files of its folder that it imports."""
    text = file.read_bytes()
    named = re.findall(r"\w+", " ".join(IMPORTS.findall(text.decode())))
    near = (file.with_name(f"{name}.py") for name in dict.fromkeys(named))
    return text, [each for each in near if each.is_file()]


PATIENCE = 1.0  # seconds after which the first kernel that is still being compiled is told
_told: list[str] = []
KERNELS: list[Kernel] = []  # those of all imported modules


def kernel(*arguments: Any) -> Callable[[Callable[..., Any]], Kernel]:
    """Decorate a function to make it a `Kernel` for arguments of these numba types."""

    def decorate(function: Callable[..., Any]) -> Kernel:
        made = Kernel(function, arguments)
        KERNELS.append(made)
        return made

    return decorate


def helper(function: Function) -> Function:
    """Make a function callable from the kernels of its folder, which compile it with them.

    Returns the function itself, so Python callers get the plain one.
    """
    made: Function = register_jitable(**OPTIONS)(function)
    return made


def inlined(function: Function) -> Function:
    """Make a helper that LLVM inlines into its callers, however long it is: see philox.py."""
    made: Function = register_jitable(forceinline=True, **OPTIONS)(function)
    return made


def cpu_name() -> str:
    """Return LLVM's name of the CPU for which kernels are compiled, as numba's cache stores it."""
    name: str = vars(numba.config).get("CPU_NAME") or get_host_cpu_name()
    return name


def has_avx512() -> bool:
    """Return whether kernels are compiled for AVX-512, as numba's cache tells machines apart."""
    return "+avx512f" in cpu_target.target_context.codegen().magic_tuple()[2]
