"""Temporary files: each has a name that no other builder uses, and is locked while it is written.

A builder that is killed leaves its temporary file behind, but the kernel releases its lock. The
next builder there removes the file. So no live builder loses one, and none stays behind.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import stat
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path

try:
    import fcntl

    LOCKS = True
except ImportError:  # Windows, where an open file cannot be deleted
    LOCKS = False

PATIENCE = 3600  # seconds without a write after which a file counts as dead if locks cannot tell

_MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
_NAME = re.compile(
    r"\.[a-z0-9.-]+\.(?:npy|json|xxh64|parquet|arrow)\."
    r"indexplan-(?P<machine>[0-9a-f]{8})-[0-9]+-[0-9a-f]{12}\.tmp"
)


def temporary_name(path: Path) -> Path:
    """Return the name of a file to be written, before it gets the name `path`."""
    who = f"indexplan-{_MACHINE}-{os.getpid()}-{secrets.token_hex(6)}"
    return path.with_name(f".{path.name}.{who}.tmp")


def lock(stream: FileIO, path: Path) -> bool:
    """Lock a temporary file that was just made; return False if a sweep has already removed it."""
    if not LOCKS:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return os.path.lexists(path)


def sweep(folder: Path) -> None:
    """Remove the temporary files of builders that are dead; `OSError` if that is not allowed."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            if match := _NAME.fullmatch(path.name):
                with suppress(FileNotFoundError):
                    _sweep(path, ours=match["machine"] == _MACHINE)


def _sweep(path: Path, *, ours: bool) -> None:
    """Remove a temporary file, unless it may still be being written.

    For files of this machine, a free lock is proof that it is not. For others it is not proof, as
    some network file systems do not share locks between machines.
    """
    found = os.lstat(path)
    if not (stat.S_ISREG(found.st_mode) and os.access(path, os.R_OK)):  # not one of ours to read
        return
    old = time.time() - found.st_mtime > PATIENCE
    with open(path, "rb", 0, opener=_without_waiting) as stream:
        free = _is_free(stream)
        if (free and ours) or (free is not False and old):
            path.unlink()


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _is_free(stream: FileIO) -> bool | None:
    """Return whether a file is not locked; None if the system has no locks."""
    if not LOCKS:
        return None
    try:
        fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True
