"""Tables of orders: one for all equal orders of a process, and large ones for a user's processes.

A table is derived from a column, such as the samples of each class. A large one is written to the
user's cache by the first process that needs it, and mapped by all: see `docs/starting-up.md`.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from indexplan import kernels
from indexplan.canonical import canonical_json
from indexplan.errors import PlanFileError
from indexplan.version import __version__

Table = TypeVar("Table")

LEAST = 2**24  # bytes of a table from which on it is shared: some 0.1 s of work
HEAD = 2**12  # of which the header takes a multiple
DIGITS = 16  # of its checksum
ALIGNED = 64
FORGOTTEN = 30 * 86400  # seconds after which an unused table is deleted

TOP = Path(__file__).parents[1]
BUILDERS = ("kernels", "orders")  # folders of what builds tables
STARTED = time.time()

# A table exists as long as some order holds it.
TABLES: WeakValueDictionary[str, Any] = WeakValueDictionary()


def table_of(
    key: Mapping[str, Any], kind: Callable[..., Table], build: Callable[[], Table], num_bytes: int
) -> Table:
    """Return the table that belongs to a key; build it if this process and the cache lack it.

    A fork waits until no thread builds one, so that its children share it.

    Parameters
    ----------
    key : mapping
        All that the table follows from but this library, as JSON: `table`, its kind, fields, and
        the sha256 of columns.
    kind : callable
        Makes a table of its fields, arrays and integers, by name.
    build : callable
        Builds the table.
    num_bytes : int
        About its size. A small one stays in the memory of the process.
    """
    name = canonical_json(key)
    import indexplan.kernels.compiling  # noqa: F401 (numba, before a fork can wait for a table)

    with kernels.BUSY:
        found: Table | None = TABLES.get(name)
        if found is None:
            large = num_bytes >= LEAST
            found = TABLES[name] = _shared(key, kind, build) if large else build()
        return found


@functools.cache
def _library() -> str:
    """Return the version of this library, and a digest of what builds tables, as it may be edited.

    OSError if it was edited since this process began, which may run the code from before. Read
    with the first large table, in some 2 ms; of a zip there is the version alone.
    """
    digest = hashlib.sha256()
    for path in sorted(path for folder in BUILDERS for path in (TOP / folder).glob("*.py")):
        digest.update(path.read_bytes())
        if path.stat().st_ctime > STARTED:
            raise OSError(f"{path} was changed after this process began")
    return f"{__version__} {digest.hexdigest()}"


def _shared(
    key: Mapping[str, Any], kind: Callable[..., Table], build: Callable[[], Table]
) -> Table:
    """Map a table of the cache, after building it if it is not there; or keep it in memory."""
    from indexplan.stores.cache import keep, open_kept, user_folder
    from indexplan.stores.temporary import LOCKS

    if not LOCKS:  # Windows
        return build()
    group = key["table"]
    made: list[Table] = []
    building = False

    def blocks() -> Iterator[bytes | memoryview]:
        nonlocal building
        building = True
        made[:] = [build()]
        building = False
        yield from _written(name, vars(made[0]))

    def whole(held: int) -> Table | None:
        stream = open_kept(path, held)
        if stream is None:
            return None
        wrote = bool(made)
        made.clear()  # else its memory would be taken twice
        with stream:
            fields = _read(stream, name)
            if fields is not None:
                with contextlib.suppress(OSError):
                    os.utime(stream.fileno())  # it is in use
        if wrote:
            _forget(held)
            if fields is None:
                raise OSError("its file has other bytes than were written")
        return None if fields is None else kind(**fields)  # damaged: it is built in its place

    try:
        name = canonical_json({**key, "library": _library()})
        path = user_folder("tables") / "tables" / group / hashlib.sha256(name.encode()).hexdigest()
        return keep(path, whole, blocks)
    except (OSError, PlanFileError) as error:
        if building:
            raise
        why = f"a table of {group} is not shared with other processes, which takes time and memory"
        warnings.warn(f"{why}: {error}", RuntimeWarning, stacklevel=2)
        return made[0] if made else build()


def _written(name: str, fields: Mapping[str, Any]) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a table: a line of JSON, and its arrays."""
    arrays = {key: value for key, value in fields.items() if isinstance(value, np.ndarray)}
    at, noted = 0, dict(fields)
    for key, array in arrays.items():
        octets = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        noted[key] = [array.dtype.str, list(array.shape), at, kernels.xxh64.xxh64(octets)]
        at += -(-array.nbytes // ALIGNED) * ALIGNED
    line = json.dumps({"key": name, "order": sys.byteorder, "fields": noted}).encode()
    line = line.ljust(-(-(len(line) + DIGITS + 1) // HEAD) * HEAD - DIGITS - 1)
    yield b"%0*x%s\n" % (DIGITS, kernels.xxh64.xxh64(line), line)
    for array in arrays.values():
        yield np.ascontiguousarray(array).data.cast("B") if array.size else b""
        yield bytes(-array.nbytes % ALIGNED)


def _read(stream: BinaryIO, name: str) -> dict[str, Any] | None:
    """Map a table's arrays, read-only; None unless its file is whole and its bytes are as noted.

    All bytes are hashed, as kernels look at any of them later, at some 3 GB/s.
    """
    line = stream.readline(HEAD * HEAD)
    digest, text = line[:DIGITS], line[DIGITS:-1]
    if digest != b"%0*x" % (DIGITS, kernels.xxh64.xxh64(text)):
        return None
    noted = json.loads(text)
    if noted["key"] != name or noted["order"] != sys.byteorder:
        return None
    fields = {key: _field(stream, len(line), each) for key, each in noted["fields"].items()}
    return None if any(field is None for field in fields.values()) else fields


def _field(stream: BinaryIO, start: int, noted: Any) -> NDArray[Any] | int | None:
    """Return an integer, or the array of a field; None if its bytes are not as noted."""
    if isinstance(noted, int):
        return noted
    dtype, shape, at, digest = noted
    if not prod(shape):
        return np.empty(shape, dtype)
    try:
        array = np.memmap(stream, dtype, "r", start + at, tuple(shape)).view(np.ndarray)
    except ValueError:  # the file ends earlier
        return None
    octets = array.view(np.uint8).reshape(-1)
    return array if kernels.xxh64.xxh64(octets) == digest else None


def _forget(held: int) -> None:
    """Delete the tables of a folder that nobody has used for a month."""
    with contextlib.suppress(OSError):
        for each in os.listdir(held):
            if time.time() - os.stat(each, dir_fd=held).st_mtime > FORGOTTEN:
                os.unlink(each, dir_fd=held)
