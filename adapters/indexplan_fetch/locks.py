"""Files that one process holds by a lock, which the kernel releases when the process dies."""

from __future__ import annotations

import json
import os
import secrets
import struct
import zlib
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any
from weakref import WeakSet

from indexplan_fetch.owned import open_own

_HEAD = struct.Struct("<II")  # bytes of JSON that follow, and their CRC

_held: WeakSet[FileIO] = WeakSet()


def _let_go_in_child() -> None:
    """Close files in a forked DataLoader worker, which would hold them after its parent's death."""
    for file in list(_held):
        file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


def hold(path: Path) -> FileIO | None:
    """Hold a file, which is made if it is not there; return None if another process holds it."""
    import fcntl  # not on Windows

    while True:
        file = open_own(path, os.O_RDWR | os.O_CREAT)
        _held.add(file)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        if is_at(file, path):
            return file
        file.close()  # another process removed it before it was locked


def hold_new(folder: Path, name: str) -> tuple[FileIO, Path]:
    """Make and hold a file whose name begins with `name`, in a folder that other processes check.

    A process that checks a file holds it for a moment, or for long if it is stopped just then: so
    this does not wait for it, but takes another name.
    """
    while True:
        path = folder / f"{name}-{secrets.token_hex(4)}"
        file = hold(path)
        if file is not None:
            return file, path


def is_at(file: FileIO, path: Path) -> bool:
    """Return whether a path still names the file that is open."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def is_held(path: Path) -> bool:
    """Return whether some process holds a file."""
    import fcntl

    try:
        with open_own(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def sweep(path: Path) -> bool:
    """Remove a file unless some process holds it; return whether one does.

    It is held while it is removed, so that a process that is about to hold it makes another.
    """
    import fcntl

    try:
        with open_own(path, os.O_RDWR) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def release(file: FileIO, path: Path) -> None:
    """Remove a file that this process holds."""
    with suppress(FileNotFoundError):
        path.unlink()
    file.close()


def make_room_for_notes(file: FileIO, size: int) -> None:
    """Give a file its blocks now, so that notes can be written on a full disk."""
    os.pwrite(file.fileno(), bytes(size), 0)


def write_note(file: FileIO, value: Any, size: int | None = None) -> None:
    """Write JSON over a file's content; a reader in between sees that it is incomplete.

    With `size`, the bytes of the file, it must fit.
    """
    text = json.dumps(value, ensure_ascii=False).encode()
    assert size is None or len(text) <= size - _HEAD.size  # noqa: S101 (messages are cut before)
    os.pwrite(file.fileno(), _HEAD.pack(len(text), zlib.crc32(text)) + text, 0)


def read_note(path: Path) -> Any:
    """Return the JSON of a file; None if there is none, or it is being written."""
    try:
        with open_own(path) as file:
            data = file.readall()
    except FileNotFoundError:
        return None
    if len(data) < _HEAD.size:
        return None
    length, crc = _HEAD.unpack_from(data)
    text = data[_HEAD.size : _HEAD.size + length]
    if not length or zlib.crc32(text) != crc:
        return None
    return json.loads(text)
